"""Figures are sacrebleu's own; what is wrong with a file is told with its line."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import besag
from besag.errors import BesagError
from besag.evaluation.suite import suite
from besag.results.status import Status
from besag.translation.choosing import Hypothesis
from besag.translation.translated import Translation, Translations

sacrebleu = pytest.importorskip("sacrebleu")
SOURCES = ["ein Hund", "zwei Katzen", "drei Vögel", "vier"]
REFERENCES = ["a dog is running here", "two cats sleep on the mat", "three birds fly over the sea", "four"]
TEXTS = ["a dog dog is running", "two cats sleep on a mat", "three birds fly over sea", "four"]


class Fake:
    """A translator that knows four sentences."""

    def __init__(self) -> None:
        self.conditionals = SimpleNamespace(sees="both", dtype="float32", name="fake")
        self.engine, self.vocabulary, self.name = None, None, "fake"
        self.score = self.choose = self.marginals = self.joint = self.fill = None
        self.asked: list[Any] = []

    def translate(self, sources: list[str], **options: Any) -> Translations:
        self.asked.append((len(sources), options))
        rows = [
            Translation(one, (Hypothesis(TEXTS[SOURCES.index(one)], -1.0, 5, 2),), 1, 2) if one in SOURCES
            else Translation(one, (), status=Status.LONG_SOURCE)
            for one in sources
        ]  # fmt: skip
        return Translations(tuple(rows), "fake", "none", 0.004 * len(sources), 0, "fake", "float32")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "test.tsv"
    path.write_text("de\ten\n" + "".join(f"{one}\t{other}\n" for one, other in zip(SOURCES, REFERENCES, strict=True)))
    return path


def test_the_figures_are_sacrebleus(file: Path) -> None:
    lm = Fake()
    found = besag.evaluate(lm, "translation", data=file, source="de", target="en", passes=2)
    assert found["BLEU"].value == pytest.approx(sacrebleu.corpus_bleu(TEXTS, [REFERENCES]).score)
    assert found["chrF"].value == pytest.approx(sacrebleu.corpus_chrf(TEXTS, [REFERENCES]).score)
    assert "tok:13a" in found["BLEU"].meaning
    assert found["stutter"].value == pytest.approx(1000 / 13)  # "dog dog", of the words that have one before them
    assert (found["passes"].value, found["latency"].value) == (2, pytest.approx(4))
    low, high = found["BLEU"].interval
    assert low <= found["BLEU"].value <= high
    for figure in found.figures[:3]:
        assert figure.low <= figure.value <= figure.high
    assert lm.asked[0][1]["passes"] == 2


def test_alone_is_one_source_at_a_time(file: Path) -> None:
    lm = Fake()
    besag.evaluate(lm, "translation", data=file, source="de", target="en", alone=True)
    assert [count for count, _ in lm.asked] == [1, 1, 1, 1]
    lm.conditionals.sees = "left"
    besag.evaluate(lm, "translation", data=file, source="de", target="en", beam=3)
    assert lm.asked[-1][1] == {"beam": 3, "alpha": 1.0, "seed": 0}


def test_what_is_wrong_with_a_file_is_told(file: Path) -> None:
    with pytest.raises(BesagError, match="has no 'source'; it has de, en"):
        besag.evaluate(Fake(), "translation", data=file)
    file.write_text("source\ttarget\nein Hund\ta dog\nzwei\t \n")
    with pytest.raises(BesagError, match="line 3 has an empty reference"):
        besag.evaluate(Fake(), "translation", data=file)
    assert suite("translation").methods == ()
