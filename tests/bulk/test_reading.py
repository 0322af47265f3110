"""A row that cannot be read is one bad row; columns are those of the first row of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bulk.conftest import in_shards, looked
from tests.files.reading import put

from besag.bulk.reading import first_record, settled
from besag.errors import BesagError
from besag.files.inputs import Layout


@pytest.mark.parametrize(
    ("name", "content", "bad"),
    [
        ("a.jsonl", b'{"text": "a"}\n{"text": "b"\n\n{"text": "c"}\n{"txet": "d"}\n{"text": 5}\n[1]\n{"text": "e"}\n',
         {2: "line 2", 4: "line 5", 5: "line 6", 6: "line 7"}),
        ("a.tsv", b"text\tid\na\t1\nb\nc\t3\nd\t4\t5\ne\t6\n", {2: "line 3", 4: "line 5"}),
        ("a.csv", b'text,id\na,1\n"b"x,2\nc,3\nd\n"e\nf",4\n', {2: "line 3", 4: "line 5"}),
        ("a.txt", b"a\nb\0\nc\n", {2: "line 2"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 2, 100])
def test_one_bad_row(tmp_path: Path, name: str, content: bytes, bad: dict[int, str], size: int) -> None:
    found = in_shards([put(tmp_path / name, content)], size)
    problems = {number: why for shard in found for number, why in shard.problems.items()}
    records = [record for shard in found for record in shard.records]
    assert [record.number for record in records] == list(range(1, len(records) + 1))
    assert problems.keys() == bad.keys()
    assert all(bad[number] in problems[number] for number in bad)
    assert [record.text for record in records if record.number not in bad] in (
        ["a", "c", "e"],
        ["a", "c"],
        ["a", "c", "e\nf"],
    )


def test_strange_bytes_are_no_problem_of_the_reader(tmp_path: Path) -> None:
    [shard] = in_shards([put(tmp_path / "a.txt", b"caf\xe9\nb\n")], 10)
    assert [record.text for record in shard.records] == ["caf\udce9", "b"]
    assert not shard.problems


def test_the_column_is_that_of_the_first_row_of_the_file(tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", '{"said": "a"}\n{"said": "b", "text": "no"}\n{"text": "no", "said": "c"}\n')
    found = in_shards([path], 1)
    assert [record.text for shard in found for record in shard.records] == ["a", "b", "c"]


def test_what_is_wrong_with_all_rows_is_told_first(tmp_path: Path) -> None:
    layout = Layout(column="txet")
    [source] = looked([put(tmp_path / "a.tsv", "text\tid\na\t1\n")], layout, 4)
    with pytest.raises(BesagError, match="Did you mean 'text'"):
        first_record(source, settled(layout, source))
