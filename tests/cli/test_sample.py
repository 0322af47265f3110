"""`besag sample`: texts on stdout, what was run on stderr, runs that can be gone on with."""

from __future__ import annotations

import io
import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cli.conftest import Run, table

from besag.cli.sample import Watched

TEXT = "The [MASK] sat on the [MASK]."


def test_masks_are_drawn_and_the_rest_stays(run: Run) -> None:
    result = run("sample", TEXT, "-k", "ordered", "-c", 3, "--seed", 1)
    assert result.exit_code == 0, result.stderr
    rows = table(result.stdout)
    assert [row["chain"] for row in rows] == ["0", "1", "2"]
    assert all(row["text"].startswith("The ") and " sat on the " in row["text"] for row in rows)
    assert "ordered · the chain rule in this order" in result.stderr
    assert "2 forward passes a chain · seed 1 · small-en" in result.stderr
    assert run("sample", TEXT, "-k", "ordered", "-c", 3, "--seed", 1).stdout == result.stdout


@pytest.mark.parametrize("shape", ["tsv", "jsonl"])
def test_masks_that_are_left_have_a_status_and_an_exit_code(run: Run, shape: str) -> None:
    """Of two masks one step of `ordered` draws one; two steps draw both."""
    for steps, code, status in ((1, 3, "hidden"), (2, 0, "ok")):
        result = run("sample", TEXT, "-k", "ordered", "-c", 2, "--steps", steps, "--format", shape)
        assert result.exit_code == code
        rows = [json.loads(line) for line in result.stdout.splitlines()] if shape == "jsonl" else table(result.stdout)
        assert [row["status"] for row in rows] == [status] * 2
        assert all(("[MASK]" in row["text"]) == (status == "hidden") for row in rows)


def test_from_nothing_with_options_of_the_kernel(run: Run) -> None:
    result = run("sample", "--length", 4, "--end", ".", "--steps", 6, "--set", "scan=systematic", "--top-k", 20,
                 "--format", "jsonl", "-c", 2)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == 2
    assert all(len(row["tokens"]) == 4 and row["text"].endswith(".") and row["steps"] == 6 for row in rows)
    assert "gibbs systematic top_k=20" in result.stderr


def test_words_of_a_text_are_freed_and_kept(run: Run) -> None:
    text = "The old man walked home."
    result = run("sample", text, "--free-all", "--keep", "man", "--steps", 8, "-c", 2)
    assert result.exit_code == 0, result.stderr
    assert all(" man " in row["text"] for row in table(result.stdout))
    result = run("sample", text, "--free", "old", "--steps", 3, "-c", 2)
    assert all(row["text"].endswith(" man walked home.") for row in table(result.stdout))


def test_lengths_from_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("It was good.\nThe man was very old and sad.\n" * 5, encoding="utf-8")
    result = run("sample", "--lengths", file, "-k", "ordered", "-c", 3, "--format", "jsonl")
    assert result.exit_code == 0, result.stderr
    assert all(json.loads(line)["tokens"] for line in result.stdout.splitlines())


def test_a_recorded_run_goes_on(run: Run, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl"
    settings = ("sample", TEXT, "-c", 2, "--every", 2)
    assert run(*settings, "--steps", 6, "--record", whole).exit_code == 0
    assert run(*settings, "--steps", 3, "--record", parts).exit_code == 3  # masks are left
    result = run(*settings, "--steps", 6, "--record", parts, "--resume")
    assert result.exit_code == 0, result.stderr
    assert parts.read_text(encoding="utf-8") == whole.read_text(encoding="utf-8")


def test_chains_are_shown_while_they_run(run: Run) -> None:
    result = run("sample", TEXT, "-k", "ordered", "--live", "-c", 1)
    assert result.exit_code == 0, result.stderr
    assert len(table(result.stdout)) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["The man sat."], "'The man sat.' has no mask, so nothing in it may change"),
        ([], "give a text with masks, or a length to sample from nothing"),
        ([TEXT, "-k", "gibs"], "there is no kernel 'gibs'. Did you mean 'gibbs'?"),
        ([TEXT, "-t", "0"], "--temperature 0.0: give a number above 0"),
        ([TEXT, "--top-p", "1.5"], "--top-p 1.5"),
        ([TEXT, "--set", "scan"], "--set 'scan': write NAME=VALUE"),
        ([TEXT, "--set", "scn=random"], "has no option 'scn'"),
        ([TEXT, "-k", "mask_predict", "--set", "iterations=9"], "iterations"),
        ([TEXT, "--free", "dragon"], "dragon"),
        ([TEXT, "--free", "sat", "--free-all"], "say one of them"),
        (["--length", "3", "--lengths", "x"], "say one of them"),
        ([TEXT, "--every", "2"], "name a file with --record"),
        ([TEXT, "--record", "x.txt"], "recorded as .jsonl or .parquet"),
        (["[MASK] " * 600, "-k", "ordered"], "semi_ar"),
    ],
)
def test_errors_are_one_line_and_leave_nothing_behind(
    run: Run, tmp_path: Path, arguments: list[str], told: str
) -> None:
    output = tmp_path / "out.tsv"
    result = run("sample", *arguments, "-o", output)
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not output.exists()


# ---- words, patterns and lengths


def test_a_text_keeps_to_what_is_asked(run: Run) -> None:
    result = run("sample", "--length", 5, "--end", ".", "--require", "sea", "--forbid", "the", "--characters", "10:30",
                 "-c", 2)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    for row in table(result.stdout):
        words = row["text"].rstrip(".").split()
        assert "sea" in words
        assert "the" not in words
        assert 10 <= len(row["text"]) <= 30
    result = run("sample", "The [MASK] sat.", "--pattern", "The m[a-z]+ sat.", "-c", 1)
    assert table(result.stdout)[0]["text"].startswith("The m")


def test_what_cannot_be_is_said_to_be_so(run: Run) -> None:
    result = run("sample", "The [MASK] sat.", "--require", "sea", "--forbid", "sea")
    assert result.exit_code == 3
    assert "no text satisfies both: the word 'sea' is required, and the word 'sea' is forbidden" in result.stderr
    assert run("sample", "The [MASK] sat.", "--characters", "x").exit_code == 2
    result = run("sample", "The [MASK] sat.", "--require", "sea", "-k", "ordered")
    assert result.exit_code == 2
    assert "a search of its own" in result.stderr


def test_live_without_a_terminal_is_told(run):
    found = run("sample", "The [MASK].", "--kernel", "ordered", "--chains", 1, "--live")
    assert found.exit_code == 0
    assert "--live is left out: stderr is no terminal" in found.stderr


def test_a_search_that_says_the_same_in_all_chains_says_so(run):
    found = run("sample", "The [MASK].", "--kernel", "mask_predict", "--chains", 2)
    assert "1 DIFFERENT TEXT IN 2 CHAINS" in found.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [("--chains", 10**9), ("--steps", 10**9), ("--length", 10**9), ("--budget", 10**30), ("--top-p", "nan"),
     ("--temperature", "inf"), ("--top-k", -1)],
)  # fmt: skip
def test_a_count_beyond_all_bounds_is_refused_by_its_name(run, option, value):
    found = run("sample", "--length", 3, option, value)
    assert found.exit_code != 0
    assert option.strip("-").replace("-", "_") in found.stderr.replace("-", "_")


def test_the_smallest_share_takes_the_likeliest_token(run):
    found = run("sample", "She was born in the United [MASK].", "-k", "ordered", "-c", 3, "--top-p", "1e-300")
    assert found.exit_code == 0
    assert found.stdout.count("United States.") == 3


def test_what_is_watched_is_shown_as_text() -> None:
    """Neither markup of rich nor escape sequences in a text are acted on."""
    from rich.console import Console

    with ExitStack() as stack:
        watched = Watched(stack)
        watched(3, [0], lambda: ["a [/b] [red]c[/red] \x1b[31m \x9b2J"])
        console = Console(file=io.StringIO(), width=100)
        console.print(watched.live.renderable)
    assert r"a [/b] [red]c[/red] \x1b[31m \x9b2J" in console.file.getvalue()
