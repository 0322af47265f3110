"""Results in a folder and back: the same figures, and what is no folder of results."""

from __future__ import annotations

import json
import math
import os
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.laws import Arbitrary

import besag
from besag.errors import BesagError
from besag.evaluation import saved
from besag.evaluation.evaluation import Evaluation
from besag.files.progress import Resumable
from besag.files.writing import write_rows


def written(folder: Path, method: str = "pll", name: str = "results") -> tuple[Path, Evaluation]:
    (folder / "p.tsv").write_text("good\tbad\tparadigm\ns0 s1\ts1 s1\tx\ns2\ts0\ty\ns1 s2\ts1 s2\ty\ns0\t\ty\n")
    found = besag.evaluate(besag.load(Arbitrary(3)), "minimal_pairs", data=folder / "p.tsv", method=method)
    place = folder / name
    place.mkdir()
    write_rows(place / saved.ITEMS, [saved.written(row) for row in found.table("item")])
    saved.write(place, [found], {"besag": "0", "limit": None})
    return place, found


def test_what_is_read_again_says_the_same(tmp_path: Path) -> None:
    place, found = written(tmp_path)
    [again] = saved.read(place)
    assert again.table() == found.table()
    assert again.parts[0].unscored == found.parts[0].unscored
    assert again.suite == found.suite
    lines = (place / saved.FIGURES).read_text(encoding="utf-8").splitlines()
    assert lines[0].split("\t") == [*found.table()[0]]
    assert len(lines) == 1 + len(found.figures)


def test_rows_come_back_as_they_went() -> None:
    row = {"a": math.nan, "b": [1.5, -math.inf], "c": "text", "d": {"e": math.inf}}
    back = saved.plain(row)
    assert math.isnan(back["a"])
    assert (back["b"], back["c"], back["d"]) == ([1.5, -math.inf], "text", {"e": math.inf})


@pytest.mark.parametrize("old", [{}, {"format": 1}])
def test_rows_of_another_format_are_not_read(tmp_path: Path, old: dict[str, int]) -> None:
    place, _ = written(tmp_path)
    note = json.loads((place / saved.RUN).read_text())
    del note["format"]
    (place / saved.RUN).write_text(json.dumps({**note, **old}))
    with pytest.raises(BesagError, match="has rows of format 1"):
        saved.read(place)


def test_a_text_that_reads_like_a_number_stays_a_text(tmp_path: Path) -> None:
    texts = ["Infinity", "-Infinity", "\\Infinity", "\\\\-Infinity", "NaN", "to Infinity", "infinity", "\\", "1"]
    row = {"a": texts, "b": "Infinity", "c": {"d": ("-Infinity", -math.inf)}, "e": math.inf, "f": math.nan}
    write_rows(tmp_path / "rows.jsonl", [saved.written(row)])
    [line] = (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    for back in (saved.revived(json.loads(line)), saved.plain(row)):
        assert (back["a"], back["b"]) == (texts, "Infinity")
        assert (back["c"], back["e"]) == ({"d": ["-Infinity", -math.inf]}, math.inf)
        assert math.isnan(back["f"])


def test_what_is_no_folder_of_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BesagError, match="no such folder"):
        saved.read(tmp_path / "nowhere")
    with pytest.raises(BesagError, match=r"holds no results: run.json cannot be read"):
        saved.read(tmp_path)
    place, _ = written(tmp_path)
    (place / "items.jsonl.progress").write_text("{}")
    with pytest.raises(BesagError, match="is not finished"):
        saved.read(place)
    (place / "items.jsonl.progress").unlink()
    rows = (place / saved.ITEMS).read_text(encoding="utf-8").splitlines()
    (place / saved.ITEMS).write_text("\n".join(rows[1:]) + "\n", encoding="utf-8")
    with pytest.raises(BesagError, match=r"should hold 4 items .* has 3: was it changed"):
        saved.read(place)
    (place / saved.RUN).write_text(json.dumps({"kind": "something"}))
    with pytest.raises(BesagError, match="none of an evaluation"):
        saved.read(place)


class Killed(BaseException):
    """The process ends here."""


def kill_at(patched: pytest.MonkeyPatch, number: int) -> None:
    """End the process just before the `number`-th time that a file gets or loses its name."""
    left = iter(range(number))

    def ending(call: Any) -> Any:
        def counted(*arguments: Any) -> Any:
            if next(left, None) is None:
                raise Killed
            return call(*arguments)

        return counted

    patched.setattr(os, "replace", ending(os.replace))
    patched.setattr(os, "unlink", ending(os.unlink))


def finished(place: Path, found: Evaluation) -> None:
    """All of an evaluation, as the command writes it."""
    place.mkdir()
    with closing(Resumable("jsonl", str(place / saved.ITEMS))) as out:
        out.begin({})
        for row in found.table("item"):
            out.write(saved.plain(row), {})
        out.end_block({"rows": 4})
        saved.write(place, [found], {"besag": "0", "limit": None})
        out.finish()


def test_killed_at_any_write_a_folder_is_complete_or_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, found = written(tmp_path)
    for number in count():
        place = tmp_path / str(number)
        try:
            with monkeypatch.context() as patched:
                kill_at(patched, number)
                finished(place, found)
            break
        except Killed:
            assert saved.is_complete(place) or saved.is_begun(place) or not (place / saved.ITEMS).exists()
            if saved.is_complete(place):
                assert saved.read(place)[0].table() == found.table()
            else:
                with pytest.raises(BesagError, match=str(number)):
                    saved.read(place)
    assert number > 8  # two notes, figures, the page, run.json; and the note is removed
    assert saved.is_complete(place)
    assert saved.read(place)[0].table() == found.table()
