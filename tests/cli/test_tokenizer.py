"""`besag tokenizer`: learn and compare from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import put, table
from typer.testing import CliRunner, Result

from besag.cli.tokenizer import tokenizer

TEXT = "The old cats sleep.\nA cat is asleep on the mat, unlike the sleepless dogs.\n\nDogs bark at 10 cats.\n" * 20


def run(*arguments: object) -> Result:
    return CliRunner().invoke(tokenizer, [str(part) for part in arguments])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return put(tmp_path / "corpus.txt", TEXT)


@pytest.mark.parametrize("kind", ["unigram", "bpe", "wordpiece"])
def test_a_folder_that_transformers_loads(corpus: Path, tmp_path: Path, kind: str) -> None:
    from transformers import AutoTokenizer

    folder = tmp_path / kind
    result = run("train", corpus, "--kind", kind, "--size", 60, "--no-byte-fallback", "-o", folder, "--max-length", 64)
    assert result.exit_code == 0, result.stderr
    assert "60 tokens" in result.stderr
    learnt = AutoTokenizer.from_pretrained(folder)
    assert (len(learnt), learnt.model_max_length) == (60, 64)
    assert learnt.decode(learnt("The cats bark.")["input_ids"], skip_special_tokens=True) == "The cats bark."


def test_options_reach_the_training(corpus: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = tmp_path / "out"
    result = run("train", corpus, "--uncased", "--no-digits", "--size", 326, "-o", folder, "--kind", "bpe")
    assert result.exit_code == 0, result.stderr
    learnt = AutoTokenizer.from_pretrained(folder)
    assert learnt.tokenize("DOGS 10") == ["▁dogs", "▁10"]


@pytest.mark.filterwarnings("default")  # as in a process of its own: the command prints warnings
def test_what_goes_wrong_is_told(corpus: Path, tmp_path: Path) -> None:
    small = run("train", corpus, "--size", 10, "-o", tmp_path / "a", "--no-byte-fallback")
    assert small.exit_code == 2
    assert "smaller than the alphabet" in small.stderr
    there = run("train", corpus, "--size", 300, "-o", tmp_path)
    assert "exists already" in there.stderr
    missing = run("train", tmp_path / "nothing.txt", "-o", tmp_path / "b")
    assert missing.exit_code == 2
    assert not (tmp_path / "b").exists()
    short = run("train", corpus, "--size", 5000, "-o", tmp_path / "c")
    assert short.exit_code == 0
    assert "not 5,000: the text has no more pieces" in short.stderr


def test_a_report_of_several(corpus: Path, tmp_path: Path) -> None:
    for kind in ("bpe", "unigram"):
        run("train", corpus, "--kind", kind, "--size", 60, "--no-byte-fallback", "-o", tmp_path / kind)
    held = put(tmp_path / "held.txt", "The cats sleep on dogs.\n")
    result = run("report", tmp_path / "bpe", tmp_path / "unigram", "embedded", "--text", held, "--format", "tsv")
    assert result.exit_code == 0, result.stderr
    rows = table(result.stdout)
    assert [Path(row["name"]).name for row in rows] == ["bpe", "unigram", "embedded"]
    assert [row["size"] for row in rows] == ["60", "60", "12288"]
    assert all(float(row["words"]) == 5 for row in rows)
    given = put(tmp_path / "morphemes.tsv", "cats\tcat s\ndogs\tdog s\n")
    shown = run("report", tmp_path / "bpe", "embedded", "--text", held, "--format", "table").stdout.splitlines()
    assert shown[0].split()[0] == "measure"  # a column for each tokenizer
    assert shown[0].split()[-1] == "embedded"
    assert [line.split()[0] for line in shown[2:5]] == ["size", "texts", "words"]
    lines = run("report", tmp_path / "bpe", "--text", held, "--morphemes", given, "--format", "jsonl")
    assert json.loads(lines.stdout)["boundary_recall"] is not None
    wrong = run("report", tmp_path / "bpe", "--text", held, "--morphemes", put(tmp_path / "x.tsv", "cats\n"))
    assert wrong.exit_code == 2
    assert "line 1 is no word" in wrong.stderr
    assert "holds no tokenizer (no tokenizer.json" in run("report", tmp_path, "--text", held).stderr
    assert "no folder" in run("report", tmp_path / "nowhere", "--text", held).stderr
    assert "is there twice" in run("report", "embedded", "embedded", "--text", held).stderr


def test_words_are_added_and_old_ids_stay(corpus: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder, grown = tmp_path / "old", tmp_path / "grown"
    run("train", corpus, "--kind", "wordpiece", "--size", 60, "--no-byte-fallback", "-o", folder)
    result = run("extend", folder, corpus, "--size", 2, "-o", grown)
    assert result.exit_code == 0, result.stderr
    assert f"62 tokens in {grown}, 2 of them new" in result.stderr
    before, after = AutoTokenizer.from_pretrained(folder), AutoTokenizer.from_pretrained(grown)
    assert before.get_vocab().items() <= after.get_vocab().items()
    assert len(after.tokenize(TEXT)) < len(before.tokenize(TEXT))
    again = run("extend", folder, corpus, "-o", grown)
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    nothing = run("extend", folder, put(tmp_path / "dots.txt", ". . ."), "-o", tmp_path / "none")
    assert nothing.exit_code == 2
    assert not (tmp_path / "none").exists()
