"""Arithmetic before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bulk.conftest import sentences
from tests.files.reading import put

from besag.bulk.job import begin
from besag.bulk.planning import Plan, duration, plan
from besag.bulk.verbs import Score
from besag.files.inputs import Layout


def test_a_plan(bert: Path, tmp_path: Path) -> None:
    verb = Score({"model": str(bert)}, methods={"unmasked": {}})
    path = put(tmp_path / "a.txt", "".join(f"{line}\n" for line in sentences(100)))
    job = begin([str(path)], str(tmp_path / "job"), verb, {}, layout=Layout(), format="tsv", block=2, size=4,
                only_look=True)  # fmt: skip
    found = plan(job, verb, actors=4, rate=5.0, price=2.0)
    assert not (tmp_path / "job").exists()
    assert (found.rows, found.shards, found.seconds, found.sampled) == (100, 25, 5.0, 28)
    assert found.cost == pytest.approx(5 / 3600 * 4 * 2)
    assert found.tokens > 3
    assert ("rate", "5.0 rows/s of an actor, as given") in found.lines()
    measured = plan(job, verb, actors=1)
    assert measured.measured
    assert measured.cost is None
    assert measured.seconds == pytest.approx(100 / measured.rate)


def test_how_long() -> None:
    assert [duration(seconds) for seconds in (4.24, 200, 7500, 200_000)] == [
        "4.2 s", "3 min 20 s", "2 h 5 min", "2 d 7 h",
    ]  # fmt: skip
    assert Plan(10**9, 1, 0, 1, 20, 5000, False, 64, None).seconds == pytest.approx(3125)
