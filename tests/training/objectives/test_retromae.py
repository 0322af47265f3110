"""retromae: one vector and a context of its own for each place, against a decoder run by hand."""

from __future__ import annotations

import math

import pytest
import torch
from tests.training.objectives import examples
from tests.training.objectives.rows import alone
from torch import Tensor

from besag.errors import BesagError
from besag.training.network.batch import Batch
from besag.training.objectives.mlm import MLM
from besag.training.objectives.retromae import RetroMAE

HEADS = {"bert": lambda model: model.cls, "modernbert": lambda model: lambda x: model.decoder(model.head(x))}


def wide(family: str = "bert", **options: float) -> RetroMAE:
    """With a decoder whose weights are large, so that every part of it tells."""
    made = RetroMAE(examples.encoder(family), seed=3, **options)
    for weight in made.decoder.parameters():
        weight.data.add_(0.3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    return made


def wave(place: int, width: int = 32) -> Tensor:
    speeds = [10_000.0 ** (-pair / (width // 2)) for pair in range(width // 2)]
    return torch.tensor([math.sin(place * s) for s in speeds] + [math.cos(place * s) for s in speeds])


def rebuilt(made: RetroMAE, part: Batch, embedding: Tensor) -> Tensor:  # (n, H)
    """Place by place and head by head."""
    decoder, table = made.decoder, made.encoder.model.get_input_embeddings().weight
    text = [embedding, *table[part.ids[1:]]]
    reads = [decoder.before_key(vector) + wave(place) for place, vector in enumerate(text)]
    found = []
    for place in range(len(part.ids)):
        seen = [other for other in range(len(text)) if bool(made.seen(part)[0, place, other])]
        asks = decoder.before_query(embedding) + wave(place)
        query, parts = decoder.query(asks).view(2, 16), []
        for head in range(2):
            keys = torch.stack([decoder.key(reads[other]).view(2, 16)[head] for other in seen])
            values = torch.stack([decoder.value(reads[other]).view(2, 16)[head] for other in seen])
            parts.append((keys @ query[head] / 4).softmax(0) @ values)
        state = asks + decoder.out(torch.cat(parts))
        found.append(
            decoder.norm(state + decoder.down(torch.nn.functional.gelu(decoder.up(decoder.before_mlp(state)))))
        )
    return torch.stack(found)


@pytest.mark.parametrize("family", HEADS)
def test_the_loss_by_hand(family: str) -> None:
    made, batch = wide(family, weight=0.7), examples.batch(family=family)
    total = float(MLM(made.encoder)(batch).total.detach())
    for row in range(3):
        part = alone(batch, row)
        with torch.no_grad():
            first = made.encoder.body(input_ids=part.inputs[None])[0][0, 0]  # what the *masked* text gives
            log_probs = HEADS[family](made.encoder.model)(rebuilt(made, part, first)).log_softmax(-1)
        each = [-float(log_probs[place, part.ids[place]]) for place in part.free.nonzero()[:, 0].tolist()]
        total += 0.7 * float(part.weight.sum()) * sum(each) / len(each)
    assert float(made(batch).total.detach()) == pytest.approx(total, rel=1e-4)


def test_a_place_is_rebuilt_from_the_embedding_and_what_it_sees_and_never_from_itself() -> None:
    made, batch = wide(hide=0.4), examples.batch((9,), family="bert")
    embedding = torch.randn(1, 32, generator=torch.Generator().manual_seed(0))
    seen = made.seen(batch)[0]
    before = made.rebuilt(embedding, batch)
    for other in range(9):
        ids = batch.ids.clone()
        ids[other] = next(id for id in examples.ordinary("bert") if id != ids[other])
        moved = (made.rebuilt(embedding, batch._replace(ids=ids)) - before).abs().amax(1) > 1e-7
        wanted = seen[:, other] if other else torch.zeros(9, dtype=torch.bool)  # h stands where the first token stood
        assert torch.equal(moved, wanted)
        assert not moved[other]
    moved = (made.rebuilt(embedding + 1e-1 * torch.arange(32), batch) - before).abs().amax(1) > 1e-7
    assert bool(moved.all())


def test_the_encoder_is_heard_through_its_first_state_alone() -> None:
    made, batch = wide(), examples.batch(family="bert")
    states = made.encoder.states(batch.inputs, batch.layout).detach().requires_grad_()
    made.rebuilt(made.embedding(states, batch), batch).square().sum().backward()
    assert states.grad is not None
    heard = states.grad.abs().amax(1) > 0
    assert heard.nonzero()[:, 0].tolist() == batch.layout.bounds[:-1].tolist()


def test_every_question_has_a_mask_of_its_own_and_it_is_not_the_encoders() -> None:
    batch = examples.batch((20,) * 30, family="bert")
    seen = RetroMAE(examples.encoder("bert"), hide=0.6).seen(batch)  # (30, 20, 20)
    assert bool(seen[:, :, 0].all())
    others = seen[:, 1:, 1:][:, ~torch.eye(19, dtype=torch.bool)]
    assert float(others.double().mean()) == pytest.approx(0.4, abs=0.02)
    assert not bool(seen[:, range(1, 20), range(1, 20)].any())
    assert len({tuple(row.tolist()) for row in seen[0, 1:]}) == 19
    nothing, everything = (RetroMAE(examples.encoder("bert"), hide=share).seen(batch)[0, 1:] for share in (1.0, 0.0))
    assert nothing.sum(1).tolist() == [1] * 19  # h alone
    assert everything.sum(1).tolist() == [19] * 19


def test_padding_is_seen_by_nobody() -> None:
    batch = examples.batch((4, 9), family="bert")
    seen = RetroMAE(examples.encoder("bert"), hide=0.0).seen(batch)
    assert not bool(seen[0, :, 4:].any())
    assert bool(seen[1, 1, 8])


@pytest.mark.parametrize("family", ["modernbert", "albert", "electra", "esm"])
def test_ragged_or_padded_or_with_a_narrow_table_every_weight_has_one_gradient(family: str) -> None:
    batch, gradients = examples.batch(family=family), []
    for ragged in (False, True) if family == "modernbert" else (False,):
        network = examples.encoder(family, ragged=ragged)
        made = RetroMAE(network)
        gradients.append(examples.gradient(made(batch).total, network))
        assert all(
            weight.grad is not None and bool(weight.grad.isfinite().all()) for weight in made.decoder.parameters()
        )
    torch.testing.assert_close(gradients[0], gradients[-1], rtol=1e-3, atol=1e-4)


def test_it_leaves_a_network_that_can_be_scored_and_says_both_losses() -> None:
    network, batch = examples.encoder("bert"), examples.batch(family="bert")
    network.watched = True
    made = RetroMAE(network)
    loss, plain = made(batch), MLM(network)(batch)
    assert made.purpose == "score"
    assert loss.predicted is not None
    assert plain.predicted is not None
    assert torch.equal(loss.predicted.correct, plain.predicted.correct)
    count = float(batch.weight.sum())
    assert float(loss.logs["masked_loss"]) == pytest.approx(float(plain.total.detach()) / count, rel=1e-5)
    both = float(loss.logs["masked_loss"] + loss.logs["rebuild_loss"])
    assert float(loss.total.detach()) == pytest.approx(both * count, rel=1e-5)


@pytest.mark.parametrize("options", [{"hide": 1.5}, {"hide": -0.1}, {"weight": 0.0}, {"weight": math.inf}])
def test_impossible_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(BesagError, match=r"'retromae'"):
        RetroMAE(examples.encoder("bert"), **options)
