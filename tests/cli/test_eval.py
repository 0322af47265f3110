"""`besag eval overlap` from the command line; suites are in test_suites.py."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from tests.cli.conftest import Run, put, table

ROWS = [
    ("The cats sleep.", "The cats sleeps.", "agreement", "verbs"),
    ("She sees herself.", "She sees himself.", "gender", "anaphora"),
    ("He sees himself.", "He sees herself.", "gender", "anaphora"),
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    header = ("good", "bad", "paradigm", "phenomenon")
    return put(tmp_path / "pairs.tsv", "".join("\t".join(row) + "\n" for row in (header, *ROWS)))


def test_a_header_that_is_not_known_is_no_pair(run: Run, tmp_path: Path) -> None:
    file = put(tmp_path / "a.tsv", "correct\twrong\nThe cats sleep.\tThe cats sleeps.\n")
    corpus = put(tmp_path / "corpus.txt", "The cats sleep.\n")
    refused = run("eval", "overlap", corpus, "--against", file)
    assert refused.exit_code == 2
    assert "begins with correct, wrong: are these names of columns?" in refused.stderr
    assert "--good NAME and --bad NAME" in refused.stderr
    assert run("eval", "overlap", corpus, "--against", file, "--good", "correct", "--bad", "wrong").exit_code == 0


def test_a_sentence_that_cannot_be_decoded_is_told(run: Run, tmp_path: Path) -> None:
    """There are no rows that could have a status."""
    file = put(tmp_path / "a.jsonl", json.dumps({"good": "It\udfff is.", "bad": "It are.", "UID": "p"}) + "\n")
    overlap = run("eval", "overlap", put(tmp_path / "corpus.txt", "The cats.\n"), "--against", file)
    assert overlap.exit_code == 2
    assert "a.jsonl, line 1: 'good' holds half a surrogate pair" in overlap.stderr


def test_overlap_of_packed_text_with_pairs_and_lines(run: Run, pairs: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt.xz"
    corpus.write_bytes(lzma.compress(b"A day.\nThen she sees\nherself, again.\n\nThe cats\n\nsleep well.\n"))
    lines = put(tmp_path / "lines.txt", "Then she sees herself again\nnothing of this is there\n")
    result = run("eval", "overlap", corpus, "--against", pairs, "--against", lines, "--format", "tsv", "--length", 4)
    assert result.exit_code == 0, result.stderr
    found = table(result.stdout)
    assert [row["text"] for row in found] == ["Then she sees herself again"]
    assert found[0]["in"].endswith("lines.txt, line 1")
    assert "corpus.txt.xz" in found[0]["corpus"]
    assert "texts seen" in result.stderr
    nothing = run("eval", "overlap", corpus, "--against", put(tmp_path / "b.txt", "some other words here\n"))
    assert nothing.exit_code == 0
    assert "0 of 1 texts seen" in nothing.stderr + nothing.stdout
    empty = run("eval", "overlap", corpus, "--against", put(tmp_path / "c.txt", "\n"))
    assert empty.exit_code == 2
    assert "c.txt holds no text to look for" in empty.stderr
