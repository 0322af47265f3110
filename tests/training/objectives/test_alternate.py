"""alternate: which step is which, and the causal loss against prefixes of the text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training import a_run
from tests.training.objectives import examples

import besag
from besag.errors import BesagError
from besag.training.objectives.alternate import Alternate
from besag.training.objectives.mlm import MLM
from besag.training.run import train


def turns(objective: Alternate, steps: int = 20) -> str:
    return "".join("c" if objective.is_causal(step, step / steps) else "m" for step in range(steps))


def test_which_step_is_causal() -> None:
    network = examples.encoder()
    assert turns(Alternate(network, steps=2)) == "cm" * 10
    assert turns(Alternate(network, steps=5, causal=0.2)) == "cmmmm" * 4
    assert turns(Alternate(network, period=0.5, causal=0.3)) == "cccmmmmmmm" * 2
    assert turns(Alternate(network, pattern="phases", causal=0.25)) == "c" * 5 + "m" * 15
    assert turns(Alternate(network, steps=5, causal=0.2, lead=0.4)) == "c" * 8 + "mm" + "cmmmm" * 2
    assert turns(Alternate(network, pattern="phases", causal=0.0, lead=0.25)) == "c" * 5 + "m" * 15
    assert turns(Alternate(network, causal=0.0)) == "m" * 20
    assert turns(Alternate(network, causal=1.0)) == "c" * 20


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "electra", "besag"])
def test_a_causal_step_asks_each_prefix_for_the_next_token(family: str) -> None:
    """By hand: every token sees a text that ends with it."""
    network, batch = examples.encoder(family), examples.batch(family=family)
    loss = Alternate(network, causal=1.0)(batch)
    by_hand, count = 0.0, 0
    for start, end in zip(batch.layout.bounds[:-1].tolist(), batch.layout.bounds[1:].tolist(), strict=True):
        for target in range(start + 1, end):
            if bool(batch.free[target]):
                # a prefix alone differs from the causal network below its last place, so each place is masked anew
                prefix = batch.ids[start:target]
                seen = torch.ones(len(prefix), len(prefix)).tril()
                added = (1 - seen)[None, None] * torch.finfo(torch.float32).min
                near = (torch.arange(len(prefix))[:, None] - torch.arange(len(prefix))).abs()
                limit = getattr(network.model.config, "sliding_window", None)
                mask: Any = added
                if family == "modernbert":
                    local = added.masked_fill(near > limit, torch.finfo(torch.float32).min)
                    mask = {"full_attention": added, "sliding_attention": local}
                with torch.no_grad():
                    logits = network.model(input_ids=prefix[None], attention_mask=mask).logits[0, -1]
                by_hand -= float(logits.log_softmax(-1)[batch.ids[target]])
                count += 1
    assert count == int(batch.free.sum())
    mean = float(loss.total.detach()) / float(batch.weight.sum())
    assert mean == pytest.approx(by_hand / count, rel=1e-4)
    assert float(loss.logs["causal_loss"]) == pytest.approx(mean)


def test_later_tokens_do_not_change_a_causal_loss_but_earlier_ones_do() -> None:
    network = examples.encoder()
    batch = examples.batch((8,))
    objective = Alternate(network, causal=1.0)
    one, two = examples.ordinary()[:2]

    def losses(place: int, token: int) -> torch.Tensor:
        ids = batch.ids.clone()
        ids[place] = token
        states = network.states(ids, batch.layout, causal=True)
        return network.losses(states[:-1], batch.ids[1:]).detach()

    assert objective(batch).total.requires_grad
    late = losses(5, one) - losses(5, two)
    assert float(late[:5].abs().max()) < 1e-5
    assert float(late[5:].abs().min()) > 1e-3


def test_a_token_that_begins_its_sequence_is_not_asked_for() -> None:
    """Nothing stands before it but the end of another sequence."""
    network, batch = examples.encoder(), examples.batch()
    plain = batch._replace(free=torch.ones_like(batch.free))  # as if there were no special tokens
    losses = []
    for token in examples.ordinary()[:2]:
        ids = plain.ids.clone()
        ids[batch.layout.bounds[1].long() - 1] = token  # the last of the first sequence
        states = network.states(ids, batch.layout, causal=True)
        wanted = batch.layout.column > 0
        by_hand = network.losses(states[:-1], ids[1:])[wanted[1:]].mean()
        loss = Alternate(network, causal=1.0)(plain._replace(ids=ids))
        torch.testing.assert_close(loss.total / batch.weight.sum(), by_hand)
        losses.append(float(by_hand.detach()))
    assert losses[0] != losses[1]


def test_a_masked_step_is_mlm() -> None:
    network, batch = examples.encoder(), examples.batch(progress=0.9)
    loss = Alternate(network, pattern="phases", causal=0.5)(batch)
    torch.testing.assert_close(loss.total, MLM(network)(batch).total)
    assert set(loss.logs) == {"masked_loss"}


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_a_shifted_masked_step_asks_the_place_before_the_hidden_one(family: str) -> None:
    """By hand: both sides are seen, the hidden token is a mask, and the state *before* it says what it is."""
    network, batch = examples.encoder(family), examples.batch(family=family)
    objective = Alternate(network, causal=0.0, shift=True)
    log_probs = examples.plain(network, batch.inputs, batch.layout)
    by_hand = -float((log_probs[batch.asked - 1, batch.ids[batch.asked]] * batch.weight).sum())
    assert float(objective(batch).total.detach()) == pytest.approx(by_hand, rel=1e-4)
    assert abs(by_hand - float(MLM(network)(batch).total.detach())) > 0.1
    assert (objective.purpose, network.model.config.besag_shift) == ("score", True)


@pytest.mark.parametrize("options", [{"causal": 1.0}, {"causal": 1.0, "pattern": "phases"}, {"lead": 1.0}])
def test_a_network_without_masked_steps_is_not_for_scoring(options: dict[str, Any]) -> None:
    assert Alternate(examples.encoder(), **options).purpose == "encode"


def test_shifted_both_kinds_of_steps_ask_the_same_row_for_a_token() -> None:
    """Where the last token is hidden and all others are shown, only the mask at its place tells the two apart."""
    network = examples.encoder("bert")
    batch = examples.batch((7,), family="bert")
    one = batch._replace(asked=torch.tensor([6]), weight=torch.ones(1), free=torch.arange(7) == 6)
    causal = Alternate(network, causal=1.0)(one).total.detach()
    states = network.states(one.ids, one.layout, causal=True)
    torch.testing.assert_close(causal, network.losses(states[5:6], one.ids[6:])[0].detach())
    masked = one._replace(inputs=one.ids.index_fill(0, one.asked, network.mask_id))
    shifted = Alternate(network, causal=0.0, shift=True)(masked).total.detach()
    states = network.states(masked.inputs, one.layout)
    torch.testing.assert_close(shifted, network.losses(states[5:6], one.ids[6:])[0].detach())


def test_shifted_a_token_that_begins_its_sequence_counts_nothing() -> None:
    """Nothing stands before it but the end of another sequence."""
    network, batch = examples.encoder(), examples.batch()
    first = batch.layout.bounds[1:3].long()
    batch = batch._replace(asked=torch.cat([first, first + 2]), weight=torch.ones(4))
    objective = Alternate(network, causal=0.0, shift=True)
    alone = objective(batch._replace(asked=first + 2, weight=torch.ones(2))).total
    torch.testing.assert_close(objective(batch).total, alone)


@pytest.mark.parametrize("causal", [0.0, 1.0])
def test_ragged_and_padded_batches_have_one_loss_and_gradient(causal: float) -> None:
    batch = examples.batch()
    networks = [examples.encoder(ragged=ragged) for ragged in (False, True)]
    losses = [Alternate(network, causal=causal)(batch).total for network in networks]
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-4, atol=1e-4)
    gradients = [examples.gradient(loss, network) for loss, network in zip(losses, networks, strict=True)]
    assert float(gradients[0].abs().max()) > 1e-3
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("wrong", [{"pattern": "both"}, {"causal": 1.5}, {"period": 0.0}, {"steps": 0}, {"lead": -0.1}])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    [(option, value)] = wrong.items()
    with pytest.raises(BesagError, match=f"{option}={value!r}"):
        Alternate(examples.encoder(), **wrong)


def test_a_shifted_run_leaves_a_model_that_is_queried_with_the_shift(tmp_path: Path) -> None:
    shifted = {"name": "alternate", "options": {"causal": 0.0, "shift": True}}
    recipe = a_run.small(tmp_path / "out", {"objective": shifted, "evaluation": {"sentences": 10}})
    done = train(recipe, quiet=True)
    folder = done.folder / "model"
    assert json.loads((folder / "config.json").read_text())["besag_shift"] is True
    assert "shift its logits" in (folder / "README.md").read_text()
    lm = besag.load(folder, device="cpu")
    ids = torch.tensor(lm.vocabulary.tokenizer("The dog sees.")["input_ids"])
    wanted = []
    for place in range(1, len(ids) - 1):
        hidden = ids.clone()
        hidden[place] = lm.vocabulary.mask_id
        with torch.no_grad():
            law = lm.model(input_ids=hidden[None]).logits[0, place - 1].double().log_softmax(-1)
        wanted.append(float(law[ids[place]]))
    torch.testing.assert_close(torch.tensor(lm.score("The dog sees.").log_probs), torch.tensor(wanted).double())
    start = {"model": {"start": str(folder), "config": {}}, "tokenizer": {"path": str(folder)}}
    with pytest.raises(BesagError, match=r"objective\.name = 'mlm'"):
        train(a_run.small(tmp_path / "plain", start), quiet=True)
    again = train(
        a_run.small(tmp_path / "again", {**start, "objective": shifted, "schedule": {"steps": 1}}), quiet=True
    )
    assert besag.load(again.folder / "model", device="cpu").conditionals.shift


def test_an_adapter_apart_cannot_declare_a_shift(tmp_path: Path) -> None:
    changes = {
        "objective": {"name": "alternate", "options": {"shift": True}},
        "model": {"start": "small-en", "config": {}},
        "adapt": {"method": "lora", "keep": "apart"},
    }
    with pytest.raises(BesagError, match=r"shift = true.*'merged'"):
        train(a_run.small(tmp_path / "out", changes), quiet=True)
