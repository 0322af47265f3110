from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest

from besag.errors import BesagError
from besag.files import lines
from besag.training.data import sources
from besag.training.data.sources import NoDocuments, documents, files, fingerprint
from besag.training.recipe import Data


def texts(data: Data, which: sources.Which = "train") -> list[str]:
    return [document.text for document in documents(data, which)]


def whole(*names: object, **others: object) -> Data:
    return Data(train=tuple(map(str, names)), held_out=0.0, **others)  # type: ignore[arg-type]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_an_empty_line_separates_documents(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "\n\none\ntwo\n\n \n\nthree\r\nfour\n")
    assert texts(whole(file)) == ["one\ntwo", "three\nfour"]
    assert [each.origin for each in documents(whole(file))] == [f"{file}, line 3", f"{file}, line 8"]


@pytest.mark.parametrize("content", ["one\ntwo\nthree", "one\ntwo\nthree\n\n\n", "\ufeff\n\none\ntwo\nthree\n"])
def test_without_empty_lines_each_line_is_a_document(tmp_path: Path, content: str) -> None:
    assert texts(whole(write(tmp_path / "a.txt", content))) == ["one", "two", "three"]


def test_the_layout_is_decided_on_the_beginning_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LOOK_AHEAD", (5, 100))
    assert texts(whole(write(tmp_path / "a.txt", "abc\ndef\n\nghi"))) == ["abc", "def", "ghi"]
    assert texts(whole(write(tmp_path / "b.txt", "abc\n\ndef\nghi"))) == ["abc", "def\nghi"]


def test_a_file_of_any_size_is_read_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed a thousand times over: a line without an end is refused, a document without an end goes on as another."""
    endless = write(tmp_path / "a.txt.gz", gzip.compress(b"a" * (17 << 20)))
    empty = write(tmp_path / "b.txt.gz", gzip.compress(b"a\n" + b"\n" * (1 << 20) + b"b\n"))
    tracemalloc.start()
    with pytest.raises(BesagError, match="is longer than 16 MiB"):
        texts(whole(endless))
    assert texts(whole(empty)) == ["a", "b"]
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()
    monkeypatch.setattr(sources, "LONGEST", 5)
    assert texts(whole(write(tmp_path / "c.txt", "a\n\nabc\ndef\nghi\njkl\n\nb"))) == ["a", "abc\ndef", "ghi\njkl", "b"]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip), (".xz", lzma), (".bz2", bz2)])
def test_packed_files(tmp_path: Path, suffix: str, pack: object) -> None:
    packed = pack.compress("ä\n\nb\n".encode())  # type: ignore[attr-defined]
    assert texts(whole(write(tmp_path / f"a.txt{suffix}", packed))) == ["ä", "b"]
    damaged = write(tmp_path / f"b.txt{suffix}", packed[:-6])
    with pytest.raises(BesagError, match=rf"b\.txt.* cannot be read beyond line .* damaged, or no \{suffix} file"):
        texts(whole(damaged))
    with pytest.raises(BesagError, match="cannot be read beyond line 0"):
        texts(whole(write(tmp_path / f"c.txt{suffix}", b"plain text")))


def test_globs_come_by_name_and_each_file_once(tmp_path: Path) -> None:
    for name in "bca":
        write(tmp_path / f"{name}.txt", name)
    data = whole(tmp_path / "c.txt", tmp_path / "*.txt")
    assert texts(data) == ["c", "a", "b"]
    assert files(data.train) == [str(tmp_path / f"{name}.txt") for name in "cab"]


def test_json_lines_with_spans(tmp_path: Path) -> None:
    rows = [{"body": "Anna went.", "names": [[0, 4]]}, {"body": " "}, {"body": "x"}, {"body": None}]
    file = write(tmp_path / "a.jsonl.gz", gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    found = list(documents(whole(file, field="body", spans="names")))
    assert [(each.text, each.spans) for each in found] == [("Anna went.", [(0, 4)]), ("x", [])]
    assert [each.spans for each in documents(whole(file, field="body"))] == [None, None]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"txt": "a"}', r"line 2 has no 'text'; it has txt\. Did you mean 'txt'\?"),
        ('{"text": 3}', "'text' is 3, not a text"),
        ('{"text": "a"', r"line 2 is not JSON: Expecting ',' delimiter, at character 13"),
        ('["a"]', "neither an object nor a string"),
        ('{"text": "abc", "spans": [[0, 9]]}', r"\[0, 9\] is no \[start, end\] in its 3 characters"),
        ('{"text": "abc", "spans": [[0, 2], [1, 3]]}', "may not overlap"),
        ('{"text": "abc", "spans": [5]}', "5 is no"),
        ('{"text": "abc", "spans": 5}', r"must be a list such as \[\[0, 4\], \[9, 12\]\], not 5"),
        ('{"text": "abc", "spans": [["a", 1], [0, 2]]}', r"\['a', 1\] is no \[start, end\]"),
        ('{"text": "abc", "spans": [[0, 1.5]]}', r"\[0, 1\.5\] is no"),
        ('{"text": "abc", "spans": [[true, 2]]}', r"\[True, 2\] is no"),
        ("[" * 100_000, "nested more than 100 deep"),
        ('{"text": "a\\ud800"}', "line 2: 'text' holds half a surrogate pair"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, row: str, message: str) -> None:
    file = write(tmp_path / "a.jsonl", f'{{"text": "fine"}}\n{row}\n')
    with pytest.raises(BesagError, match=message):
        texts(whole(file, spans="spans"))


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"body": ["a b", None, "c"], "spans": [[[0, 1]], None, []]})
    parquet.write_table(table, tmp_path / "a.parquet")
    found = list(documents(whole(tmp_path / "a.parquet", field="body", spans="spans")))
    assert [(each.text, each.spans) for each in found] == [("a b", [(0, 1)]), ("c", [])]
    with pytest.raises(BesagError, match=r"no column 'bdy': .* body, spans\. Did you mean 'body'"):
        texts(whole(tmp_path / "a.parquet", field="bdy"))


@pytest.mark.parametrize("ending", ["tsv", "csv"])
def test_tables_by_the_name_of_their_column(tmp_path: Path, ending: str) -> None:
    comma = "\t" if ending == "tsv" else ","
    file = write(tmp_path / f"a.{ending}", f"id{comma}body\n1{comma}one\n2{comma}\n3{comma}three\n")
    assert texts(whole(file, field="body")) == ["one", "three"]
    assert [one.origin for one in documents(whole(file, field="body"))][1] == f"{file}, line 4"
    with pytest.raises(BesagError, match="has no 'text'; it has id, body"):
        texts(whole(file))


def test_nested_fields(tmp_path: Path) -> None:
    row = {"page": {"parts": [{"body": "Anna went.", "names": [[0, 4]]}]}}
    file = write(tmp_path / "a.jsonl", json.dumps(row) + "\n")
    (found,) = documents(whole(file, field="page.parts.0.body", spans="page.parts.0.names"))
    assert (found.text, found.spans) == ("Anna went.", [(0, 4)])


def test_an_empty_shard_is_passed_over_and_a_line_without_end_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"text": pyarrow.array([], pyarrow.string())}), tmp_path / "a.parquet")
    file = write(tmp_path / "b.txt", "fine\n" + "x" * 300)
    assert len(texts(whole(tmp_path / "a.parquet", file))) == 2
    monkeypatch.setattr(lines, "LONGEST_LINE", 200)
    monkeypatch.setattr(lines, "CHUNK", 64)
    with pytest.raises(BesagError, match=r"b\.txt, line 2 is longer than"):
        texts(whole(file))


def test_a_name_for_spans_that_nothing_has(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"text": "a", "names": []}\n')
    with pytest.raises(BesagError, match=r"data\.spans = 'nams', but nothing in .*a\.jsonl has a field of that name"):
        texts(whole(file, spans="nams"))
    plain = write(tmp_path / "a.txt", "a\n")
    assert texts(whole(file, plain, spans="names")) == ["a", "a"]  # some have them, and that is enough
    with pytest.raises(BesagError, match=r"but nothing in .*a\.txt has"):
        texts(whole(plain, spans="names"))


@pytest.mark.parametrize("kept", [0, 5, 200])
def test_a_damaged_parquet_file(tmp_path: Path, kept: int) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"text": ["a b"] * 100}), tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    file = write(tmp_path / "b.parquet", content[:kept])
    with pytest.raises(BesagError, match=r"b\.parquet cannot be read, it is damaged or not a Parquet file: \w+"):
        texts(whole(file))


def test_a_dataset_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(name: str, **options: object) -> None:
        raise ConnectionError("Couldn't reach it\nand more")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    said = r"^data\.dataset = 'no/such' with data\.split = 'train' cannot be loaded: Couldn't reach it$"
    with pytest.raises(BesagError, match=said):
        texts(Data(dataset="no/such", held_out=0.0))


def test_a_name_that_nothing_fits(tmp_path: Path) -> None:
    write(tmp_path / "part.txt", "a")
    with pytest.raises(BesagError, match=r"no file fits '.*prt\.txt'\. Did you mean '.*part\.txt'\?$"):
        texts(whole(tmp_path / "prt.txt"))
    with pytest.raises(BesagError, match=r"no file fits '.*prt\*\.txt'\.$"):  # a pattern is like no name
        texts(whole(tmp_path / "prt*.txt"))
    with pytest.raises(BesagError, match=r"There is no folder '.*corpus'\.$"):
        texts(whole(tmp_path / "corpus" / "*.txt"))


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str) -> None:
        raise PermissionError(13, "Permission denied", name)

    file = write(tmp_path / "a.txt", "a")
    monkeypatch.setattr(lines, "unpacked", refused)
    with pytest.raises(BesagError, match=r"cannot read '.*a\.txt': Permission denied$"):
        texts(whole(file))


def test_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}

    def load_dataset(name: str, **options: object) -> list[dict[str, str]]:
        asked.update(options, name=name)
        return [{"text": "a"}, {"text": "b"}]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    assert texts(Data(dataset="some/corpus", split="test", held_out=0.0)) == ["a", "b"]
    assert asked == {"name": "some/corpus", "split": "test", "streaming": False}


@pytest.mark.parametrize("rows", [4, 3])
def test_a_changed_dataset_has_another_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    file, data = tmp_path / "corpus" / "train.jsonl", Data(dataset=str(tmp_path / "corpus"), held_out=0.0)
    file.parent.mkdir()

    def put(count: int) -> None:
        file.write_text("".join(f'{{"text": "row {number}"}}\n' for number in range(count)))

    put(3)
    before = fingerprint(data)
    assert fingerprint(data) == before
    put(rows)
    os.utime(file, ns=(10**18, 10**18))  # whatever the clock of this disk can tell apart
    assert fingerprint(data) != before
    assert fingerprint(data)["dataset"][:2] == [data.dataset, "train"]


def test_a_dataset_without_a_version_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset_builder(name: str) -> None:
        raise ConnectionError("Couldn't reach it")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset_builder=load_dataset_builder))
    with pytest.raises(BesagError, match=r"'no/such'.*Couldn't reach it"):
        fingerprint(Data(dataset="no/such", held_out=0.0))


def test_standard_input_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a\n\nb\nc\n")))
    assert texts(whole("-")) == ["a", "b\nc"]
    with pytest.raises(BesagError, match="was read to its end already"):
        texts(whole("-"))


@pytest.mark.parametrize("content", ["", "\n\n  \n"])
def test_an_empty_corpus(tmp_path: Path, content: str) -> None:
    file = write(tmp_path / "a.txt", content)
    with pytest.raises(BesagError, match=r"the corpus is empty: .*a\.txt holds no document\."):
        texts(whole(file))
    with pytest.raises(NoDocuments, match=r"holds no document for train, with 0\.1 of the documents held out\."):
        texts(Data(train=(str(file),), held_out=0.1))
    with pytest.raises(BesagError, match=r"write files, globs or '-' into data\.train"):
        texts(Data())


def test_invalid_utf8_is_told_with_its_position(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "ä\nfine\nbad ".encode() + b"\xff\xfe here\n")
    with pytest.raises(BesagError, match=r"a\.txt, line 3, byte 5 \(0xff\) is not UTF-8"):
        texts(whole(file))
    packed = write(tmp_path / "b.txt.xz", lzma.compress(b"ok\n\x80"))
    with pytest.raises(BesagError, match=r"line 2, byte 1 \(0x80\) is not UTF-8"):
        texts(whole(packed))
    with pytest.raises(BesagError, match="begins like UTF-16"):
        texts(whole(write(tmp_path / "c.txt", "a text".encode("utf-16"))))


def test_missing_files(tmp_path: Path) -> None:
    write(tmp_path / "corpus.txt", "a")
    with pytest.raises(BesagError, match=r"no file fits .*corpsu\.txt'\. Did you mean .*corpus\.txt"):
        texts(whole(tmp_path / "corpsu.txt"))
    with pytest.raises(BesagError, match="no file fits"):
        texts(whole(tmp_path / "no" / "such" / "*.txt"))
    with pytest.raises(BesagError, match=r"is a folder: write .*\*\.txt"):
        texts(whole(tmp_path))


def test_a_line_of_ten_megabytes(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "word " * 2_000_000 + "\nnext\n")
    assert [len(text) for text in texts(whole(file))] == [10_000_000, 4]


def test_held_out_documents_are_the_same_whatever_stands_around(tmp_path: Path) -> None:
    lines = [f"document {number}" for number in range(4000)]
    first = write(tmp_path / "a.txt", "\n".join(lines))
    data = Data(train=(str(first),), held_out=0.1)
    kept, aside = texts(data), texts(data, "valid")
    assert sorted(kept + aside) == sorted(lines)
    assert not set(kept) & set(aside)
    assert abs(len(aside) - 400) < 5 * (4000 * 0.1 * 0.9) ** 0.5  # five standard deviations
    other = write(tmp_path / "b.txt", "\n".join(lines[::-2]))
    assert set(texts(Data(train=(str(other),), held_out=0.1), "valid")) == set(aside) & set(lines[::-2])


def test_a_small_corpus_has_something_held_out(tmp_path: Path) -> None:
    data = Data(train=(str(write(tmp_path / "a.txt", "a\nb\nc\na\nb\nc")),), held_out=0.0001)
    aside, kept = texts(data, "valid"), texts(data)
    assert len(aside) == 2
    assert len(set(aside)) == 1  # copies are on one side
    assert sorted(aside + kept) == sorted("abcabc")
    single = Data(train=(str(write(tmp_path / "b.txt", "only")),))
    assert texts(single) == ["only"]
    with pytest.raises(BesagError, match=r"holds no document for valid, with 0\.002 of the documents held out"):
        texts(single, "valid")


def test_named_held_out_files_leave_train_whole(tmp_path: Path) -> None:
    train, valid = write(tmp_path / "a.txt", "a\nb"), write(tmp_path / "b.txt", "c")
    data = Data(train=(str(train),), valid=(str(valid),), held_out=1.0)
    assert texts(data) == ["a", "b"]
    assert texts(data, "valid") == ["c"]
    with pytest.raises(BesagError, match="there is no held-out text"):
        texts(whole(train), "valid")
    with pytest.raises(BesagError, match="standard input can be read only once"):
        texts(Data(train=("-",)), "valid")


def test_the_fingerprint_sees_changes(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "a\nb")
    data = whole(file)
    before = fingerprint(data)
    assert fingerprint(data) == before
    write(file, "a\nb\nc")
    assert fingerprint(data) != before
    assert fingerprint(data, "train") != fingerprint(Data(train=data.train, held_out=0.5), "train")


def test_json_lines_with_tags(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "Anna went.", "pos": [[5, 9, "VERB"], [0, 4, "PROPN"]]}\n{"text": "x"}\n')
    found = list(documents(whole(file, tags="pos")))
    assert [each.tags for each in found] == [[(0, 4, "PROPN"), (5, 9, "VERB")], []]
    assert [each.tags for each in documents(whole(file))] == [None, None]
    with pytest.raises(BesagError, match=r"data\.tags = 'tag', but nothing in .*a\.jsonl has a field of that name"):
        list(documents(whole(file, tags="tag")))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("[[0, 2]]", r"its tags must be a list such as \[\[0, 3, \"DET\"\]"),
        ('[[0, 2, ""]]', "its tags must be a list such as"),
        ("[[0, 2, 7]]", "its tags must be a list such as"),
        ('"DET"', "its tags must be a list such as"),
        ('[[0, 9, "DET"]]', r"\[0, 9\] is no \[start, end\] in its 3 characters"),
        ('[[0, 2, "DET"], [1, 3, "NOUN"]]', "may not overlap"),
    ],
)
def test_tags_that_are_none(tmp_path: Path, given: str, said: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(f'{{"text": "abc", "tags": {given}}}\n')
    with pytest.raises(BesagError, match=said):
        list(documents(whole(file, tags="tags")))


def test_other_tags_are_another_source(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "abc", "tags": []}\n')
    plain, tagged = (fingerprint(whole(file, **more)) for more in ({}, {"tags": "tags"}))
    assert "tags" not in plain  # caches of before are still found
    assert tagged == {**plain, "tags": "tags"}
