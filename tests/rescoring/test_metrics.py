"""Metrics beside jiwer and sacrebleu themselves, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.rescoring.metrics import metric_named

jiwer = pytest.importorskip("jiwer")
sacrebleu = pytest.importorskip("sacrebleu")

REFERENCES = ["the cat sat on the mat today", "there is a dog here", "no", "it was quite all right then"]
HYPOTHESES = ["the cat sat on mat to day", "there is the dog here now", "no", "it was quiet all write then"]
WORDS = st.lists(st.sampled_from(["a", "b", "cc", "d"]), min_size=1, max_size=6).map(" ".join)


def test_errors_by_hand() -> None:
    # one deletion and one substitution + insertion; one substitution and one insertion; none; two substitutions
    assert metric_named("wer").statistics(REFERENCES, HYPOTHESES).tolist() == [[3, 7], [2, 5], [0, 1], [2, 6]]
    assert metric_named("wer").value(np.array([7.0, 19.0])) == pytest.approx(700 / 19)
    assert metric_named("cer").statistics(["a b"], ["ab"]).tolist() == [[1, 3]]
    assert metric_named("wer").statistics([""], ["two words"]).tolist() == [[2, 0]]
    assert np.isnan(metric_named("wer").value(np.zeros(2)))


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_sums_are_what_jiwer_says(pairs) -> None:
    references, hypotheses = map(list, zip(*pairs, strict=True))
    for name, judge in (("wer", jiwer.wer), ("cer", jiwer.cer)):
        metric = metric_named(name)
        assert metric.value(metric.statistics(references, hypotheses).sum(0)) == pytest.approx(
            100 * judge(references, hypotheses)
        )


@pytest.mark.parametrize(
    ("name", "judge"),
    [("bleu", sacrebleu.corpus_bleu), ("chrf", sacrebleu.corpus_chrf), ("ter", sacrebleu.corpus_ter)],
)
def test_sums_are_what_sacrebleu_says(name, judge) -> None:
    metric = metric_named(name)
    found = metric.value(metric.statistics(REFERENCES, HYPOTHESES).sum(0))
    assert found == pytest.approx(judge(HYPOTHESES, [REFERENCES]).score)
    assert metric.loss(metric.statistics(REFERENCES, HYPOTHESES).sum(0)) == (found if name == "ter" else -found)
