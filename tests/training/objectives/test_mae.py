"""mae against an encoder and a decoder run by hand, and against mlm where the two are one."""

from __future__ import annotations

import math

import pytest
import torch
from tests.training.objectives import examples
from tests.training.objectives.rows import alone
from torch import Tensor

from besag.errors import BesagError
from besag.training.network.batch import Batch
from besag.training.objectives.mae import MAE
from besag.training.objectives.mlm import MLM

HEADS = {"bert": lambda model: model.cls, "modernbert": lambda model: lambda x: model.decoder(model.head(x))}


def block(part: torch.nn.Module, states: Tensor, heads: int) -> Tensor:  # (n, H)
    """One pre-norm block, place by place, with complex numbers for the rotation."""
    length, width = states.shape
    size = width // heads
    mixed = part.mixed(part.before_attention(states)).view(length, 3, heads, size)
    speed = torch.tensor([10_000.0 ** (-d / (size // 2)) for d in range(size // 2)])

    def turned(vector: Tensor, place: int) -> Tensor:
        return torch.complex(vector[: size // 2], vector[size // 2 :]) * torch.exp(1j * place * speed)

    read = torch.zeros(length, heads, size)
    for head in range(heads):
        for i in range(length):
            query = turned(mixed[i, 0, head], i)
            scores = [(query * turned(mixed[j, 1, head], j).conj()).real.sum() / math.sqrt(size) for j in range(length)]
            read[i, head] = torch.stack(scores).softmax(0) @ mixed[:, 2, head]
    states = states + part.out(read.flatten(1))
    return states + part.down(torch.nn.functional.gelu(part.up(part.before_mlp(states))))


def by_hand(objective: MAE, family: str, batch: Batch) -> Tensor:  # (n, V)
    model = objective.encoder.model
    shown = ((batch.inputs != objective.encoder.mask_id) | ~batch.free).nonzero()[:, 0]
    encoded = objective.encoder.body(input_ids=batch.inputs[None, shown], position_ids=shown[None])[0][0]
    states = torch.stack(
        [encoded[shown.tolist().index(i)] if i in shown else objective.gap for i in range(len(batch.ids))]
    )
    for part in objective.decoder.blocks:
        states = block(part, states, 2)
    return HEADS[family](model)(objective.decoder.norm(states)).log_softmax(-1)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("family", HEADS)
def test_the_loss_by_hand(family: str, ragged: bool) -> None:
    objective = MAE(examples.encoder(family), layers=2, seed=3)
    for weight in [*objective.decoder.parameters(), objective.gap]:  # wide, so that every part of it tells
        weight.data.add_(0.3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    batch, total = examples.batch(family=family), 0.0
    for row in range(3):
        part = alone(batch, row)
        log_probs = by_hand(objective, family, part)
        total -= float((log_probs[part.asked, part.ids[part.asked]] * part.weight).sum().detach())
    if ragged:
        whole = examples.encoder(family, ragged=True, model=objective.encoder.model)
        objective.encoder = whole
    assert float(objective(batch).total) == pytest.approx(total, rel=1e-4)


def test_the_encoder_never_sees_a_mask() -> None:
    """Another mask embedding, another hidden token: the same states go into the decoder, and nothing else changes."""
    network, batch = examples.encoder("bert"), examples.batch(family="bert")
    seen = []
    objective = MAE(network, layers=1)
    network.body.register_forward_pre_hook(lambda _, __, inputs: seen.append(inputs["input_ids"]), with_kwargs=True)
    objective(batch)
    assert len(seen) == 1
    assert network.mask_id not in seen[0]
    assert int((seen[0] != network.pad_id).sum()) == int((batch.inputs != network.mask_id).sum())


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_a_share_of_one_is_mlm_and_the_decoder_has_a_gradient_of_zero(family: str) -> None:
    network, batch = examples.encoder(family), examples.batch(family=family)
    expected = examples.gradient(MLM(network)(batch).total, network)
    objective = MAE(network, mlm_share=1.0)
    found = examples.gradient(objective(batch).total, network)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert all(w.grad is not None and not w.grad.any() for w in objective.decoder.parameters())


def test_passages_are_plain_or_not_by_their_draw() -> None:
    network = examples.encoder("bert")
    mixed, batch = MAE(network, layers=1, mlm_share=0.5), examples.batch((6, 7, 5, 8) * 8, family="bert")
    sides = [MAE(network, layers=1), MLM(network)]
    with torch.no_grad():
        parts = [alone(batch, row) for row in range(32)]
        both = [float(mixed(part).total) for part in parts]
        assert float(mixed(batch).total) == pytest.approx(sum(both), rel=1e-5)
        which = []
        for part, found in zip(parts, both, strict=True):
            losses = [float(side(part).total) for side in sides]
            if abs(losses[0] - losses[1]) > 1e-3:
                which.append(min((0, 1), key=lambda side: abs(losses[side] - found)))
                assert found == pytest.approx(losses[which[-1]], abs=1e-4)
    assert 0.25 < sum(which) / len(which) < 0.75
    assert (mixed.purpose, sides[0].purpose) == ("score", "encode")


def test_ragged_and_padded_batches_have_one_gradient_and_every_weight_has_one() -> None:
    batch, gradients = examples.batch(), []
    for ragged in (False, True):
        network = examples.encoder(ragged=ragged)
        objective = MAE(network, layers=2)
        gradients.append(examples.gradient(objective(batch).total, network))
        untrained = [name for name, weight in objective.named_parameters() if weight.grad is None]
        assert untrained == []
        assert float(objective.gap.grad.abs().max()) > 0
    assert float(gradients[0].abs().max()) > 1e-3
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-4)


def test_a_passage_with_everything_hidden_has_a_finite_loss() -> None:
    network, batch = examples.encoder("bert"), examples.batch((5, 6), family="bert")
    inputs = torch.where(batch.layout.row == 0, network.mask_id, batch.inputs)
    batch = batch._replace(
        inputs=inputs, free=batch.free | (batch.layout.row == 0), asked=torch.arange(5), weight=torch.ones(5)
    )
    found = examples.gradient(MAE(network, layers=1)(batch).total, network)
    assert bool(found.isfinite().all())


def test_a_seed_gives_one_decoder_whatever_torch_did_before() -> None:
    weights = []
    for seed, noise in ((5, 0), (5, 1), (6, 1)):
        torch.manual_seed(noise)
        objective = MAE(examples.encoder("bert"), layers=1, seed=seed)
        weights.append(torch.cat([w.flatten() for w in [*objective.decoder.parameters(), objective.gap]]))
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])


@pytest.mark.parametrize("options", [{"layers": 0}, {"layers": 10**9}, {"mlm_share": 1.5}])
def test_impossible_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(BesagError, match=r"'mae'"):
        MAE(examples.encoder("bert"), **options)


def test_networks_that_count_columns_are_refused() -> None:
    with pytest.raises(BesagError, match="DebertaV2ForMaskedLM measures where tokens stand by their columns"):
        MAE(examples.encoder("deberta-v2"))
