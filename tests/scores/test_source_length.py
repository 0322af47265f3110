"""log P(x | s) = log p(n | s) + log P(x | n, s): a law over targets of all lengths, by the head of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests import networks

import besag
from besag.conditionals.encoder_decoder import lift
from besag.conditionals.length_head import LengthHead
from besag.errors import BesagError
from besag.scores.source_length import SourceLengths

WORDS = networks.vocabulary("bert")
SOURCES = ["the cat", "dogs sleep on the table"]


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = Path(tmp_path_factory.mktemp("lengths"))
    lift(networks.tiny_decoder("bart")).save_pretrained(folder)
    WORDS.tokenizer.save_pretrained(folder)
    head = LengthHead(32, 4)
    torch.manual_seed(0)
    torch.nn.init.normal_(head.linear.weight)
    head.save(folder)
    return besag.load(folder, device="cpu")


def test_a_law_for_each_source(lm: Any) -> None:
    lengths = SourceLengths(lm.engine)
    laws = [lengths.law(ids) for ids in lm.conditionals.source_ids(SOURCES)]
    assert np.exp(laws).sum(1) == pytest.approx([1.0, 1.0])
    assert not np.allclose(*laws)
    assert lengths.likeliest(2, lm.conditionals.source_ids(SOURCES)[0]) == (np.argsort(-laws[0])[:2] + 1).tolist()
    own = SourceLengths(lm.given(SOURCES[0]).engine)
    assert own.law(None) == pytest.approx(laws[0])
    assert own.log_prob(5) == -np.inf
    with pytest.raises(BesagError, match="none was given"):
        lengths.law(None)


def test_added_to_each_score_of_its_own_source(lm: Any) -> None:
    texts = ["cats", "dogs sleep"]
    plain, whole = (lm.score(texts, "chain", sources=SOURCES, lengths=one) for one in (None, "predicted"))
    lengths = SourceLengths(lm.engine)
    for source, before, after in zip(SOURCES, plain, whole, strict=True):
        log_n = lengths.log_prob(len(before.log_probs), lm.conditionals.source_ids([source])[0])
        assert after.total == pytest.approx(before.total + log_n, abs=1e-5)
        assert after.extra["length"] == pytest.approx(log_n, abs=1e-5)
    assert "every length" in whole[0].normalised


def test_what_has_no_probability_is_told(lm: Any) -> None:
    assert lm.given(SOURCES[0]).score("cats sleep on the mat", "chain", lengths="predicted").status == "long"


def test_what_is_refused(lm: Any) -> None:
    with pytest.raises(BesagError, match="'small-en' predicts no length from a source"):
        besag.load().score("It rained.", "chain", lengths="predicted")
    with pytest.raises(BesagError, match="p\\(n\\) goes with a probability of texts of one length"):
        lm.given(SOURCES[0]).score("cats", "pll", lengths="predicted")
    with pytest.raises(BesagError, match="lengths='other'"):
        lm.given(SOURCES[0]).score("cats", "chain", lengths="other")
