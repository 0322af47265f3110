"""Where items come from: files, folders, the variable, the hub; and what is said of what is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from besag.errors import BesagError
from besag.evaluation.source import Source, find, present
from besag.evaluation.suite import SUITES, suite

BLIMP = suite("blimp")


def test_a_file_a_folder_and_a_folder_of_suites_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "blimp").mkdir()
    file = tmp_path / "blimp" / "a.jsonl"
    file.write_text("{}\n")
    assert find(BLIMP, file).path == file
    assert find(BLIMP, tmp_path / "blimp").path == tmp_path / "blimp"
    assert find(BLIMP, tmp_path).path == tmp_path / "blimp"
    monkeypatch.setenv("BESAG_DATA", str(tmp_path))
    assert find(BLIMP).path == tmp_path / "blimp"
    assert present(BLIMP)
    assert find(BLIMP, "nyu-mll/blimp") == Source(None, "nyu-mll/blimp", find(BLIMP).wanted)


def test_what_is_missing_is_described_with_its_origin_and_licence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BESAG_DATA", raising=False)
    assert not present(BLIMP)
    with pytest.raises(
        BesagError, match=r"set BESAG_DATA.*JSON Lines file a paradigm.*alexwarstadt/blimp \(CC BY 4.0\)"
    ):
        find(BLIMP)
    monkeypatch.setenv("BESAG_DATA", str(tmp_path))
    with pytest.raises(BesagError, match="which has no 'blimp'"):
        find(BLIMP)
    with pytest.raises(BesagError, match=r"there is no './nowhere.jsonl'"):
        find(BLIMP, "./nowhere.jsonl")
    (tmp_path / "notes.txt").write_text("…")
    with pytest.raises(BesagError, match=r"has no \*.jsonl: it holds notes.txt"):
        Source(tmp_path).files("*.jsonl")


def test_a_missing_column_is_refused_with_those_there(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("sentense\tkind\nOne.\tb\n")
    source = Source(tmp_path)
    [table] = source.tables("*.tsv")
    [row] = table.rows
    assert (table.name, source.texts(row, "kind", "sentense")) == ("a", ["b", "One."])
    with pytest.raises(
        BesagError, match=r"a.tsv, line 2 has no 'sentence'; it has sentense, kind. Did you mean 'sentense'"
    ):
        source.texts(row, "sentence")


def test_the_hub_is_read_by_configurations_and_its_failures_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def names(name: str) -> list[str]:
        if name == "no/where":
            raise ConnectionError("cannot reach it\nmore")
        return ["one"]

    hub: Any = SimpleNamespace(
        get_dataset_config_names=names,
        load_dataset=lambda name, configuration: {"train": [{"good": "a"}, {"good": "b"}]},
    )
    monkeypatch.setitem(sys.modules, "datasets", hub)
    source = find(BLIMP, "some/pairs")
    [table] = source.tables("*.jsonl")
    assert [(row.where, row.values) for row in table.rows] == [
        ("some/pairs, one, train, row 1", {"good": "a"}), ("some/pairs, one, train, row 2", {"good": "b"}),
    ]  # fmt: skip
    with pytest.raises(
        BesagError, match=r"'no/where' is no path here, and the hub gives nothing of that name: cannot reach it$"
    ):
        list(find(BLIMP, "no/where").tables("*.jsonl"))
    with pytest.raises(BesagError, match="is of the hub, and this suite reads files"):
        source.files("*.json")


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_says_what_it_needs(name: str) -> None:
    kind = SUITES[name]
    assert all((kind.title, kind.folder, kind.files, kind.origin, kind.licence, kind.ties, kind.asked))
