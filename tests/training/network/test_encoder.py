"""The encoder against the network's own forward, one sequence at a time."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from tests import networks

from besag.training.network import encoder as encoders
from besag.training.network.batch import Layout
from besag.training.network.encoder import Encoder

LENGTHS = torch.tensor([5, 9, 3])
RAGGED = (
    "bert",
    "roberta",
    "xlm-roberta",
    "xlm-roberta-xl",
    "distilbert",
    "albert",
    "electra",
    "modernbert",
    "camembert",
    "neobert",
    "llada_moe",
    "llada2_moe",
    "besag",
)


def made(family: str, *, ragged: bool) -> Encoder:
    words = networks.vocabulary(family)
    assert words.mask_id is not None
    assert words.pad_id is not None
    model = copy.deepcopy(networks.tiny(family)).eval()
    return Encoder(model, mask_id=words.mask_id, pad_id=words.pad_id, special_ids=words.special_ids, ragged=ragged)


def tokens(family: str) -> torch.Tensor:
    draw = torch.Generator().manual_seed(0)
    return torch.randint(5, networks.vocabulary(family).size, (int(LENGTHS.sum()),), generator=draw)


def alone(model: Any, ids: torch.Tensor) -> torch.Tensor:
    parts = ids.split(LENGTHS.tolist())
    return torch.cat([model(input_ids=one[None], attention_mask=torch.ones_like(one)[None]).logits[0] for one in parts])


@pytest.mark.parametrize("family", networks.MASKED_FAMILIES)
def test_padded_sequences_say_what_each_says_alone(family: str) -> None:
    encoder, ids = made(family, ragged=False), tokens(family)
    with torch.no_grad():
        found = encoder.logits(encoder.states(ids, Layout.of_lengths(LENGTHS)))
        torch.testing.assert_close(found, alone(encoder.model, ids), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", RAGGED)
@pytest.mark.parametrize("causal", [False, True])
def test_end_to_end_is_the_same_as_padded(family: str, causal: bool) -> None:
    ids, layout = tokens(family), Layout.of_lengths(LENGTHS)
    with torch.no_grad():
        padded, ragged = (made(family, ragged=kind).states(ids, layout, causal=causal) for kind in (False, True))
    torch.testing.assert_close(ragged, padded, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", ["modernbert", "besag"])
@pytest.mark.parametrize("ragged", [False, True])
def test_a_causal_state_knows_nothing_of_what_follows(family: str, ragged: bool) -> None:
    encoder, ids, layout = made(family, ragged=ragged), tokens(family), Layout.of_lengths(LENGTHS)
    other = ids.clone()
    other[7] = ids[7] - 1
    with torch.no_grad():
        moved = (encoder.states(ids, layout, causal=True) - encoder.states(other, layout, causal=True)).abs().amax(1)
    assert moved.nonzero().flatten().tolist() == list(range(7, 14))  # the rest of its own sequence, and no other


@pytest.mark.parametrize("family", ["modernbert", "besag"])
def test_a_pattern_says_who_sees_whom(family: str) -> None:
    encoder, ids, layout = made(family, ragged=True), tokens(family), Layout.of_lengths(LENGTHS)
    nobody = torch.zeros(3, 9, 9, dtype=torch.bool)  # everybody sees itself, and that is all
    other = ids.clone()
    other[7] = ids[7] - 1
    with torch.no_grad():
        moved = (encoder.states(ids, layout, seen=nobody) - encoder.states(other, layout, seen=nobody)).abs().amax(1)
    assert moved.nonzero().flatten().tolist() == [7]


def test_left_out_places_keep_the_others_numbers() -> None:
    """Rotary positions: a gap of any size shifts nothing but distances."""
    encoder, ids, layout = made("modernbert", ragged=False), tokens("modernbert"), Layout.of_lengths(LENGTHS)
    keep = torch.ones(len(ids), dtype=torch.bool)
    keep[[2, 8]] = False
    kept = layout.kept(keep)
    assert kept.bounds.tolist() == [0, 4, 12, 15]
    assert kept.position[:4].tolist() == [0, 1, 3, 4]
    with torch.no_grad():
        given = encoder.states(ids[keep], kept)
        row = encoder.model.model(
            input_ids=ids[keep][None, :4], position_ids=torch.tensor([[0, 1, 3, 4]]), attention_mask=torch.ones(1, 4)
        )[0][0]
    torch.testing.assert_close(given[:4], row, atol=1e-5, rtol=1e-5)


def test_losses_in_parts_are_the_losses_and_have_the_same_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = made("bert", ragged=False)
    rows = torch.randn(11, 32, requires_grad=True)
    target = torch.randint(0, encoder.width, (11,))
    whole = encoder.losses(rows, target)
    [expected] = torch.autograd.grad(whole.sum(), rows)
    monkeypatch.setattr(encoders, "LOGITS", 4 * encoder.width)
    parts = encoder.losses(rows, target)
    [found] = torch.autograd.grad(parts.sum(), rows)
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(found, expected)
    by_hand = -encoder.logits(rows).log_softmax(-1)[torch.arange(11), target]
    torch.testing.assert_close(whole, by_hand)
