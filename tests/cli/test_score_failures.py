"""`besag score` where something is wrong: rows without a score, wrong input and options, Ctrl-C."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from tests import networks
from tests.cli.conftest import Run, table

import besag
from besag.cli import side_by_side
from besag.cli.exits import CtrlC
from besag.files.rows import read

A, B = "The cats sleep.", "The cats sleeps."


# ---- rows that cannot be scored


def test_an_empty_line_is_an_empty_row_and_the_exit_code_says_so(run: Run, corpus: Path) -> None:
    result = run("score", corpus)
    assert result.exit_code == 3
    assert [row["status"] for row in table(result.stdout)] == ["ok", "empty", "ok"]
    assert [row["pll"] != "" for row in table(result.stdout)] == [True, False, True]
    assert result.stderr == f"1 row was not scored: 1 empty; the first is {corpus}, line 2\n"
    rows = table(run("score", corpus, "--per", "token").stdout)
    assert [row["token"] for row in rows if row["sentence_id"] == "2"] == [""]


def test_strict_refuses_an_empty_line(run: Run, corpus: Path) -> None:
    result = run("score", corpus, "--strict")
    assert result.exit_code == 2
    assert result.stderr == f"error: {corpus}, line 2 was not scored: the text is empty (--strict)\n"
    assert [row["row"] for row in table(result.stdout)] == ["1"]  # what came before is there


def test_a_text_of_unknown_characters_only(run: Run, tmp_path: Path) -> None:
    networks.tiny("bert").save_pretrained(tmp_path)  # the embedded model writes what it does not know in bytes
    networks.vocabulary("bert").tokenizer.save_pretrained(tmp_path)
    result = run("score", "\u16a0\u16a1\u16a2", "--format", "jsonl", "-m", tmp_path)
    assert result.exit_code == 3
    assert json.loads(result.stdout)["status"] == "unknown"
    assert json.loads(result.stdout)["score"] is None
    assert "1 unknown" in result.stderr
    assert run("score", "\u16a0\u16a1\u16a2", "--strict", "-m", tmp_path).exit_code == 2


def test_a_bad_line_stops_after_the_rows_before_it(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"Good.\nFine.\nb\0d\nNever read.\n")
    result = run("score", path)
    assert result.exit_code == 2
    assert [row["text"] for row in table(result.stdout)] == ["Good.", "Fine."]
    assert "line 3, byte 2 is NUL" in result.stderr


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "parquet"])
def test_a_row_that_cannot_be_decoded_has_a_status_and_stops_nothing(run: Run, tmp_path: Path, ending: str) -> None:
    path, out = tmp_path / "a.tsv", tmp_path / f"out.{ending}"
    path.write_bytes(b"text\tx\xe9\nGood.\t1\nb\xe9d.\t2\nFine.\t\xff\n")
    result = run("score", path, "-o", out)
    assert result.exit_code == 3, result.stderr
    assert f"1 undecodable; the first is {path}, line 3" in result.stderr
    found = [row.values for row in read(str(out), escaped=True)]  # which refuses what is not UTF-8
    assert [row["status"] for row in found] == ["ok", "undecodable", "ok"]
    assert [row["text"] for row in found] == ["Good.", "b\\xe9d.", "Fine."]
    others = [row["input"] if ending == "jsonl" else row for row in found]
    assert [row["x\\xe9"] for row in others] == ["1", "2", "\\xff"]
    strict = run("score", path, "--strict")
    assert strict.exit_code == 2
    assert "bytes that are not UTF-8" in strict.stderr


def test_the_null_device_can_be_written_and_read(run: Run) -> None:
    assert run("score", A, "-o", "/dev/null").exit_code == 0
    nothing = run("score", "/dev/null")
    assert nothing.exit_code == 2
    assert "nothing came in on /dev/null" in nothing.stderr


def test_other_commands_go_on_after_a_row_that_cannot_be_decoded(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"The cats sleep.\nb\xe9d.\nThe dogs run.\n")
    marginals = run("marginals", path, "--candidates", "dogs", "--format", "jsonl")
    assert marginals.exit_code == 3
    assert [json.loads(line)["text_id"] for line in marginals.stdout.splitlines()] == [1, 3]
    assert f"{path}, line 2" in marginals.stderr
    augmented = run("augment", path, "--similarity", "-1", "--format", "tsv")
    assert augmented.exit_code == 3
    assert [row["status"] == "undecodable" for row in table(augmented.stdout)] == [False, True, False]
    corrected = run("correct", path, "--margin", 1000, "--format", "tsv")
    assert corrected.exit_code == 3
    assert [row["status"] for row in table(corrected.stdout)] == ["ok", "undecodable", "ok"]
    lengths = run("lengths", path, "-o", tmp_path / "lengths.json")
    assert lengths.exit_code == 3
    assert f"1 row without a length: undecodable; the first is {path}, line 2" in lengths.stderr
    assert besag.LengthModel.load(tmp_path / "lengths.json").n_texts == 2
    pairs = run("pairs", path, "-o", tmp_path / "study", "--candidates", 5, "--method", "mlm", "--pairs", "random")
    assert pairs.exit_code == 3, pairs.stderr
    rows = [json.loads(line) for line in (tmp_path / "study" / "pairs.jsonl").read_text().splitlines()]
    assert [row["status"] for row in rows] == ["ok", "undecodable", "ok"]


# ---- what is wrong is said before anything is written


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["empty.txt"], "empty.txt is empty: there is no text in it"),
        (["binary.bin"], "binary.bin, line 1, byte 1 is NUL: this is a binary file"),
        (["missing.txt"], "no such file: 'missing.txt'"),
        (
            ["table.tsv", "--column", "sentense"],
            "no column 'sentense': table.tsv has the columns id, sentence. Did you mean",
        ),
        ([A, "--method", "pl"], "there is no scoring method 'pl'. Did you mean 'pll'?"),
        ([A, "--method", "pll", "--method", "original"], "--method 'original' is there twice (it is 'pll')"),
        ([A, "--method", "causal"], "needs a causal model, and 'small-en' is a masked one"),
        ([A, "--set", "samples=8"], "samples is an option of elbo, not of pll"),
        ([A, "--seed", "8"], "--seed: seed is an option of chain, elbo, ag_chain, not of pll"),
        ([A, "--method", "elbo", "--set", "samples=many"], "samples='many'"),
        ([A, "--method", "chain", "--set", "order=rigth-to-left"], "Did you mean 'right-to-left'?"),
        ([A, "--rank"], "--rank belongs to tokens: say --per token"),
        ([A, "--method", "elbo", "--entropy", "--per", "token"], "'elbo' asks each token many times"),
        ([A, "--prefix-column", "before"], "--prefix-column 'before': the text"),
        ([A, "--prefix-column", "before", "--prefix", "b"], "--prefix is one for all rows, and --prefix-column one"),
        ([A, "-m", "=small-en"], "--model '=small-en': write NAME=MODEL"),
        ([A, "-m", "x=a", "-m", "x=b"], "--model x=…: two models cannot have one name"),
        ([A, "--per", "token", "--reduction", "mean"], "--reduction mean is for --per sentence"),
        ([A, "--lengths", "table.tsv"], "--lengths is for probabilities of texts of one length, and pll gives none"),
        ([A, "--method", "chain", "--lengths", "no.txt"], "no such file: 'no.txt'"),
        ([A, "--method", "chain", "--lengths", "bad.json"], "'bad.json' is not a length model"),
        ([A, "--device", "gpux"], "'gpux' is not a device"),
        ([A, "--format", "parquet"], "Parquet goes to a file"),
        ([A, "-m", "a", "-m", "b", "--revision", "x"], "--revision belongs to one model"),
        ([A, "-m", "a", "-m", "b", "--adapter", "x"], "--adapter 'x' belongs to one model"),
        ([A, "-m", "no-tokenizer"], "tokenizer"),
        ([A, "--config", "bad.toml"], "sets 'metod', which is no option. Did you mean 'method'?"),
        ([A, "--config", "no.toml"], "cannot read --config 'no.toml'"),
        (["table.tsv", "--force", "-o", "table.tsv"], "--output 'table.tsv' is one of the inputs"),
        ([A, "-o", "/dev/null", "--resume"], "--resume goes on with a file, and --output '/dev/null' is a device or a"),
        ([A, "--spreadsheet-safe", "--format", "jsonl"], "--spreadsheet-safe is about CSV and TSV, and this writes"),
        ([A, "--config", "deep.toml"], "--config 'deep.toml' is not TOML that can be read: it is nested too deep"),
        ([A, "--config", "digits.toml"], "--config 'digits.toml' is not TOML: "),
        ([], "nothing came in on stdin"),
    ],
)
def test_errors_are_one_line_and_leave_nothing_behind(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").touch()
    (tmp_path / "binary.bin").write_bytes(bytes(range(256)))
    (tmp_path / "table.tsv").write_text("id\tsentence\n1\tone\n")
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "bad.toml").write_text('metod = "pll"\n')
    (tmp_path / "deep.toml").write_text("limit = " + "[" * 3000 + "]" * 3000)
    (tmp_path / "digits.toml").write_text("limit = " + "9" * 5000)
    config = json.dumps({"architectures": ["BertForMaskedLM"], "model_type": "bert"})
    (tmp_path / "no-tokenizer").mkdir()
    (tmp_path / "no-tokenizer" / "config.json").write_text(config)
    output = [] if {"--format", "-o"} & set(arguments) else ["-o", "out.tsv"]
    result = run("score", *arguments, *output)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert not (tmp_path / "out.tsv").exists()


def test_a_wrong_choice_and_a_wrong_option_are_named(run: Run) -> None:
    assert "'wrd' is not one of" in run("score", A, "--per", "wrd").stderr
    result = run("score", A, "--colum", "x")
    assert result.exit_code == 2
    assert "--column" in result.stderr


def test_debugging_shows_the_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BESAG_DEBUG", "1")
    assert isinstance(run("score", "missing.txt").exception, besag.BesagError)


# ---- Ctrl-C


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_ctrl_c_closes_the_output_properly(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    whole = side_by_side.side_by_side

    def interrupted(*arguments: Any, **options: Any) -> Iterator[Any]:
        yield from islice(whole(*arguments, **options), 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(side_by_side, "side_by_side", interrupted)
    path = tmp_path / f"out.{ending}"
    monkeypatch.setattr("sys.argv", ["besag", "score", "in.txt", "-o", path.name])
    result = run("score", A, B, A, A, "--skip", "1", "-o", path)
    assert result.exit_code == 130
    assert result.stderr == f"interrupted after 2 rows; go on with besag score in.txt -o out.{ending} --resume\n"
    assert run("score", A, B, A, A, "--skip", "1", "-o", path, "--format", ending).exit_code == 2  # not finished
    rows = (
        pq.read_table(path).num_rows if ending == "parquet" else len(path.read_text().splitlines()) - (ending == "csv")
    )
    assert rows == 2


def test_ctrl_c_waits_for_the_row_that_is_being_written() -> None:
    ctrl_c, steps = CtrlC(), []

    def write() -> None:
        with ctrl_c.held_back():
            signal.raise_signal(signal.SIGINT)
            steps.append("written")
        steps.append("never reached")

    with ctrl_c.watched():
        with pytest.raises(KeyboardInterrupt):
            write()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert steps == ["written"]


@pytest.mark.parametrize(
    "failure",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to"),
        RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    ],
    ids=["python", "cpu", "mps", "cuda"],
)
def test_memory_that_runs_out_is_no_fault_of_besag(
    run: Run, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """torch's own failure is answered as Python's is: exit code 2, and what needs less."""

    def full(*given: object, **named: object) -> None:
        raise failure

    monkeypatch.setattr("besag.language_model.LanguageModel.fill", full)
    result = run("fill", "The [MASK].")
    assert result.exit_code == 2
    assert "not enough memory" in result.stderr
    assert result.stderr.count("\n") == 1
