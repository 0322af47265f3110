"""`besag eval`: minimal pairs and overlap from the command line."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Run, put, table

import besag
from besag.evaluation.minimal_pairs import minimal_pairs, read_pairs
from besag.files.rows import read

ROWS = [
    ("The cats sleep.", "The cats sleeps.", "agreement", "verbs"),
    ("She sees herself.", "She sees himself.", "gender", "anaphora"),
    ("He sees himself.", "He sees herself.", "gender", "anaphora"),
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    header = ("good", "bad", "paradigm", "phenomenon")
    return put(tmp_path / "pairs.tsv", "".join("\t".join(row) + "\n" for row in (header, *ROWS)))


def test_rows_are_what_python_finds(run: Run, pairs: Path) -> None:
    result = run("eval", "minimal-pairs", pairs, "--format", "tsv")
    assert result.exit_code == 0, result.stderr
    expected = minimal_pairs(besag.load(), read_pairs(pairs))
    found = table(result.stdout)
    assert [row["paradigm"] for row in found] == ["agreement", "gender"]
    assert [float(row["accuracy"]) for row in found] == [one.accuracy for one in expected.paradigms.values()]
    assert [float(row["se"]) for row in found] == pytest.approx([one.se for one in expected.paradigms.values()])
    assert "mean over paradigms" in result.stderr


def test_other_rows(run: Run, pairs: Path, tmp_path: Path) -> None:
    by = run("eval", "minimal-pairs", pairs, "--per", "phenomenon", "--format", "jsonl")
    assert [json.loads(line)["phenomenon"] for line in by.stdout.splitlines()] == ["verbs", "anaphora"]
    overall = run("eval", "minimal-pairs", pairs, "--per", "overall", "--format", "jsonl", "--limit", 1)
    assert [json.loads(line)["pairs"] for line in overall.stdout.splitlines()] == [1, 1]
    out = tmp_path / "pairs.parquet"
    each = run("eval", "minimal-pairs", pairs, "--per", "pair", "-o", out, "--method", "chain", "--reduction", "mean")
    assert each.exit_code == 0, each.stderr
    rows = pq.read_table(out).to_pylist()
    assert [row["good"] for row in rows] == [row[0] for row in ROWS]
    assert rows[0]["good_score"] == pytest.approx(besag.load().score(ROWS[0][0], "chain").mean, abs=1e-4)
    assert run("eval", "minimal-pairs", pairs, "-o", out).exit_code == 2  # it is there already


def test_several_methods_and_a_picture(run: Run, pairs: Path, tmp_path: Path) -> None:
    result = run("eval", "minimal-pairs", pairs, "--method", "pll", "--method", "word_l2r", "--format", "tsv")
    assert [row["method"] for row in table(result.stdout)] == ["pll"] * 2 + ["word_l2r"] * 2
    plot = tmp_path / "pairs.png"
    assert run("eval", "minimal-pairs", pairs, "--plot", plot, "--format", "table").exit_code == 0
    assert plot.stat().st_size > 5_000
    both = run("eval", "minimal-pairs", pairs, "--plot", tmp_path / "a.png", "--method", "pll", "--method", "chain")
    assert both.exit_code == 2


def test_what_cannot_be_scored_is_told(run: Run, tmp_path: Path) -> None:
    file = put(tmp_path / "a.tsv", "The cats sleep.\tThe cats sleeps.\nIt [MASK].\tIt is.\n")
    result = run("eval", "minimal-pairs", file, "--no-header", "--per", "pair", "--format", "tsv")
    assert result.exit_code == 3
    assert [row["status"] for row in table(result.stdout)] == ["ok", "mask"]
    assert "1 pairs were not scored" in result.stderr


def test_a_header_that_is_not_known_is_no_pair(run: Run, tmp_path: Path) -> None:
    file = put(tmp_path / "a.tsv", "correct\twrong\nThe cats sleep.\tThe cats sleeps.\n")
    refused = run("eval", "minimal-pairs", file)
    assert refused.exit_code == 2
    assert "begins with correct, wrong: are these names of columns?" in refused.stderr
    assert "--good NAME --bad NAME" in refused.stderr
    by_number = run("eval", "minimal-pairs", file, "--good", 1, "--bad", 2)  # with or without the first line?
    assert by_number.exit_code == 2
    for said in (["--good", "correct", "--bad", "wrong"], ["--good", 1, "--bad", 2, "--header"]):
        found = run("eval", "minimal-pairs", file, *said, "--per", "overall", "--format", "tsv")
        assert [row["pairs"] for row in table(found.stdout)] == ["1", "1"], said
    all_of_it = run("eval", "minimal-pairs", file, "--no-header", "--per", "overall", "--format", "tsv")
    assert [row["pairs"] for row in table(all_of_it.stdout)] == ["2", "2"]
    corpus = put(tmp_path / "corpus.txt", "The cats sleep.\n")
    assert run("eval", "overlap", corpus, "--against", file).exit_code == 2
    assert run("eval", "overlap", corpus, "--against", file, "--good", "correct", "--bad", "wrong").exit_code == 0


def test_a_sentence_that_cannot_be_decoded_is_not_scored_and_stops_nothing(run: Run, tmp_path: Path) -> None:
    first = {"good": "The cats sleep.", "bad": "The cats sleeps.", "UID": "\ud800"}
    second = {"good": "It\udfff is.", "bad": "It are.", "UID": "p"}
    file = put(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in (first, second)))
    for ending in ("tsv", "csv", "jsonl", "parquet"):
        out = tmp_path / f"out.{ending}"
        result = run("eval", "minimal-pairs", file, "--per", "pair", "-o", out)
        assert result.exit_code == 3, result.stderr
        found = [row.values for row in read(str(out), escaped=True)]
        assert [row["status"] for row in found] == ["ok", "undecodable"]
        assert [row["paradigm"] for row in found] == ["\\ud800", "p"]
        assert found[1]["good"] == "It\\udfff is."
    overlap = run("eval", "overlap", put(tmp_path / "corpus.txt", "The cats.\n"), "--against", file)
    assert overlap.exit_code == 2  # it has no rows that could have a status
    assert "a.jsonl, line 2: 'good' holds half a surrogate pair" in overlap.stderr


def test_wrong_files_and_options_are_told_before_the_model_is_loaded(run: Run, tmp_path: Path) -> None:
    missing = run("eval", "minimal-pairs", tmp_path / "nothing.tsv", "-m", tmp_path / "no-model")
    assert missing.exit_code == 2
    assert "no such file" in missing.stderr
    assert f"{str(tmp_path)!r} is a folder: name the files in it" in run("eval", "minimal-pairs", tmp_path).stderr
    torn = put(tmp_path / "torn.jsonl", '{"sentence_good": "A.", "sentence_bad": "B."}\n{"sent\n')
    assert "line 2 is not JSON: Unterminated string starting at, at char" in run("eval", "minimal-pairs", torn).stderr
    strange = run("eval", "minimal-pairs", put(tmp_path / "a.tsv", "good\tbad\nA.\tB.\n"), "--set", "orders=3")
    assert "--set orders=3: orders is an option of" in strange.stderr


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
