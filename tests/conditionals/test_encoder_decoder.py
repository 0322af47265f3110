"""A lifted decoder sees both sides, one that is put back says what transformers says, and nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests import networks
from torch import Tensor

from besag.conditionals.encoder_decoder import EncoderDecoder, lift, put_back
from besag.errors import BesagError

FAMILIES = pytest.mark.parametrize("family", networks.DECODER_FAMILIES)


def texts(seed: int = 0) -> tuple[Tensor, Tensor]:
    """(2, 7) sources, (2, 5) targets."""
    generator = torch.Generator().manual_seed(seed)
    size = networks.vocabulary("bert").size
    return tuple(torch.randint(5, size, (2, length), generator=generator) for length in (7, 5))  # type: ignore[return-value]


@torch.no_grad()
def said(model: Any, source: Tensor, target: Tensor) -> Tensor:
    core = EncoderDecoder(model)
    states = core.write(target, core.read(source))
    return core.head(states.flatten(0, 1)).view(*target.shape, -1)


@FAMILIES
@torch.no_grad()
def test_read_write_and_head_are_the_network(family: str) -> None:
    model, (source, target) = networks.tiny_decoder(family), texts()
    plain = model(input_ids=source, decoder_input_ids=target).logits
    torch.testing.assert_close(said(model, source, target), plain, rtol=1e-4, atol=1e-4)


@FAMILIES
def test_a_lifted_decoder_sees_what_comes_after_and_one_that_is_put_back_does_not(family: str) -> None:
    model, (source, target) = networks.tiny_decoder(family), texts()
    other = target.clone()
    other[:, -1] = (other[:, -1] + 1) % 20 + 5
    before = said(model, source, target)
    torch.testing.assert_close(said(model, source, other)[:, :-1], before[:, :-1])
    lift(model)
    assert (model.config.besag_decoder, model.config.is_causal) == ("masked", False)
    lifted = said(model, source, target)
    for place in range(4):  # every place depends on every later one
        assert float((said(model, source, other)[:, place] - lifted[:, place]).abs().max()) > 1e-3
    put_back(model)
    torch.testing.assert_close(said(model, source, target), before, rtol=0, atol=0)
    assert not hasattr(model.config, "is_causal")  # which would turn the encoder too


@FAMILIES
@torch.no_grad()
def test_a_pattern_of_who_sees_whom_is_the_lifted_or_the_plain_network(family: str) -> None:
    model, (source, target) = networks.tiny_decoder(family), texts()
    core = EncoderDecoder(model)
    plain = core.write(target, core.read(source))
    whole = torch.ones(2, 5, 5, dtype=torch.bool)
    shown = torch.ones_like(source, dtype=torch.bool)
    torch.testing.assert_close(core.write(target, core.read(source, shown), shown, whole.tril()), plain)
    lifted = EncoderDecoder(lift(model))
    both = lifted.write(target, lifted.read(source))
    torch.testing.assert_close(lifted.write(target, lifted.read(source, shown), shown, whole[:, :1]), both)


@FAMILIES
@torch.no_grad()
def test_padding_changes_nothing(family: str) -> None:
    core, (source, target) = EncoderDecoder(lift(networks.tiny_decoder(family))), texts()
    source_shown, target_shown = (torch.ones_like(one, dtype=torch.bool) for one in (source, target))
    source_shown[1, 4:] = target_shown[1, 3:] = False
    beside = core.write(target, core.read(source, source_shown), source_shown, target_shown[:, None])
    alone = core.write(target[1:, :3], core.read(source[1:, :4]))
    torch.testing.assert_close(beside[1:, :3], alone, rtol=1e-4, atol=1e-5)


@FAMILIES
@torch.no_grad()
def test_the_cache_says_what_the_whole_text_says(family: str) -> None:
    core, (source, target) = EncoderDecoder(networks.tiny_decoder(family)), texts()
    memory, cache, steps = core.read(source), None, []
    for place in range(target.shape[1]):
        states, cache = core.step(target[:, place : place + 1], memory, None, cache)
        steps.append(states)
    torch.testing.assert_close(torch.cat(steps, 1), core.write(target, memory), rtol=1e-4, atol=1e-4)


def test_eager_attention_is_given_numbers_to_add() -> None:
    model, (source, _) = lift(networks.tiny_decoder("bart")), texts()
    with torch.no_grad():
        by_torch = EncoderDecoder(model).read(source, torch.ones_like(source, dtype=torch.bool))
        model.set_attn_implementation("eager")
        eager = EncoderDecoder(model).read(source, torch.ones_like(source, dtype=torch.bool))
    torch.testing.assert_close(eager, by_torch, rtol=1e-4, atol=1e-4)


def test_a_decoder_that_cannot_be_lifted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = networks.tiny_decoder("bart")
    for layer in model.model.decoder.layers:  # deaf to all but its own place
        layer.self_attn.forward = lambda hidden_states, **_: (torch.zeros_like(hidden_states), None)
    with pytest.raises(BesagError, match="BartForConditionalGeneration cannot be lifted"):
        lift(model)
