"""Scores of real networks of every family, against a plain loop over the full forward pass of transformers."""

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.networks import MASKED_FAMILIES, tiny, vocabulary

import besag
from besag.conditionals.causal import Causal
from besag.conditionals.split import Head
from besag.conditionals.transformer import Transformer
from besag.files.regions import cut
from besag.language_model import LanguageModel
from besag.spans import tokens_of

TEXTS = ["The cats sleep on the mat.", "The traveller's souvenir didn't sleep!", "Dogs bark"]
PROTEINS = ["LAGVSERTIDPK", "MHWC", "QNFY"]
HIDES = {  # which places are hidden when place t of n is asked, given the words
    "pll": lambda t, n, words: [t],
    "word_l2r": lambda t, n, words: [s for s in range(t, n) if words[s] == words[t]],
    "whole_word": lambda t, n, words: [s for s in range(n) if words[s] == words[t]],
    "chain": lambda t, n, words: list(range(t, n)),
    "unmasked": lambda t, n, words: [],
}


def texts_for(family: str) -> list[str]:
    return PROTEINS if family == "esm" else TEXTS


@cache
def language_model(family: str, batch_tokens: int | None = None) -> LanguageModel:
    kind = Causal if family == "gpt2" else Transformer
    return LanguageModel(kind(tiny(family), vocabulary(family), family), batch_tokens=batch_tokens)


@torch.no_grad()
def by_hand(lm: LanguageModel, text: str, method: str) -> list[float]:
    """One full forward pass a token, all logits, nothing shared."""
    [encoded] = lm.vocabulary.encode([text])
    places, values = encoded.places, []
    words = encoded.words[places]
    for t, place in enumerate(places):
        ids = torch.from_numpy(encoded.ids.copy())
        ids[places[HIDES[method](t, len(places), words)]] = lm.vocabulary.mask_id
        logits = lm.model(input_ids=ids[None], attention_mask=torch.ones_like(ids)[None]).logits[0, place]
        values.append(float(torch.log_softmax(logits.double(), -1)[encoded.ids[place]]))
    return values


@pytest.mark.parametrize("method", HIDES)
@pytest.mark.parametrize("family", MASKED_FAMILIES)
def test_every_family_scores_as_the_plain_forward_pass_says(family, method):
    lm = language_model(family)
    for text, score in zip(texts_for(family), lm.score(texts_for(family), method=method), strict=True):
        assert score.status == "ok"
        np.testing.assert_allclose(score.log_probs, by_hand(lm, text, method), atol=1e-4)


def test_a_causal_network_scores_as_the_plain_forward_pass_says():
    lm = language_model("gpt2")
    for text, score in zip(TEXTS, lm.score(TEXTS, method="causal"), strict=True):
        ids = torch.tensor([lm.conditionals.bos_id, *lm.tokenizer(text)["input_ids"]])
        with torch.no_grad():
            log_probs = torch.log_softmax(lm.model(input_ids=ids[None]).logits[0].double(), -1)
        np.testing.assert_allclose(score.log_probs, log_probs[range(len(ids) - 1), ids[1:]], atol=1e-4)
        assert score.specials == "<|endoftext|> … shown, not scored"


@settings(max_examples=12)
@given(
    texts=st.lists(st.sampled_from([*TEXTS, "A man.", "cat " * 9, "", "naïve 👍🏽 résumé"]), min_size=1, max_size=6),
    batch_tokens=st.sampled_from([1, 40, 4096]),
    method=st.sampled_from([*HIDES, "elbo"]),
    family=st.sampled_from(["bert", "roberta", "modernbert"]),
)
def test_batches_order_and_duplicates_change_nothing(texts, batch_tokens, method, family):
    alone = {text: language_model(family).score(text, method=method) for text in texts}
    together = language_model(family, batch_tokens).score(texts, method=method)
    for text, score in zip(texts, together, strict=True):
        assert score.status == alone[text].status
        np.testing.assert_allclose(score.log_probs, alone[text].log_probs, atol=1e-4)


@pytest.mark.parametrize("family", ["roberta", "modernbert"])
def test_texts_longer_than_the_network_are_read_in_windows(family):
    lm = language_model(family)
    limit = lm.conditionals.max_length
    text = "The cats sleep on the mat, and the dogs bark. " * 6
    [encoded] = lm.vocabulary.encode([text])
    assert len(encoded.ids) > limit
    score = lm.score(text)
    assert len(score) == len(encoded.places)
    assert len(lm.score(text, method="unmasked")) == len(encoded.places)
    body = encoded.ids[1:-1]
    for t in (0, 7, len(body) // 2, len(body) - 1):
        start = min(max(t - (limit - 2) // 2, 0), len(body) - (limit - 2))
        ids = torch.from_numpy(np.concatenate([encoded.ids[:1], body[start : start + limit - 2], encoded.ids[-1:]]))
        ids[1 + t - start] = lm.vocabulary.mask_id
        with torch.no_grad():
            logits = lm.model(input_ids=ids[None], attention_mask=torch.ones_like(ids)[None]).logits[0, 1 + t - start]
        assert score.log_probs[t] == pytest.approx(float(torch.log_softmax(logits, -1)[body[t]]), abs=1e-4)


@pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert", "roberta"])
def test_a_low_precision_network_gets_a_float32_head(family):
    """Its rows are rounded, its logits are not: the head equals that of a float32 network with the rounded weights."""
    coarse = tiny(family).half()
    precise = tiny(family).half().float()
    rows = torch.randn(5, 32, generator=torch.Generator().manual_seed(0)).half()
    logits = Head(coarse, precise=True)(rows)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, Head(precise, precise=False)(rows.float()))
    assert coarse.dtype == torch.float16


def test_the_embedded_model_prefers_what_is_grammatical():
    lm = besag.load()
    pairs = [
        ("The keys to the cabinet are here.", "The keys to the cabinet is here."),
        ("The cats sleep on the mat.", "The cats sleeps on the mat."),
        ("She hurt herself.", "She hurt himself."),
    ]
    for method in ("pll", "word_l2r", "chain"):
        scores = lm.score([text for pair in pairs for text in pair], method=method)
        assert all(good.total > bad.total for good, bad in zip(scores[::2], scores[1::2], strict=True))


# ---- regions


@pytest.mark.parametrize("family", [*MASKED_FAMILIES, "gpt2"])
def test_regions_add_up_to_the_total_with_every_tokenizer(family: str) -> None:
    """Cut between words, before and after the space, within words and around punctuation: Σ of parts = total."""
    lm, method = language_model(family), "causal" if family == "gpt2" else "pll"
    written = "LAGV|SERT|I|DPK" if family == "esm" else "The cats | sleep| on the| mat.||The traveller|'s souv|enir | !"
    for sign in ("|", "||"):
        text, (_, spans, tiling) = cut(written, sign)
        for options in ({}, {"prefix": "" if family == "esm" else "Dogs bark at"}):
            score = lm.score(text, method, **options)
            pieces = score.by_span(spans, tiling)
            assert [piece.text for piece in pieces] == [text[start:end] for start, end in spans]
            assert np.nansum([piece.value for piece in pieces]) == pytest.approx(score.total, rel=1e-12)
            assert sum(map(len, tokens_of(score.offsets, spans, tiling))) == len(score)
