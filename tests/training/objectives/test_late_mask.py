"""late_mask against a network run by hand, and against mlm where the two are one."""

from __future__ import annotations

import pytest
import torch
from tests.training.objectives import examples
from tests.training.objectives.rows import alone
from torch import Tensor

from besag.errors import BesagError
from besag.training.objectives.late_mask import LateMask
from besag.training.objectives.mlm import MLM


def by_hand(model: torch.nn.Module, ids: Tensor, inputs: Tensor, mask_id: int, after: int) -> Tensor:  # (n, V)
    """One BERT passage, with its modules called one after the other. Nothing is padded, so nothing is masked out."""
    shown = (inputs != mask_id).nonzero()[:, 0]
    number = torch.arange(len(ids))
    embedded = model.bert.embeddings(input_ids=inputs[None], position_ids=number[None])
    early = model.bert.embeddings(input_ids=inputs[None, shown], position_ids=number[None, shown])
    for layer in model.bert.encoder.layer[:after]:
        early = layer(early)
    whole = [early[0, shown.tolist().index(i)] if i in shown else embedded[0, i] for i in range(len(ids))]
    states = torch.stack(whole)[None]
    for layer in model.bert.encoder.layer[after:]:
        states = layer(states)
    return model.cls(states)[0].log_softmax(-1)


@pytest.mark.parametrize("after", [1, 2, 3])
def test_the_loss_by_hand(after: int) -> None:
    network, batch = examples.encoder("bert", num_hidden_layers=4), examples.batch(family="bert")
    total = 0.0
    for row in range(3):
        part = alone(batch, row)
        log_probs = by_hand(network.model, part.ids, part.inputs, network.mask_id, after)
        total -= float((log_probs[part.asked, part.ids[part.asked]] * part.weight).sum().detach())
    assert float(LateMask(network, after=after)(batch).total) == pytest.approx(total, rel=1e-5)
    assert abs(float(MLM(network)(batch).total) - total) > 0.01


def test_rotary_places_by_hand() -> None:
    """ModernBERT, whose layers turn by the place in the text and not by the column. Wide windows cut nothing off."""
    network, batch = examples.encoder("modernbert", local_attention=64), examples.batch((9,))
    body, kinds = network.body, network.model.config.layer_types
    shown = (batch.inputs != network.mask_id).nonzero()[:, 0]
    assert shown.tolist() != list(range(len(shown)))
    states = body.embeddings(input_ids=batch.inputs[None])
    for index, (kind, places) in enumerate(zip(kinds, [shown, torch.arange(9)], strict=True)):
        part = states[:, places]
        part = body.layers[index](part, position_embeddings=body.rotary_emb(part, places[None], kind))
        states = states.index_put((torch.tensor(0), places), part[0])
    log_probs = network.model.decoder(network.model.head(body.final_norm(states)))[0].log_softmax(-1)
    expected = -(log_probs[batch.asked, batch.ids[batch.asked]] * batch.weight).sum()
    torch.testing.assert_close(LateMask(network, after=1)(batch).total, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", ["modernbert", "roberta", "albert"])
@pytest.mark.parametrize("options", [{"after": 0}, {"after": 1, "mlm_share": 1.0}])
def test_masks_from_the_first_layer_are_mlm(family: str, options: dict[str, float]) -> None:
    network, batch = examples.encoder(family), examples.batch(family=family)
    expected = examples.gradient(MLM(network)(batch).total, network)
    found = examples.gradient(LateMask(network, **options)(batch).total, network)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_a_share_of_the_passages_is_plain() -> None:
    """Each passage is one or the other, by its draw alone, and about the share of them are plain."""
    network = examples.encoder("bert")
    late, mixed, plain = LateMask(network, after=1), LateMask(network, after=1, mlm_share=0.3), MLM(network)
    assert (late.purpose, mixed.purpose) == ("encode", "score")
    batch = examples.batch((6, 7, 5, 8) * 25, family="bert")
    parts = [alone(batch, row) for row in range(100)]
    with torch.no_grad():
        one, other = (torch.stack([each(part).total for part in parts]) for each in (late, plain))
        both = torch.stack([mixed(part).total for part in parts])
        assert float(mixed(batch).total) == pytest.approx(float(both.sum()), rel=1e-5)
    told = (one - other).abs() > 1e-3  # a passage with nothing hidden is the same either way
    is_plain = (both - other).abs() < 1e-4
    assert bool((is_plain | ((both - one).abs() < 1e-4)).all())
    assert int(told.sum()) > 80
    assert 0.15 < float(is_plain[told].float().mean()) < 0.45


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_ragged_and_padded_batches_have_one_loss_and_gradient(family: str) -> None:
    batch, gradients = examples.batch(family=family), []
    for ragged in (False, True):
        network = examples.encoder(family, ragged=ragged)
        gradients.append(examples.gradient(LateMask(network, after=1)(batch).total, network))
    assert float(gradients[0].abs().max()) > 1e-3
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-4)


def test_every_weight_that_counts_is_trained() -> None:
    network, batch = examples.encoder("modernbert"), examples.batch()
    LateMask(network, after=1)(batch).total.backward()
    still = [name for name, weight in network.model.named_parameters() if weight.grad is None]
    assert still == []


def test_a_passage_with_everything_hidden_has_a_finite_loss() -> None:
    network, batch = examples.encoder("bert"), examples.batch((5, 6), family="bert")
    inputs = torch.where(batch.layout.row == 0, network.mask_id, batch.inputs)
    free = batch.free | (batch.layout.row == 0)
    asked = torch.arange(5)
    batch = batch._replace(inputs=inputs, free=free, asked=asked, weight=torch.ones(5))
    found = examples.gradient(LateMask(network, after=1)(batch).total, network)
    assert bool(found.isfinite().all())


@pytest.mark.parametrize("after", [2, -1])
def test_masks_must_come_before_the_last_layer(after: int) -> None:
    with pytest.raises(BesagError, match=f"after {after} of 2 layers.* after = 0 to 1"):
        LateMask(examples.encoder("bert"), after=after)
