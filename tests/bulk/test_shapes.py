"""Shards as files of their own, and put together."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.files.reading import put

from besag.bulk.shapes import Shape
from besag.errors import BesagError

OWN = ["row", "text", "pll", "status"]


def row(number: int, value: float | None = -1.23456789012) -> dict[str, object]:
    return {"row": number, "text": f"text {number}", "pll": value, "status": "ok"}


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl", "parquet"])
def test_shards_together(tmp_path: Path, format: str) -> None:
    shape = Shape(format, ("id", "text"))  # type: ignore[arg-type]
    others = {"id": "x\ny", "text": "their own"}
    parts = [[(row(1), others)], [], [(row(2, None), {"id": None}), (row(3), others)]]
    shape.merge((shape.encode(part, OWN) for part in parts), str(tmp_path / f"merged.{format}"))
    every = [pair for part in parts for pair in part]
    shape.merge([shape.encode(every, OWN)], str(tmp_path / f"whole.{format}"))
    assert (tmp_path / f"merged.{format}").read_bytes() == (tmp_path / f"whole.{format}").read_bytes()
    if format == "parquet":
        table = pq.read_table(tmp_path / "merged.parquet")
        assert table.column_names == [*OWN, "id", "input.text"]
        assert table["pll"].to_pylist() == [-1.23456789012, None, -1.23456789012]


def test_a_shard_can_be_read_as_it_is(tmp_path: Path) -> None:
    shape = Shape("tsv", ("id",))
    assert shape.encode([], OWN) == b"row\ttext\tpll\tstatus\tid\n"
    assert shape.encode([(row(1), {"id": 7})], OWN).endswith(b"1\ttext 1\t-1.2345679\tok\t7\n")
    empty = put(tmp_path / "a.parquet", Shape("parquet", ("id",)).encode([], OWN))
    assert pq.read_table(empty).column_names == [*OWN, "id"]


def test_other_columns_are_refused(tmp_path: Path) -> None:
    shape = Shape("csv")
    with pytest.raises(BesagError, match="shard 000001 has other columns"):
        shape.merge([shape.encode([(row(1), {})], OWN), b"a,b\n1,2\n"], str(tmp_path / "m.csv"))
    assert not (tmp_path / "m.csv").exists()


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl", "parquet"])
def test_a_shard_tells_the_status_of_each_row(format: str) -> None:
    """Of several answers about a row the first counts; a text may hold whatever a format must quote."""
    rows = [(7, "a\tb\nc", "ok"), (8, "", "empty"), (8, "", "ok"), (9, "\\x", "undecodable")]
    pairs = [({"row": row, "text": text, "status": status}, {}) for row, text, status in rows]
    shape = Shape(format)  # type: ignore[arg-type]
    found = shape.statuses(shape.encode(pairs, ["row", "text", "status"]))
    assert found == {"7": "ok", "8": "empty", "9": "undecodable"}
    assert shape.statuses(shape.encode([], ["row", "text", "status"])) == {}
