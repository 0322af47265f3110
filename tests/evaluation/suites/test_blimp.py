"""BLiMP: counted as `besag.minimal_pairs` counts, on an exact law and on the published files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import besag
from besag.errors import BesagError
from besag.evaluation.minimal_pairs import minimal_pairs, read_pairs

DATA = Path(os.environ.get("BESAG_DATA", Path(__file__).parents[4] / "shared" / "data")) / "blimp"
LAW = besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"])


def write(folder: Path, paradigm: str, term: str, pairs: list[tuple[str, str]]) -> None:
    rows = [
        {"sentence_good": good, "sentence_bad": bad, "UID": paradigm, "linguistics_term": term, "pairID": str(place)}
        for place, (good, bad) in enumerate(pairs)
    ]
    (folder / f"{paradigm}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_figures_are_those_of_minimal_pairs(tmp_path: Path) -> None:
    write(tmp_path, "one", "x", [("a a", "a b"), ("b a", "b b"), ("b b", "b b")])
    write(tmp_path, "two", "x", [("b b", "a b")])
    write(tmp_path, "three", "y", [("a b", "a a"), ("b b", "b a")])
    lm = besag.load(LAW)
    found = besag.evaluate(lm, "blimp", data=tmp_path, method="chain")
    old = minimal_pairs(lm, [pair for file in sorted(tmp_path.iterdir()) for pair in read_pairs(file)], "chain")
    for name, same in (("accuracy", old.macro), ("accuracy over pairs", old.micro)):
        assert found[name].value == pytest.approx(100 * same.accuracy)
        assert found[name].se == pytest.approx(100 * same.se)
        assert (found[name].n, found[name].ties) == (same.pairs, same.ties)
    for phenomenon, same in old.phenomena.items():
        assert found[f"accuracy/{phenomenon}"].value == pytest.approx(100 * same.accuracy)
    assert found["accuracy/x"].value == pytest.approx(100 * (0.5 + 1) / 2)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"sentence": "a"}\n')
    with pytest.raises(BesagError, match=r"line 1 has no 'sentence_good'.*it has sentence"):
        besag.evaluate(besag.load(LAW), "blimp", data=tmp_path)


@pytest.mark.skipif(not DATA.exists(), reason="the BLiMP files are not there: set BESAG_DATA")
def test_the_published_files() -> None:
    found = besag.evaluate(besag.load(), "blimp", data=DATA, method="unmasked", limit=1)
    assert found["accuracy over pairs"].n == 36
    assert not found.parts[0].unscored
