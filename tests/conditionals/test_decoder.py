"""Decoders beside a source, held to transformers' own forward pass, and to what they must refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests import networks
from torch import Tensor

import besag
from besag.conditionals.contract import GivenSource
from besag.conditionals.decoder import CausalDecoder, MaskedDecoder
from besag.conditionals.encoder_decoder import lift
from besag.conditionals.length_head import FILE, LengthHead
from besag.conditionals.loading import describe, load_conditionals
from besag.errors import BesagError

FAMILIES = pytest.mark.parametrize("family", networks.DECODER_FAMILIES)
SOURCES = ["the cat sat", "a dog ran to the cat"]
TARGETS = ["cats sat", "the dog ran home"]
WORDS = networks.vocabulary("bert")


def masked(family: str) -> Any:
    return lift(networks.tiny_decoder(family))


@torch.no_grad()
def by_hand(model: Any, source: str, ids: Tensor) -> Tensor:  # (L, V)
    """log p at every place of one target, by the network's own forward."""
    given = torch.from_numpy(WORDS.encode([source])[0].ids)[None]
    full = torch.ones(1, 1, len(ids), len(ids), dtype=torch.bool)
    logits = model(input_ids=given, decoder_input_ids=ids[None], decoder_attention_mask=full).logits
    return logits[0].log_softmax(-1)


@FAMILIES
def test_pll_beside_a_source(family: str) -> None:
    model = masked(family)
    lm = besag.load((model, WORDS.tokenizer))
    assert isinstance(lm.conditionals, MaskedDecoder)
    assert isinstance(lm.conditionals, GivenSource)
    found = lm.score(TARGETS, "pll", sources=SOURCES)
    for source, target, score in zip(SOURCES, TARGETS, found, strict=True):
        [encoded] = WORDS.encode([target])
        ids = torch.from_numpy(encoded.ids)
        for place, log_prob in zip(encoded.places, score.log_probs, strict=True):
            hidden = ids.clone()
            hidden[place] = WORDS.mask_id
            assert log_prob == pytest.approx(float(by_hand(model, source, hidden)[place, ids[place]]), abs=1e-4)
    alone = [lm.given(source).score(target, "pll").total for source, target in zip(SOURCES, TARGETS, strict=True)]
    assert [one.total for one in found] == pytest.approx(alone, abs=1e-4)


@FAMILIES
def test_what_comes_after_a_place_and_the_source_count(family: str) -> None:
    lm = besag.load((masked(family), WORDS.tokenizer))
    one, other = (
        lm.given(source).score(text, "unmasked").log_probs[0]
        for source, text in ((SOURCES[0], "cats sat home"), (SOURCES[1], "cats sat home"))
    )
    assert one != pytest.approx(other, abs=1e-3)
    later = lm.given(SOURCES[0]).score("cats sat dog", "unmasked").log_probs[0]
    assert one != pytest.approx(later, abs=1e-4)


def test_a_source_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = besag.load((masked("bart"), WORDS.tokenizer))
    read: list[int] = []
    encode = lm.conditionals.encode
    monkeypatch.setattr(lm.conditionals, "encode", lambda ids, mask: (read.append(len(ids)), encode(ids, mask))[1])
    lm.score([*TARGETS, *reversed(TARGETS)], "pll", sources=[*SOURCES, *SOURCES])
    lm.given(SOURCES[0]).joint("the [MASK] [MASK] home")
    assert sum(read) == 2


@FAMILIES
@pytest.mark.parametrize("prefixed", [False, True])
def test_the_chain_rule_of_a_causal_decoder(family: str, prefixed: bool) -> None:
    """The start token stands before the target: the tokenizer's first one, or (as in BART) another before that."""
    start = WORDS.tokenizer.sep_token_id if prefixed else WORDS.tokenizer.cls_token_id
    model = networks.tiny_decoder(family, decoder_start_token_id=start)
    lm = besag.load((model, WORDS.tokenizer))
    assert isinstance(lm.conditionals, CausalDecoder)
    found = lm.score(TARGETS, "causal", sources=SOURCES)
    for source, target, score in zip(SOURCES, TARGETS, found, strict=True):
        given, own = (torch.from_numpy(WORDS.encode([text])[0].ids)[None] for text in (source, target))
        inputs = torch.cat([torch.full((1, 1), start), own[:, :-1]], 1) if prefixed else own[:, :-1]
        asked = own if prefixed else own[:, 1:]
        with torch.no_grad():
            log_probs = model(input_ids=given, decoder_input_ids=inputs).logits.log_softmax(-1)
        each = log_probs.gather(-1, asked[..., None])[0, :, 0]
        text = each[1:-1] if prefixed else each[:-1]  # neither the first special token nor the end
        np.testing.assert_allclose(score.log_probs, text.numpy(), atol=1e-4)


@FAMILIES
@pytest.mark.parametrize("decoder", ["masked", "causal"])
def test_saved_and_loaded(family: str, decoder: str, tmp_path: Path) -> None:
    model = masked(family) if decoder == "masked" else networks.tiny_decoder(family)
    model.save_pretrained(tmp_path)
    WORDS.tokenizer.save_pretrained(tmp_path)
    facts = describe(tmp_path)
    assert facts["usable"], facts["why_not"]
    assert (facts["kind"], facts["width"]) == (f"{decoder} decoder", WORDS.size)
    method = "pll" if decoder == "masked" else "causal"
    before = besag.load((model, WORDS.tokenizer)).given(SOURCES[0]).score(TARGETS[0], method).total
    loaded = besag.load(tmp_path, device="cpu")
    assert loaded.given(SOURCES[0]).score(TARGETS[0], method).total == pytest.approx(before, abs=1e-5)


def test_a_causal_checkpoint_given_as_a_masked_one_is_told(tmp_path: Path) -> None:
    with pytest.raises(BesagError, match='does not say besag_decoder = "masked"'):
        MaskedDecoder(networks.tiny_decoder("bart"), WORDS, "mine")
    lm = besag.load((networks.tiny_decoder("bart"), WORDS.tokenizer))
    with pytest.raises(BesagError, match="needs a masked model"):
        lm.given("the cat").score("cats", "pll")
    networks.tiny_decoder("bart").save_pretrained(tmp_path)
    WORDS.tokenizer.save_pretrained(tmp_path)
    said = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**said, "besag_decoder": "both"}))
    with pytest.raises(BesagError, match="besag_decoder='both', where besag knows masked, causal"):
        load_conditionals(tmp_path, device="cpu")


def test_what_is_refused(tmp_path: Path) -> None:
    lm = besag.load((masked("bart"), WORDS.tokenizer))
    with pytest.raises(BesagError, match="no source was given"):
        lm.score("cats sat")
    with pytest.raises(BesagError, match=f"has no length head \\({FILE}"):
        lm.given("the cat").score("cats", "chain", lengths="predicted")
    with pytest.raises(BesagError, match="not run on 8-bit numbers"):
        load_conditionals((masked("bart"), WORDS.tokenizer), dtype="int8")
    long = " ".join(["cat"] * 60)
    assert lm.given("the cat").score(long).status == "long"
    with pytest.raises(BesagError, match="has 62 tokens"):
        lm.given(long)


def test_a_length_head_lies_beside_the_weights(tmp_path: Path) -> None:
    model = masked("bart")
    model.save_pretrained(tmp_path)
    WORDS.tokenizer.save_pretrained(tmp_path)
    head = LengthHead(32, 6)
    torch.nn.init.normal_(head.linear.weight)
    head.save(tmp_path)
    lm = besag.load(tmp_path, device="cpu").given(SOURCES[0])
    found = lm.score(TARGETS[0], "chain", lengths="predicted")
    states = lm.engine.encoded(lm.conditionals.source_ids([SOURCES[0]]))[0]
    with torch.no_grad():
        assert found.extra["length"] == pytest.approx(float(head(states[None])[0, len(found.log_probs) - 1]), abs=1e-5)
