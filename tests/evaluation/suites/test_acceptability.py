"""LP, MeanLP, PenLP and SLOR by their formulas, unigrams by hand, correlations by scipy."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from scipy import stats
from tests.laws import Arbitrary

import besag
from besag.errors import BesagError

DATA = Path(os.environ.get("BESAG_DATA", Path(__file__).parents[4] / "shared" / "data")) / "acceptability_in_context"
TEXTS = ["s0 s1", "s2 s2 s0", "s1 s0 s0 s2", "s0 s0"]
RATINGS = [3.5, 1.25, 2.0, 3.75]
HEAD = "ID,sentence,mean-ratings,source-language\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = zip(range(4), TEXTS, RATINGS, "eeff", strict=True)
    (tmp_path / "r.csv").write_text(HEAD + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return tmp_path / "r.csv"


def test_the_measures_are_their_formulas(data: Path, tmp_path: Path) -> None:
    lm = besag.load(Arbitrary(3))
    (tmp_path / "text.txt").write_text("s0 s0 s1\n\ns0\n")  # counts 3, 1, 0; V = 3
    found = besag.evaluate(lm, "acceptability", data=data, unigrams=str(tmp_path / "text.txt"))
    unigram = {"s0": math.log(4 / 7), "s1": math.log(2 / 7), "s2": math.log(1 / 7)}
    for text, row in zip(TEXTS, found.parts[0].rows, strict=True):
        lp, tokens = lm.score(text).total, text.split()
        n = len(tokens)
        assert row["lp"] == pytest.approx(lp)
        assert row["mean_lp"] == pytest.approx(lp / n)
        assert row["pen_lp"] == pytest.approx(lp / ((5 + n) / 6) ** 0.8)
        assert row["slor"] == pytest.approx((lp - sum(unigram[token] for token in tokens)) / n)
    for name, label in (("lp", "LP"), ("mean_lp", "MeanLP"), ("pen_lp", "PenLP"), ("slor", "SLOR")):
        values = [row[name] for row in found.parts[0].rows]
        assert found[f"Pearson {label}"].value == pytest.approx(stats.pearsonr(values, RATINGS).statistic)
        assert found[f"Spearman {label}"].value == pytest.approx(stats.spearmanr(values, RATINGS).statistic)
    assert "unigrams of text.txt" in found["Pearson SLOR"].meaning
    assert found["Pearson PenLP/e"].n == 2


def test_unigrams_may_be_counts(data: Path, tmp_path: Path) -> None:
    lm = besag.load(Arbitrary(3))
    (tmp_path / "text.txt").write_text("s0 s0 s1\ns0\n")
    (tmp_path / "counts.tsv").write_text("token\tcount\ns0\t3\ns1\t1\n")
    rows = [
        besag.evaluate(lm, "acceptability", data=data, unigrams=str(tmp_path / name)).parts[0].rows
        for name in ("text.txt", "counts.tsv")
    ]
    assert [row["slor"] for row in rows[0]] == pytest.approx([row["slor"] for row in rows[1]])
    for text, words in (
        ("tokn\tcount\ns0\t3\n", "needs the columns token and count"),
        ("token\tcount\ns0\tx\n", "'x'"),
    ):
        (tmp_path / "counts.tsv").write_text(text)
        with pytest.raises(BesagError, match=words):
            besag.evaluate(lm, "acceptability", data=data, unigrams=str(tmp_path / "counts.tsv"))


def test_without_unigrams_there_is_no_slor(data: Path) -> None:
    found = besag.evaluate(besag.load(Arbitrary(3)), "acceptability", data=data)
    assert "slor" not in found.parts[0].rows[0]
    with pytest.raises(BesagError, match="no figure 'Pearson SLOR'"):
        found["Pearson SLOR"]


@pytest.mark.parametrize("rating", ["high", "nan"])
def test_a_rating_that_is_no_number_is_refused(tmp_path: Path, rating: str) -> None:
    (tmp_path / "r.csv").write_text(HEAD + f"1,s0,{rating},e\n")
    with pytest.raises(BesagError, match=rf"line 2: mean-ratings is '{rating}'"):
        besag.evaluate(besag.load(Arbitrary(3)), "acceptability", data=tmp_path)


@pytest.mark.skipif(not DATA.exists(), reason="the ratings are not there: set BESAG_DATA")
def test_the_published_file() -> None:
    found = besag.evaluate(besag.load(), "acceptability", data=DATA, method="unmasked", limit=4)
    assert found["Pearson PenLP"].n == 20
