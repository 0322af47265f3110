"""Headers and relations of rows: what is read, where it is refused, and that what is held out keeps groups whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import networks

from besag.errors import BesagError
from besag.training.data import cache, contexts, sources
from besag.training.data.contexts import Contexts
from besag.training.data.tokens import TAG
from besag.training.recipe import Data

WORDS = networks.vocabulary("bert")
ROWS = [
    {"text": "the cat sleep", "date": "night", "place": {"name": "cafe"}, "id": "a", "links": ["b"], "topic": "x"},
    {"text": "dogs bark at man", "date": "the night", "place": {"name": "car"}, "id": "b", "links": [], "topic": "x"},
    {"text": "the mat", "date": "night", "place": {"name": None}, "id": "c", "links": None, "topic": None},
]


def rows(folder: Path, content: Sequence[dict[str, Any]] = ROWS, **data: Any) -> Data:
    folder.mkdir(exist_ok=True)
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    return Data(train=(str(file),), **{"held_out": 0.0, **data})


def prepared(folder: Path, data: Data) -> Contexts:
    text = cache.prepare(data, WORDS, folder / "cache")
    return contexts.prepare(data, WORDS, folder / "cache", text)


def test_a_header_is_text_and_its_fields_are_known(tmp_path: Path) -> None:
    found = prepared(tmp_path, rows(tmp_path, header="on {date}, at {place.name}:"))
    headers = found.headers
    assert headers is not None
    assert (
        WORDS.tokenizer.decode(headers.tokens.tolist()) == "on night, at cafe : on the night, at car : on night, at :"
    )
    names = ["-", *headers.meta["tags"]]
    assert names == ["-", "date", "place.name"]
    first = [names[number] for number in (headers.marks >> TAG)[: headers.documents[1]].tolist()]
    assert first == ["-", "date", "-", "-", "place.name", "-"]
    assert found.header_sizes.tolist() == [6, 7, 5]
    assert found.related is None


def test_links_and_groups_become_one_relation(tmp_path: Path) -> None:
    for keys, together in (({"links": "links"}, {(0, 1), (1, 0)}), ({"group": "topic"}, {(0, 1), (1, 0)})):
        related = prepared(tmp_path, rows(tmp_path, **keys)).related
        assert related is not None
        every = [(one, other) for one in range(3) for other in range(3) if one != other]
        one, other = np.array(every).T
        assert {pair for pair, yes in zip(every, related.contains(one, other), strict=True) if yes} == together


def test_names_in_a_cell_have_spaces_between(tmp_path: Path) -> None:
    file = tmp_path / "rows.tsv"
    file.write_text("text\tid\tlinks\nthe cat\t1\t2 3\nthe mat\t2\t\ndogs\t3\t1\n")
    found = sources.documents(Data(train=(str(file),), held_out=0.0, links="links"))
    assert [one.beside.links for one in found if one.beside] == [("2", "3"), (), ("1",)]


def test_a_group_is_held_out_whole(tmp_path: Path) -> None:
    content = [{"text": f"the cat {number}", "topic": f"t{number // 4}"} for number in range(200)]
    data = rows(tmp_path, content, held_out=0.3, group="topic", context="together")
    sides = {
        which: {one.beside.group for one in sources.documents(data, which) if one.beside}  # type: ignore[arg-type]
        for which in ("train", "valid")
    }
    assert not sides["train"] & sides["valid"]
    assert len(sides["train"] | sides["valid"]) == 50
    assert 5 < len(sides["valid"]) < 25


def test_a_tokenizer_reads_headers_too(tmp_path: Path) -> None:
    assert list(sources.texts(rows(tmp_path, ROWS[:1], header="{date}:"))) == ["night:", "the cat sleep"]


@pytest.mark.parametrize(
    ("row", "keys", "said"),
    [
        ({"text": "a"}, {"header": "{date}"}, r"line 1.* has no 'date'; it has text"),
        ({"text": "a", "date": None}, {"header": "on {date}"}, r"line 1.*finds nothing to write, its fields are empty"),
        ({"text": "a", "date": ["x"]}, {"header": "{date}"}, r"'date' is \['x'\], not a text or a number"),
        ({"text": "a", "id": "a", "links": [0.5]}, {"links": "links"}, r"'links' must be a list of names such as"),
        ({"text": "a", "topic": True}, {"group": "topic"}, r"'topic' is True, not a text or a number"),
    ],
)
def test_rows_that_do_not_fit_are_told(tmp_path: Path, row: dict[str, Any], keys: dict[str, Any], said: str) -> None:
    with pytest.raises(BesagError, match=said):
        list(sources.documents(rows(tmp_path, [row], **keys)))


def test_plain_text_has_no_fields(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat\n")
    with pytest.raises(BesagError, match=r"a\.txt is plain text, which has no field 'date': give a table"):
        list(sources.documents(Data(train=(str(tmp_path / "a.txt"),), held_out=0.0, header="{date}")))


def test_another_header_has_a_cache_of_its_own_and_the_text_does_not(tmp_path: Path) -> None:
    data = rows(tmp_path)
    one, other = (prepared(tmp_path, replace(data, header=header)) for header in ("{date}", "{date}."))
    assert one.text.folder == other.text.folder
    assert one.headers is not None
    assert other.headers is not None
    assert one.headers.folder != other.headers.folder
