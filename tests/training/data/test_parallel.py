"""Pairs out of two files and out of rows: in order, whole, and told where something does not fit."""

from __future__ import annotations

import itertools
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import networks

from besag.errors import BesagError
from besag.training.data import parallel
from besag.training.data.sources import NoDocuments
from besag.training.recipe import Data

WORDS = networks.vocabulary("bert")
SOURCES = ["the cat", "the dogs sleep", "a table"]
TARGETS = ["cats", "dogs and cats", "the mat"]


def two_files(folder: Path, sources: list[str] = SOURCES, targets: list[str] = TARGETS, **data: object) -> Data:
    for name, rows in (("a.s", sources), ("a.t", targets)):
        (folder / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return Data(source=(str(folder / "a.s"),), target=(str(folder / "a.t"),), **{"held_out": 0.0, **data})  # type: ignore[arg-type]


def texts(data: Data, which: str = "train") -> list[tuple[str, str]]:
    return [(pair.source.text, pair.target.text) for pair in parallel.pairs(data, which)]  # type: ignore[arg-type]


def test_line_by_line(tmp_path: Path) -> None:
    data = two_files(tmp_path)
    assert texts(data) == list(zip(SOURCES, TARGETS, strict=True))
    assert list(parallel.texts(data)) == [side for pair in zip(SOURCES, TARGETS, strict=True) for side in pair]
    assert next(parallel.pairs(data)).target.origin.endswith("a.t, line 1")


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl"])
def test_fields_of_rows(tmp_path: Path, ending: str) -> None:
    rows = [{"de": source, "en": target} for source, target in zip(SOURCES, TARGETS, strict=True)]
    mark = {"tsv": "\t", "csv": ","}.get(ending)
    lines = (
        [json.dumps(row) for row in rows]
        if mark is None
        else [mark.join(row) for row in (["de", "en"], *map(dict.values, rows))]
    )
    file = tmp_path / f"pairs.{ending}"
    file.write_text("\n".join(lines) + "\n")
    data = Data(train=(str(file),), source_field="de", field="en", held_out=0.0)
    assert texts(data) == list(zip(SOURCES, TARGETS, strict=True))
    with pytest.raises(BesagError, match="has no 'fr'"):
        texts(Data(train=(str(file),), source_field="fr", field="en", held_out=0.0))


def test_files_of_different_length_are_refused_with_the_line(tmp_path: Path) -> None:
    data = two_files(tmp_path, targets=TARGETS[:2])
    with pytest.raises(BesagError, match=r"a\.t ends after line 2, and line 3 of .*a\.s, 'a table', has no partner"):
        texts(data)
    with pytest.raises(BesagError, match=r"a\.s ends after line 1, and line 2 of .*a\.t, 'dogs and cats'"):
        texts(two_files(tmp_path, sources=SOURCES[:1]))
    with pytest.raises(BesagError, match="1 files of sources and 2 of targets"):
        texts(Data(source=data.source, target=(*data.target, *data.source), held_out=0.0))


def test_a_pair_with_an_empty_side_is_left_out_and_told(tmp_path: Path) -> None:
    data = two_files(tmp_path, ["the cat", " ", "a table", ""], ["cats", "dogs", "", ""])
    with pytest.warns(UserWarning, match=r"3 pairs have an empty side and are left out; the first: .*a\.s, line 2"):
        assert texts(data) == [("the cat", "cats")]


def test_what_is_no_pair_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"de": "two\nlines", "en": "one"}) + "\n")
    with pytest.raises(BesagError, match="has several lines"):
        texts(Data(train=(str(tmp_path / "a.jsonl"),), source_field="de", field="en", held_out=0.0))
    data = two_files(tmp_path, [""], [""])
    with pytest.warns(UserWarning, match="empty side"), pytest.raises(NoDocuments, match="parallel text is empty"):
        texts(data)
    with pytest.raises(BesagError, match="a plain text has no field 'de'"):
        texts(Data(train=data.source, source_field="de", held_out=0.0))


@given(st.integers(2, 40), st.floats(0.05, 0.9))
def test_every_pair_is_on_one_side(tmp_path_factory: pytest.TempPathFactory, count: int, share: float) -> None:
    folder = tmp_path_factory.mktemp("split")
    rows = [f"source {number}" for number in range(count)]
    data = two_files(folder, rows, [row.replace("source", "target") for row in rows], held_out=share)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = texts(data, "valid")
        try:
            kept = texts(data)
        except NoDocuments:
            kept = []
    assert held
    assert sorted(held + kept) == sorted(zip(rows, (row.replace("source", "target") for row in rows), strict=True))


def test_two_caches_of_as_many_documents(tmp_path: Path) -> None:
    data = two_files(tmp_path)
    made = parallel.prepare(data, WORDS, tmp_path / "cache", processes=1)
    for cache, side in ((made.source, SOURCES), (made.target, TARGETS)):
        bounds = cache.documents
        read = [cache.tokens[low:high].tolist() for low, high in itertools.pairwise(bounds)]
        assert read == [WORDS.encode([text])[0].ids[1:-1].tolist() for text in side]
    again = parallel.prepare(data, WORDS, tmp_path / "cache", processes=1)
    assert (again.source.folder, again.target.folder) == (made.source.folder, made.target.folder)
    room = int(np.diff(made.source.documents).max())
    assert made.fitting(room).tolist() == [True] * 3
    assert not made.fitting(0).any()
