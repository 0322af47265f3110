"""A beam that is wide enough finds what enumeration finds; a beam of one takes the likeliest token at every step."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from tests import networks
from tests.tokenizers import build
from torch import Tensor

from besag.conditionals.decoder import CausalDecoder
from besag.conditionals.encoder_decoder import lift
from besag.errors import BesagError
from besag.translation.left_to_right import translate
from besag.vocabulary import Vocabulary

WORDS = networks.vocabulary("bert")
SOURCES = ["the cat", "dogs sleep on the table", "cats"]
FAMILIES = pytest.mark.parametrize("family", networks.DECODER_FAMILIES)
FEW = 4  # tokens that can be written in the enumerated network


def decoder(family: str, **changes: Any) -> CausalDecoder:
    return CausalDecoder(networks.tiny_decoder(family, **changes), WORDS, "tiny")


@torch.no_grad()
def log_probs(who: CausalDecoder, source: str, written: list[int]) -> Tensor:  # (V,)
    """Of the next token, by transformers' own forward on the whole."""
    ids = torch.tensor([[*who.begins, *written]])
    given = torch.from_numpy(WORDS.encode([source])[0].ids)[None]
    return who.model(input_ids=given, decoder_input_ids=ids).logits[0, -1].log_softmax(-1)


@FAMILIES
@pytest.mark.parametrize("prefixed", [False, True])
def test_greedy_takes_the_likeliest_token(family: str, prefixed: bool) -> None:
    start = WORDS.tokenizer.sep_token_id if prefixed else WORDS.tokenizer.cls_token_id
    who, end = decoder(family, decoder_start_token_id=start), WORDS.tokenizer.sep_token_id
    never = sorted(WORDS.special_ids - {end, WORDS.unknown_id})
    found = translate(who, SOURCES, most=6)
    for source, [hypothesis] in zip(SOURCES, found, strict=True):
        written: list[int] = []
        total = 0.0
        while True:
            scores = log_probs(who, source, written)
            scores[never] = -torch.inf
            token = end if len(written) == 5 else int(scores.argmax())  # the sixth must end it
            total += float(scores[token])
            if token == end:
                break
            written.append(token)
        assert hypothesis.ids == tuple(written)
        assert hypothesis.log_prob == pytest.approx(total, abs=1e-3)
        assert hypothesis.score == pytest.approx(total / (len(written) + 1), abs=1e-3)
        assert hypothesis.text == WORDS.tokenizer.decode(written, skip_special_tokens=True).strip()


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_wide_beam_is_exact(alpha: float) -> None:
    """Of all targets of up to two tokens over four words, every one is found, in the order of enumeration."""
    who, end = decoder("bart"), WORDS.tokenizer.sep_token_id
    few = [id for id in range(WORDS.size) if id not in WORDS.special_ids][:FEW]
    with torch.no_grad():  # nothing else can be written
        who.model.final_logits_bias[:] = -1e4
        who.model.final_logits_bias[0, [*few, end]] = 0.0
    every = [list(one) for length in range(3) for one in product(few, repeat=length)]
    for source in SOURCES[:2]:
        scored = []
        for written in every:
            total = sum(float(log_probs(who, source, written[:at])[token]) for at, token in enumerate([*written, end]))
            scored.append((total / (len(written) + 1) ** alpha, tuple(written), total))
        best = sorted(scored, reverse=True)
        [found] = translate(who, [source], beam=64, alpha=alpha, most=3)
        assert {one.ids for one in found} >= {ids for _, ids, _ in best}
        for one, (score, ids, total) in zip(found[:5], best[:5], strict=True):
            assert one.ids == ids
            assert (one.score, one.log_prob) == pytest.approx((score, total), abs=1e-3)


@FAMILIES
def test_batches_change_nothing(family: str) -> None:
    who = decoder(family)
    together = translate(who, SOURCES, beam=3)
    alone = [translate(who, [source], beam=3, batch_tokens=1)[0] for source in SOURCES]
    for one, other in zip(together, alone, strict=True):
        assert [each.ids for each in one] == [each.ids for each in other]
        assert [each.log_prob for each in one] == pytest.approx([each.log_prob for each in other], abs=1e-3)
    assert all(len(one) <= 3 for one in together)


@FAMILIES
def test_beginnings_that_are_read_again_lead_where_a_cache_leads(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on CUDA, where a pass over all tokens is recorded and one beside a cache cannot be."""
    who = decoder(family)
    cached = translate(who, SOURCES, beam=3, most=6)
    monkeypatch.setattr(who, "rereads", lambda *_: True)
    monkeypatch.setattr(who.core, "step", None)
    for one, other in zip(translate(who, SOURCES, beam=3, most=6), cached, strict=True):
        assert [each.ids for each in one] == [each.ids for each in other]
        assert [each.log_prob for each in one] == pytest.approx([each.log_prob for each in other], abs=1e-3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@FAMILIES
def test_on_cuda_beginnings_are_recorded(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    who = CausalDecoder(networks.tiny_decoder(family).cuda(), WORDS, "tiny")
    for _ in range(5):
        found = translate(who, SOURCES[:1], beam=3, most=6)
    assert who.replay.graphs
    assert not who.replay.impossible
    monkeypatch.setattr(who, "rereads", lambda *_: False)
    [cached] = translate(who, SOURCES[:1], beam=3, most=6)
    assert [one.ids for one in found[0]] == [one.ids for one in cached]


def test_a_tokenizer_that_puts_nothing_first() -> None:
    """T5's and Marian's: the decoder's start stands before the target, and is put there by whoever asks."""
    tokenizer = build("wordpiece-uncased")
    tokenizer.backend_tokenizer.post_processor = _end_only(tokenizer)
    who = CausalDecoder(networks.tiny_decoder("t5", decoder_start_token_id=0), Vocabulary(tokenizer), "tiny")
    assert (who.prefixed, who.begins) == (False, (0,))
    assert translate(who, ["the cat"], most=4)[0]


def _end_only(tokenizer: Any) -> Any:
    from tokenizers.processors import TemplateProcessing

    return TemplateProcessing(single="$A [SEP]", special_tokens=[("[SEP]", tokenizer.sep_token_id)])


def test_what_is_refused() -> None:
    masked = lift(networks.tiny_decoder("bart"))
    from besag.conditionals.decoder import MaskedDecoder

    with pytest.raises(BesagError, match="'mine' has no left-to-right decoder"):
        translate(MaskedDecoder(masked, WORDS, "mine"), ["the cat"])
    who = decoder("bart")
    for wrong in ({"beam": 0}, {"alpha": -1.0}, {"most": 100}, {"batch_tokens": 0}):
        with pytest.raises(BesagError, match=next(iter(wrong))):
            translate(who, ["the cat"], **wrong)
    with pytest.raises(BesagError, match="has 62 tokens"):
        translate(who, [" ".join(["cat"] * 60)])
    assert translate(who, []) == []
