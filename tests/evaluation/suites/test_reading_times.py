"""Reading times: which words are used with which neighbours, by hand, and figures from rows alone."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

import besag
from besag.errors import BesagError
from besag.evaluation.regression import gained
from besag.evaluation.suite import suite
from besag.evaluation.suites.reading_times import design, frequencies, plain

DATA = Path(os.environ.get("BESAG_DATA", Path(__file__).parents[4] / "shared" / "data")) / "provo"
LAW = besag.Table([[[0.1, 0.2], [0.1, 0.1]], [[0.2, 0.1], [0.1, 0.1]]], symbols=["a", "b"])
HEAD = "sentence_id,word_id,word,T\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def corpus(sentences: int = 24) -> str:
    """Sentences of three words, whose times are 3 s(word) + 2 s(word before) + place + noise, s by the law."""
    draw = np.random.default_rng(1)
    lm, lines = besag.load(LAW), []
    for sentence in range(sentences):
        words = ["ab"[bit] for bit in draw.integers(0, 2, 3)]
        surprisal = -lm.score(" ".join(words), "chain").log_probs
        for place, word in enumerate(words):
            before = surprisal[place - 1] if place else 0
            time = 3 * surprisal[place] + 2 * before + place + 1 + 0.01 * draw.normal()
            lines.append(f"{sentence},{place + 1},{word},{time}")
    return HEAD + "\n".join(lines)


def test_surprisal_gains_what_times_were_made_of(tmp_path: Path) -> None:
    write(tmp_path / "times.csv", corpus())
    found = besag.evaluate(besag.load(LAW), "reading_times", data=tmp_path, measures="T", folds=4)
    row = found.parts[0].rows[0]
    assert row["surprisal"] == pytest.approx(
        (-besag.load(LAW).score(" ".join(row["words"]), "chain").log_probs).tolist()
    )
    likelihood, variance = found["delta log-likelihood"], found["delta R2"]
    assert (likelihood.n, variance.n) == (48, 48)  # the first word of each has no word before it
    assert likelihood.value > 1000
    assert likelihood.low < likelihood.value < likelihood.high
    assert "no frequencies were given" in variance.meaning
    by_hand = gained(*design(found.parts[0].rows, "T", 1), folds=4)
    assert likelihood.value == pytest.approx(1000 * by_hand.delta_log_likelihood)
    assert variance.value == pytest.approx(100 * by_hand.delta_r2)
    assert by_hand.r2 + by_hand.delta_r2 > 0.999  # place and surprisals are all that times were made of
    without = besag.evaluate(besag.load(LAW), "reading_times", data=tmp_path, measures="T", folds=4, spillover=0)
    assert without["delta R2"].n == 72
    assert without["delta R2"].value < variance.value  # times were also made of the word before


def test_the_design_by_hand() -> None:
    row = {
        "id": "x", "words": ["It", "rained.", "All", "night"], "positions": [1, 2, 4, 5],
        "surprisal": [1.0, 2.0, 3.0, 4.0], "log_frequency": [-1.0, -2.0, -3.0, -4.0],
        "time:T": [10.0, 20.0, 30.0, 40.0],
    }  # fmt: skip
    times, base, surprisal, sentence = design([row], "T", 1)
    assert times.tolist() == [20.0, 40.0]  # the third word was not there, so the fourth has no word before it
    assert base.tolist() == [[2, 6, 2, -2, -1], [5, 5, 3, -4, -3]]  # place; letters of both; frequencies of both
    assert (surprisal.tolist(), sentence.tolist()) == ([[2, 1], [4, 3]], [0, 0])
    assert design([row], "T", 0).times.tolist() == [10.0, 20.0, 30.0, 40.0]
    with pytest.raises(BesagError, match="no word has 2 words before it"):
        design([row], "T", 2)


def test_frequencies_of_counts_and_of_text(tmp_path: Path) -> None:
    table = write(tmp_path / "counts.tsv", "word\tcount\nThe\t3\ncat\t1\n")
    text = write(tmp_path / "text.txt", "The cat. the\n“The”\n")
    expected = {"the": math.log(4 / 7), "cat": math.log(2 / 7), "": math.log(1 / 7)}  # 4 words, 2 types
    assert frequencies(str(table)) == pytest.approx(expected)
    assert frequencies(str(text)) == pytest.approx(expected)
    with pytest.raises(BesagError, match=r"line 2: the second column is 'x', which is no number"):
        frequencies(str(write(tmp_path / "bad.tsv", "a\t1\nb\tx\n")))
    with pytest.raises(BesagError, match="a count is 0 or more"):
        frequencies(str(write(tmp_path / "less.tsv", "a\t1\nb\t-1\n")))
    assert [plain(word) for word in ("“The", "don't,", "—", "ice-cream!")] == ["the", "don't", "—", "ice-cream"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "0,1,a,x\n", "line 2: T is 'x', which is no number"),
        (HEAD + "0,1,a,\n", "line 2: T is '', which is no number"),
        (HEAD + "0,one,a,3\n", "line 2: word_id is 'one'"),
        (HEAD + "0,1,a b,3\n", "line 2: 'a b' is no word"),
        ("sentence_id,word_id,word\n0,1,a\n", "has no 'T'; it has sentence_id, word_id, word"),
        (HEAD + "0,1,a,3\n0,2,b,4\n0,3,b,4\n", "1 sentences cannot be put into 10 folds"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path / "times.csv", text)
    with pytest.raises(BesagError, match=said):
        print(besag.evaluate(besag.load(LAW), "reading_times", data=path, measures="T"))


@pytest.mark.parametrize(
    ("options", "said"),
    [({"spillover": 9}, "spillover=9"), ({"folds": 1}, "folds=1"), ({"measures": "T,,"}, "measures='T,,'")],
)
def test_options_that_cannot_be(options: dict[str, object], said: str) -> None:
    with pytest.raises(BesagError, match=said):
        suite("reading_times", **options)


@pytest.mark.skipif(not DATA.exists(), reason="the Provo corpus is not there: set BESAG_DATA")
def test_the_published_file() -> None:
    found = besag.evaluate(besag.load(), "reading_times", data=DATA, method="unmasked", folds=5)
    assert len(found.parts[0].rows) == 134
    assert [one.group for one in found.figures if one.name == "delta R2"] == ["", "GPT", "FFD", "TRT"]
    assert found["delta R2"].n == found["delta R2/GPT"].n == 2504
