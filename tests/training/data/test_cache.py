from __future__ import annotations

import errno
import io
import json
import os
import pickle
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests import tokenizers

from besag.errors import BesagError
from besag.training.data import cache as caches
from besag.training.data import tokens
from besag.training.data.cache import Cache, build_cache, prepare
from besag.training.data.sources import Document
from besag.training.data.tokens import tokenise
from besag.training.recipe import Data
from besag.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(tokenizers.build("wordpiece-cased"))


def documents(count: int = 30) -> list[Document]:
    return [Document(f"The cat sleeps on mat {n}.\nDogs bark at night. " * (n % 4 + 1), None, "") for n in range(count)]


def left(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_what_is_written_is_read(tmp_path: Path, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "GROUP", 300)  # several groups
    told: list[tuple[int, int]] = []
    built = build_cache(documents(), vocabulary, tmp_path / "c", progress=lambda *done: told.append(done))
    whole = tokenise(documents(), vocabulary)
    for found in (built, Cache.open(tmp_path / "c"), pickle.loads(pickle.dumps(built))):
        assert np.array_equal(found.tokens, whole.tokens)
        assert np.array_equal(found.marks, whole.marks)
        assert np.array_equal(found.documents, whole.documents)
        found.verify()
    assert built.tokens.dtype == np.uint16
    assert len(told) > 2
    assert told == sorted(told)
    assert told[-1] == (30, len(whole.tokens))
    assert left(tmp_path) == ["c"]


def test_wide_vocabularies_take_four_bytes(tmp_path: Path) -> None:
    wide = Vocabulary.of_symbols([f"w{number}" for number in range(70_000)])
    built = build_cache([Document("w69999 w3", None, "")], wide, tmp_path / "c")
    assert built.tokens.dtype == np.uint32
    assert built.tokens.tolist() == [69_999, 3]


def test_statistics(tmp_path: Path, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "CHUNK", 64)
    built = build_cache(documents(), vocabulary, tmp_path / "c")
    found = built.statistics(vocabulary)
    assert found.counts.tolist() == np.bincount(built.tokens, minlength=vocabulary.size).tolist()
    for _ in range(2):  # it can be gone through anew
        assert np.concatenate(list(found.documents)).tolist() == built.tokens.tolist()
    assert found.special == vocabulary.special_ids
    assert found.tokens[vocabulary.id("cat")] == "cat"


@pytest.mark.parametrize("name", caches.NAMES)
def test_damage_is_seen(tmp_path: Path, vocabulary: Vocabulary, name: str) -> None:
    build_cache(documents(), vocabulary, tmp_path / "c")
    file = tmp_path / "c" / f"{name}.bin"
    content = bytearray(file.read_bytes())
    content[9] ^= 1
    file.write_bytes(content)
    with pytest.raises(BesagError, match=rf"is damaged: the checksum of {name}\.bin"):
        Cache.open(tmp_path / "c").verify()
    file.write_bytes(content[:-1])
    with pytest.raises(BesagError, match=rf"{name}\.bin has \d+ bytes instead of"):
        Cache.open(tmp_path / "c")
    file.unlink()
    with pytest.raises(BesagError, match="has no bytes"):
        Cache.open(tmp_path / "c")


def test_a_bad_description_is_told(tmp_path: Path, vocabulary: Vocabulary) -> None:
    with pytest.raises(BesagError, match="there is no cache"):
        Cache.open(tmp_path / "none")
    build_cache(documents(), vocabulary, tmp_path / "c")
    meta = tmp_path / "c" / "meta.json"
    said = json.loads(meta.read_text())
    meta.write_text(json.dumps({**said, "format": 99}))
    with pytest.raises(BesagError, match="has format 99"):
        Cache.open(tmp_path / "c")
    meta.write_text(meta.read_text()[:50])
    with pytest.raises(BesagError, match=r"its meta\.json cannot be read"):
        Cache.open(tmp_path / "c")


class Full:
    """A disk that takes so many bytes and no more."""

    def __init__(self, path: Path, room: int) -> None:
        self.file, self.room = open(path, "wb", buffering=0), room  # noqa: SIM115

    def write(self, raw: memoryview) -> int:
        if len(raw) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(raw)
        return self.file.write(raw)

    def fileno(self) -> int:
        return self.file.fileno()

    def __enter__(self) -> Full:
        return self

    def __exit__(self, *failure: object) -> None:
        self.file.close()


@pytest.mark.parametrize("room", [10, 400])
def test_a_full_disk_leaves_the_old_cache_whole(
    tmp_path: Path, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    before = build_cache(documents(5), vocabulary, tmp_path / "c")
    old = before.tokens.tolist()
    monkeypatch.setattr(tokens, "GROUP", 100)
    monkeypatch.setattr(caches, "_file", lambda path: Full(path, room))
    with pytest.raises(BesagError, match="could not be written: the disk is full"):
        build_cache(documents(), vocabulary, tmp_path / "c")
    assert left(tmp_path) == ["c"]
    after = Cache.open(tmp_path / "c")
    after.verify()
    assert after.tokens.tolist() == old


def test_a_failure_in_reading_leaves_nothing(tmp_path: Path, vocabulary: Vocabulary) -> None:
    def broken() -> Any:
        yield from documents(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_cache(broken(), vocabulary, tmp_path / "c")
    with pytest.raises(BesagError, match="the corpus is empty"):
        build_cache([Document(" ", None, "")], vocabulary, tmp_path / "c")
    assert left(tmp_path) == []


def test_a_new_cache_replaces_the_old_and_open_ones_live_on(tmp_path: Path, vocabulary: Vocabulary) -> None:
    old = build_cache(documents(5), vocabulary, tmp_path / "c")
    before = old.tokens.tolist()
    new = build_cache(documents(7), vocabulary, tmp_path / "c")
    assert len(new.documents) == 8
    assert old.tokens.tolist() == before
    assert left(tmp_path) == ["c"]


def test_what_killed_processes_left_is_swept_away(tmp_path: Path, vocabulary: Vocabulary) -> None:
    import socket

    gone = tmp_path / f".c.partial-{socket.gethostname()}-{2**22 + 1}"  # above any process number
    ours = tmp_path / f".c.partial-{socket.gethostname()}-{os.getppid()}"
    for folder in (gone, ours):
        folder.mkdir()
    build_cache(documents(3), vocabulary, tmp_path / "c")
    assert left(tmp_path) == sorted([ours.name, "c"])


class Killed(BaseException):
    """The process ends here: nothing after it is done, not even cleaning up."""


@pytest.mark.parametrize("number", range(4))  # a removal, two renamings, a removal
def test_killed_before_any_renaming_a_whole_cache_stays(
    tmp_path: Path, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    folder, left_over = tmp_path / "c", iter(range(number))
    build_cache(documents(5), vocabulary, folder)

    def ending(call: Any) -> Any:
        def counted(*args: Any, **options: Any) -> Any:
            if next(left_over, None) is None:
                raise Killed
            return call(*args, **options)

        return counted

    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: 2**22 + 1)  # above any process number
        patched.setattr(os, "rename", ending(os.rename))
        patched.setattr(shutil, "rmtree", ending(shutil.rmtree))
        with pytest.raises(Killed):
            build_cache(documents(7), vocabulary, folder)
    caches._sweep(folder)  # as the next process begins
    assert len(Cache.open(folder).documents) == (8 if number >= 2 else 6)
    assert left(tmp_path) == ["c"]


def test_prepare_builds_once_and_again_when_anything_differs(
    tmp_path: Path, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("\n".join(document.text.replace("\n", " ") for document in documents()))
    built: list[Path] = []
    really = caches.build_cache

    def counted(documents: Any, vocabulary: Vocabulary, folder: Path, **options: Any) -> Cache:
        built.append(folder)
        return really(documents, vocabulary, folder, **options)

    monkeypatch.setattr(caches, "build_cache", counted)
    data = Data(train=(str(file),), held_out=0.1)
    first = prepare(data, vocabulary, tmp_path / "cache")
    assert prepare(data, vocabulary, tmp_path / "cache").folder == first.folder
    assert len(built) == 1
    valid = prepare(data, vocabulary, tmp_path / "cache", "valid")
    assert len(built) == 2
    assert len(valid.documents) + len(first.documents) == 32
    prepare(Data(train=data.train, held_out=0.1, unit="documents"), vocabulary, tmp_path / "cache")
    assert len(built) == 2  # the unit does not change the tokens …
    prepare(Data(train=data.train, held_out=0.1, unit="sentences"), vocabulary, tmp_path / "cache")
    assert len(built) == 3  # … but for sentences, each tokenised alone
    prepare(data, Vocabulary(tokenizers.build("unigram")), tmp_path / "cache")
    assert len(built) == 4
    file.write_text(file.read_text() + "\nOne more.")
    prepare(data, vocabulary, tmp_path / "cache")
    assert len(built) == 5
    assert len(set(built)) == 5


def test_prepare_verifies(tmp_path: Path, vocabulary: Vocabulary) -> None:
    (tmp_path / "a.txt").write_text("The cat.\nThe mat.")
    data = Data(train=(str(tmp_path / "a.txt"),), held_out=0)
    found = prepare(data, vocabulary, tmp_path / "cache")
    (found.folder / "marks.bin").write_bytes(bytes(len(found.marks)))
    with pytest.raises(BesagError, match="is damaged"):
        prepare(data, vocabulary, tmp_path / "cache")


def test_standard_input_is_read_once_for_both_sides(
    tmp_path: Path, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def type_in(count: int) -> None:
        text = "\n".join(f"The cat sleeps on mat {n}." for n in range(count))
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))

    data = Data(train=("-",), held_out=0.2)
    type_in(100)
    train = prepare(data, vocabulary, tmp_path)
    valid = prepare(data, vocabulary, tmp_path, "valid")
    assert len(train.documents) + len(valid.documents) == 102
    assert 5 < len(valid.documents) < 40
    assert len(prepare(data, vocabulary, tmp_path, resume=True).documents) == len(train.documents)
    type_in(50)  # a new run reads anew
    assert len(prepare(data, vocabulary, tmp_path).documents) < 52
    with pytest.raises(BesagError, match="cannot be read again"):
        prepare(data, vocabulary, tmp_path / "other", resume=True)


@pytest.mark.parametrize("family", tokenizers.FAMILIES)
def test_the_digest_tells_tokenizers_apart(family: str, vocabulary: Vocabulary) -> None:
    digest = caches.tokenizer_digest(Vocabulary(tokenizers.build(family)))
    assert digest == caches.tokenizer_digest(Vocabulary(tokenizers.build(family)))
    assert (digest == caches.tokenizer_digest(vocabulary)) == (family == "wordpiece-cased")


def test_tags_are_kept_by_name_and_counted(
    tmp_path: Path, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "GROUP", 30)  # a document a group, each with numbers of its own
    found = [
        Document("The cat sleeps on the mat.", None, "", [(4, 7, "NOUN"), (8, 14, "VERB")]),
        Document("The cat sleeps on the mat.", None, "", []),
        Document("Sleeps the cat on the mat.", None, "", [(0, 6, "VERB"), (11, 14, "NOUN")]),
    ]
    built = build_cache(found, vocabulary, tmp_path / "c")
    whole = tokenise(found, vocabulary)
    assert built.meta["tags"] == ["NOUN", "VERB"] == [*whole.tags]
    assert np.array_equal(Cache.open(tmp_path / "c").marks, whole.marks)
    counted = built.statistics(vocabulary)
    assert counted.tagged is not None
    cat = vocabulary.tokenizer.convert_tokens_to_ids("cat")
    assert counted.counts[cat] == 3
    assert counted.tagged[cat].tolist() == [2, 0]
    assert counted.tagged.sum(0).tolist() == [np.count_nonzero(whole.marks >> 8 == number) for number in (1, 2)]
    plain = build_cache(documents(), vocabulary, tmp_path / "d")
    assert plain.statistics(vocabulary).tagged is None
    assert "tags" not in plain.meta
