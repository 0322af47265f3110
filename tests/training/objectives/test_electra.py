"""electra: its three terms by hand, its draws as a law, and who is trained by which."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from tests import networks
from tests.training.objectives import examples
from tests.training.objectives.rows import alone
from torch import Tensor

from besag.errors import BesagError
from besag.training.objectives.electra import Electra, draw
from besag.training.objectives.mlm import MLM


def electra(family: str = "bert", *, ragged: bool = False, heads: int = 2, **options: Any) -> Electra:
    network = examples.encoder(family, ragged=ragged, num_attention_heads=heads)
    return Electra(network, **{"generator_width": 0.5, **options})


def total(objective: Electra, batch: Any) -> float:
    return float(objective(batch).total.detach())


@pytest.mark.parametrize("family", networks.MASKED_FAMILIES)
def test_the_loss_by_hand(family: str) -> None:
    objective, batch = electra(family, weight=7.0, mlm_weight=0.5), examples.batch(family=family)
    with torch.no_grad():
        _, _, replaced = objective.replace(batch)
        guesses, own = (
            float(-(examples.plain(network, batch.inputs, batch.layout)[batch.asked, batch.ids[batch.asked]]
                    * batch.weight).sum())
            for network in (objective.generator, objective.encoder)
        )  # fmt: skip
        detection = 0.0
        for row in range(3):
            start, end = batch.layout.bounds[row : row + 2].tolist()
            states = objective.encoder.body(input_ids=replaced[None, start:end])[0][0]
            losses = []
            for place in range(start, end):
                if batch.free[place]:
                    p = 1 / (1 + math.exp(-float(objective.detector(states[place - start]))))
                    losses.append(-math.log(p if replaced[place] != batch.ids[place] else 1 - p))
            asked = sum(float(w) for i, w in zip(batch.asked, batch.weight, strict=True) if start <= i < end)
            detection += asked * sum(losses) / len(losses)
        loss = objective(batch)
    assert float(loss.total) == pytest.approx(guesses + 7.0 * detection + 0.5 * own, rel=1e-4)
    count = float(batch.weight.sum())
    assert float(loss.logs["generator"]) == pytest.approx(guesses / count, rel=1e-4)
    assert float(loss.logs["detection"]) == pytest.approx(detection / count, rel=1e-4)
    assert float(loss.logs["mlm"]) == pytest.approx(own / count, rel=1e-4)


def test_only_hidden_places_are_replaced_and_never_by_a_special_token() -> None:
    objective, batch = electra(), examples.batch((9, 8) * 40, family="bert")
    _, _, replaced = objective.replace(batch)
    hidden = torch.zeros_like(batch.free).index_put((batch.asked,), torch.tensor(True))
    assert torch.equal(replaced[~hidden], batch.ids[~hidden])
    special = torch.tensor(sorted(objective.encoder.special_ids))
    assert not torch.isin(replaced[hidden], special).any()
    assert float((replaced[hidden] != batch.ids[hidden]).float().mean()) > 0.5


def test_hidden_and_not_asked_places_are_replaced_too() -> None:
    objective, batch = electra(), examples.batch(family="bert")
    few = batch._replace(asked=batch.asked[:2], weight=batch.weight[:2])
    _, _, replaced = objective.replace(few)
    assert objective.encoder.mask_id not in replaced
    assert torch.equal(replaced, objective.replace(batch)[2])


def test_fillers_of_weight_nothing_replace_nothing() -> None:
    objective, batch = electra(), examples.batch(family="bert")
    filled = batch._replace(
        asked=torch.cat([batch.asked, torch.tensor([0, 3])]), weight=torch.cat([batch.weight, torch.zeros(2)])
    )
    untouched = {0, 3} - set(batch.asked.tolist())
    replaced = objective.replace(filled)[2]
    assert all(replaced[place] == batch.inputs[place] for place in untouched)
    assert total(objective, filled) == pytest.approx(total(objective, batch), rel=1e-5)


def test_draws_follow_the_generator() -> None:
    """With heights on an even grid of N, each token comes N·p times, give or take one."""
    objective = electra()
    generator, count = objective.generator, 4000
    row = torch.randn(16, generator=torch.Generator().manual_seed(1))
    height = (torch.arange(count).double() + 0.5) / count
    with torch.no_grad():
        drawn = draw(generator, row.repeat(count, 1), height)
        law = generator.logits(row[None])[0].double()
    law[sorted(generator.special_ids)] = -torch.inf
    expected = law.softmax(0) * count
    found = torch.bincount(drawn, minlength=generator.width)
    assert float((found - expected).abs().max()) <= 1.01
    assert int((expected > 1.0).sum()) > 5


def test_a_height_at_the_top_is_an_ordinary_token() -> None:
    generator = electra().generator
    drawn = draw(generator, torch.randn(3, 16), torch.ones(3).double())
    assert not set(drawn.tolist()) & generator.special_ids
    assert int(drawn.max()) < generator.width


def test_draws_differ_by_seed_and_draw_and_by_nothing_else() -> None:
    batch = examples.batch((12, 11), family="bert")
    objective = electra()
    texts = [objective.replace(batch)[2], objective.replace(batch._replace(step=5, progress=0.5))[2]]
    assert torch.equal(*texts)
    other_draw = objective.replace(batch._replace(draw=batch.draw + 7))[2]
    objective.seed = 1
    other_seed = objective.replace(batch)[2]
    for other in (other_draw, other_seed):
        assert not torch.equal(texts[0], other)


def test_the_loss_does_not_depend_on_what_shares_the_batch() -> None:
    objective, batch = electra(), examples.batch(family="bert")
    whole = total(objective, batch)
    assert whole == pytest.approx(sum(total(objective, alone(batch, row)) for row in range(3)), rel=1e-5)


def moved(objective: Electra) -> dict[str, float]:
    """The largest gradient of each part."""
    largest = lambda weights: max((float(w.grad.abs().max()) for w in weights if w.grad is not None), default=0.0)  # noqa: E731
    body = list(objective.encoder.body.parameters())
    inside = {id(weight) for weight in body}
    head = [weight for weight in objective.encoder.model.parameters() if id(weight) not in inside]
    return {
        "body": largest(body),
        "head": largest(head),
        "generator": largest(objective.generator.parameters()),
        "detector": largest(objective.detector.parameters()),
    }


@pytest.mark.parametrize(
    ("term", "trained"),
    [("generator", {"generator"}), ("detection", {"body", "detector"}), ("mlm", {"body", "head"})],
)
def test_each_term_trains_its_own_part(term: str, trained: set[str]) -> None:
    objective, batch = electra(mlm_weight=1.0, weight=1.0), examples.batch(family="bert")
    if term == "mlm":
        loss = objective(batch).total
        objective.mlm_weight = 0.0
        loss = loss - objective(batch).total
    else:
        objective.mlm_weight, objective.weight = 0.0, 1.0
        loss = objective(batch).total
        objective.weight = 0.0
        loss = objective(batch).total if term == "generator" else loss - objective(batch).total
    loss.backward()
    found = {name for name, size in moved(objective).items() if size > 1e-5}
    assert found == trained


def test_without_its_own_loss_the_head_is_left_alone() -> None:
    objective, batch = electra(mlm_weight=0.0), examples.batch(family="bert")
    objective(batch).total.backward()
    waiting = [name for name, w in objective.named_parameters() if w.requires_grad and w.grad is None]
    assert waiting == []
    assert moved(objective)["head"] == 0.0
    assert (objective.purpose, electra().purpose) == ("encode", "score")


@pytest.mark.parametrize("family", ["bert", "modernbert", "deberta-v2"])
def test_every_weight_has_a_gradient(family: str) -> None:
    objective, batch = electra(family), examples.batch(family=family)
    objective(batch).total.backward()
    assert [name for name, w in objective.named_parameters() if w.requires_grad and w.grad is None] == []


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_ragged_and_padded_batches_have_one_gradient(family: str) -> None:
    batch, gradients = examples.batch(family=family), []
    for ragged in (False, True):
        objective = electra(family, ragged=ragged, weight=2.0)
        gradients.append(examples.gradient(objective(batch).total, objective.encoder))
    assert float(gradients[0].abs().max()) > 1e-3
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("family", networks.MASKED_FAMILIES)
def test_a_smaller_network_of_the_same_family(family: str) -> None:
    network = examples.encoder(family, num_attention_heads=4, num_hidden_layers=4)
    config = Electra(network, generator_width=0.5, generator_layers=0.5).generator.model.config
    assert type(config) is type(network.model.config)
    assert (config.hidden_size, config.num_attention_heads, config.num_hidden_layers) == (16, 2, 2)
    assert getattr(config, "intermediate_size", None) == 24 or config.hidden_dim == 24
    assert config.vocab_size == network.width


@pytest.mark.parametrize(("family", "width"), [("bert", 1.0), ("modernbert", 1.0), ("electra", 0.5)])
def test_one_table_of_embeddings_where_the_widths_agree(family: str, width: float) -> None:
    def tables(objective: Electra) -> list[Tensor]:
        return [net.model.get_input_embeddings().weight for net in (objective.encoder, objective.generator)]

    shared, apart = electra(family, generator_width=width), electra(family, generator_width=width, share=False)
    assert shared.shares
    assert tables(shared)[0] is tables(shared)[1]
    assert not apart.shares
    assert tables(apart)[0] is not tables(apart)[1]
    out = shared.generator.model.get_output_embeddings().weight
    assert out is tables(shared)[0]  # the generator answers with the table it reads with
    assert not electra("bert", generator_width=0.5).shares


def test_a_seed_gives_one_generator_whatever_torch_did_before() -> None:
    weights = []
    for seed, chance in ((5, 0), (5, 1), (6, 1)):
        torch.manual_seed(chance)
        objective = electra(seed=seed)
        parts = [*objective.generator.parameters(), *objective.detector.parameters()]
        weights.append(torch.cat([weight.detach().flatten() for weight in parts]))
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])


def test_the_generator_is_handed_out_on_request(tmp_path: Any) -> None:
    assert electra().extras() == {}
    objective = electra(save_generator=True)
    assert list(objective.extras()) == ["generator"]
    electra().save_extras(tmp_path)
    assert not any(tmp_path.iterdir())
    objective.save_extras(tmp_path)
    loaded = type(objective.generator.model).from_pretrained(tmp_path / "generator").eval()
    batch = examples.batch(family="bert")
    again = examples.plain(examples.encoder("bert", model=loaded), batch.inputs, batch.layout)
    torch.testing.assert_close(again, examples.plain(objective.generator, batch.inputs, batch.layout))


def test_how_the_network_fares_is_told_to_who_watches() -> None:
    objective, batch = electra(), examples.batch(family="bert")
    assert objective(batch).predicted is None
    objective.encoder.watched = True
    own, plain = objective(batch).predicted, MLM(objective.encoder)(batch).predicted
    assert own is not None
    assert plain is not None
    torch.testing.assert_close(own.losses, plain.losses)
    objective.mlm_weight = 0.0
    guessed, expected = objective(batch).predicted, _plain_losses(objective, batch)
    assert guessed is not None
    torch.testing.assert_close(guessed.losses, expected, rtol=1e-4, atol=1e-4)


def _plain_losses(objective: Electra, batch: Any) -> Tensor:
    log_probs = examples.plain(objective.generator, batch.inputs, batch.layout)
    return -log_probs[batch.asked, batch.ids[batch.asked]].detach()


@pytest.mark.parametrize(
    "options",
    [{"weight": -1.0}, {"mlm_weight": math.nan}, {"generator_width": 0.0}, {"generator_layers": 2.0}],
)
def test_impossible_options_are_refused(options: dict[str, float]) -> None:
    name, value = next(iter(options.items()))
    with pytest.raises(BesagError, match=f"{name} ?= ?{value}"):
        electra(**options)
