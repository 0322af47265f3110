"""Plausible and implausible events, paired by item and voice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import besag
from besag.errors import BesagError

DATA = Path(os.environ.get("BESAG_DATA", Path(__file__).parents[4] / "shared" / "data")) / "event_plausibility"
LAW = besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"])
HEAD = "ItemNum,Sentence,Plausibility,Voice,TrialType\n"
ROWS = [
    "1,a a,Plausible,active,AI", "1,a b,Implausible,active,AI",  # 0.4 > 0.1
    "1,b a,Plausible,passive,AI", "1,b b,Implausible,passive,AI",  # 0.2 < 0.3
    "2,b b,Implausible,active,AAN", "2,b b,Plausible,active,AAN",  # a tie
    "3,a b,Plausible,active,AAR", "3,b b,Implausible,active,AAR",  # of which both are plausible
]  # fmt: skip


def test_pairs_are_counted_by_kind_and_voice_without_reversible_ones(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(HEAD + "\n".join(ROWS) + "\n")
    found = besag.evaluate(besag.load(LAW), "plausibility", data=tmp_path, method="chain")
    assert [row["credit"] for row in found.parts[0].rows] == [1.0, 0.0, 0.5, 0.0]
    assert found["accuracy"].value == pytest.approx(50.0)
    assert (found["accuracy"].n, found["accuracy"].ties) == (3, 1)
    assert found["accuracy/AI"].value == 50.0
    assert found["accuracy by voice/active"].value == 75.0
    assert found["reversible/AAR"].value == 0.0


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["1,a a,Plausible,active,AI"], "item '1' .active. has only the Plausible sentence"),
        ([ROWS[0], ROWS[0]], "has a second Plausible sentence"),
        (["1,a a,Odd,active,AI"], "Plausibility is 'Odd'"),
    ],
)
def test_what_makes_no_pair_is_refused(tmp_path: Path, rows: list[str], words: str) -> None:
    (tmp_path / "e.csv").write_text(HEAD + "\n".join(rows) + "\n")
    with pytest.raises(BesagError, match=words):
        besag.evaluate(besag.load(LAW), "plausibility", data=tmp_path)


@pytest.mark.skipif(not DATA.exists(), reason="EventsAdapt is not there: set BESAG_DATA")
def test_the_published_file() -> None:
    found = besag.evaluate(besag.load(), "plausibility", data=DATA, method="unmasked", limit=4)
    assert (found["accuracy"].n, found["reversible/AAR"].n) == (8, 4)
