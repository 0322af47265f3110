"""`besag eval NAME…`, `list`, `compare`: on stdout and into folders, and what is refused before anything is written."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.cli.conftest import Run, table

PAIRS = "good\tbad\tparadigm\nThe cats sleep.\tThe cats sleeps.\tone\nShe is here.\tShe are here.\ttwo\n"


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BESAG_DATA", raising=False)
    (tmp_path / "pairs.tsv").write_text(PAIRS, encoding="utf-8")
    return tmp_path


def test_figures_go_to_stdout_and_their_sense_to_stderr(run: Run, pairs: Path) -> None:
    done = run("eval", "minimal_pairs", "--data", "pairs.tsv", "--method", "unmasked", "--method", "pll")
    assert done.exit_code == 0, done.output
    rows = table(done.stdout)
    assert [(row["method"], row["n"]) for row in rows if row["figure"] == "accuracy over pairs"] == [
        ("unmasked", "2"), ("pll", "2"),
    ]  # fmt: skip
    assert "small-en · pll: accuracy 100.0 ± 0.0 % (n = 2)" in done.stderr
    items = run("eval", "--data", "pairs.tsv", "minimal_pairs", "--per", "item", "--format", "jsonl", "--limit", "1")
    assert [json.loads(line)["id"] for line in items.stdout.splitlines()] == ["one/2", "two/3"]


def test_a_folder_holds_items_figures_and_a_page(run: Run, pairs: Path) -> None:
    command = ("eval", "minimal_pairs", "--data", "pairs.tsv", "--method", "unmasked", "-o", "out")
    assert run(*command).exit_code == 0
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "figures.tsv", "items.jsonl", "report.html", "run.json",
    ]  # fmt: skip
    rows = [json.loads(line) for line in Path("out/items.jsonl").read_text().splitlines()]
    assert [(row["suite"], row["method"], row["id"]) for row in rows] == [
        ("minimal_pairs", "unmasked", "one/2"), ("minimal_pairs", "unmasked", "two/3"),
    ]  # fmt: skip
    again = run(*command)
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    assert "is finished" in run(*command, "--resume").stderr
    assert run(*command, "--force").exit_code == 0


def test_a_text_that_reads_like_a_number_is_saved_as_a_text(run: Run, pairs: Path) -> None:
    from besag.evaluation import saved

    Path("pairs.tsv").write_text("good\tbad\nInfinity\t-Infinity\n", encoding="utf-8")
    assert run("eval", "minimal_pairs", "--data", "pairs.tsv", "--method", "unmasked", "-o", "out").exit_code == 0
    [found] = saved.read("out")
    [row] = found.parts[0].rows
    assert [value for value in row.values() if value in ("Infinity", "-Infinity")] == ["Infinity", "-Infinity"]
    assert not [name for name, value in row.items() if isinstance(value, float) and math.isinf(value)]


def test_a_run_goes_on_only_with_the_same_settings(run: Run, pairs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from besag.files import progress

    monkeypatch.setitem(progress.BLOCK, "cpu", 1)
    command = ("eval", "minimal_pairs", "--data", "pairs.tsv", "--method", "unmasked", "-o", "out")
    assert run(*command).exit_code == 0
    whole = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    note = run_note(run, command, rows=1)
    for change, words in (
        (("--set", "reduction=mean"), "begun with other settings: suites is"),
        (("--limit", "1"), "limit is 1, and was not set"),
        (("--method", "pll"), "methods is"),
    ):
        refused = run(*command, *change, "--resume")
        assert refused.exit_code == 2
        assert words in refused.stderr
        assert Path("out/items.jsonl.progress").read_text() == note
    assert "is not finished: go on with besag" in run(*command).stderr
    assert run(*command, "--resume").exit_code == 0
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == whole


def run_note(run: Run, command: tuple[str, ...], rows: int) -> str:
    """Leave the folder as a run that was killed after so many rows does."""
    from unittest import mock

    from besag.evaluation import saved

    with mock.patch.object(saved, "write", side_effect=KeyboardInterrupt):
        run(*command, "--force")
    note = json.loads(Path("out/items.jsonl.progress").read_text())
    lines = Path("out/items.jsonl").read_bytes().splitlines(keepends=True)
    note["blocks"], note["state"]["rows"] = rows, rows
    note["mark"]["bytes"] = len(b"".join(lines[:rows]))
    text = json.dumps(note)
    Path("out/items.jsonl.progress").write_text(text)
    return text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("blump",), "no suite 'blump'. Did you mean 'blimp'"),
        (("minimal-pairs",), "Did you mean 'minimal_pairs'"),
        (("minimal_pairs", "--data", "torn.jsonl"), "line 2 is not JSON: Unterminated string starting at, at char"),
        (("minimal_pairs", "--data", "unknown.tsv"), "begins with right, wrong: are these names of columns?"),
        (("minimal_pairs", "--data", "unknown.tsv", "--set", "good=1", "--set", "bad=2"), "and header: true"),
        (("blimp",), "no data for 'blimp': say --data, or set BESAG_DATA"),
        (("blimp", "--data", "nowhere.jsonl"), "there is no 'nowhere.jsonl' to read 'blimp' from. It needs"),
        (("blimp", "blimp"), "a suite is there twice"),
        (("blimp", "--set", "reducton=mean"), "option 'reducton'"),
        (("blimp", "--set", "reduction=max"), "reduction='max': give one of sum, mean"),
        (("minimal_pairs", "--data", "pairs.tsv", "--method", "pl"), "no scoring method 'pl'"),
        (("crows_pairs", "--data", "latin.tsv"), "UTF-8"),
        (("minimal_pairs", "--data", "empty.tsv"), "holds no pairs"),
        (("minimal_pairs", "--data", "pairs.tsv", "--set", "good=gut"), "no column 'gut'"),
        (("minimal_pairs", "blimp", "--data", "pairs.tsv"), "is a file, and there are several suites"),
        (("minimal_pairs", "--data", "pairs.tsv", "--resume"), "--resume goes on with a folder"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_and_nothing_is_written(
    run: Run, pairs: Path, arguments: tuple[str, ...], words: str
) -> None:
    (pairs / "latin.tsv").write_bytes("good\tbad\ncafé\tcafe\n".encode("latin-1"))
    (pairs / "empty.tsv").write_text("good\tbad\n")
    (pairs / "torn.jsonl").write_text('{"sentence_good": "A.", "sentence_bad": "B."}\n{"sent\n')
    (pairs / "unknown.tsv").write_text("right\twrong\nShe is.\tShe are.\n")
    before = sorted(pairs.iterdir())
    output = () if "--resume" in arguments else ("-o", "out")
    done = run("eval", *arguments, *output)
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert sorted(pairs.iterdir()) == before


def test_a_folder_of_other_things_is_left_alone(run: Run, pairs: Path) -> None:
    done = run("eval", "minimal_pairs", "--data", "pairs.tsv", "-o", pairs)
    assert done.exit_code == 2
    assert "holds pairs.tsv: choose an empty --output, or a new one" in done.stderr


def test_an_item_without_a_score_has_its_exit_code(run: Run, pairs: Path) -> None:
    (pairs / "pairs.tsv").write_text(PAIRS + "\tShe are here.\ttwo\n")
    done = run("eval", "minimal_pairs", "--data", "pairs.tsv", "--method", "unmasked")
    assert done.exit_code == 3
    assert "1 item not scored: the text is empty" in done.stderr


def test_columns_have_names_numbers_or_none(run: Run, pairs: Path) -> None:
    (pairs / "a.tsv").write_text("right\twrong\nThe cats sleep.\tThe cats sleeps.\n")
    for said, count in (("good=right bad=wrong", 1), ("good=1 bad=2 header=true", 1), ("header=false", 2)):
        sets = [part for one in said.split() for part in ("--set", one)]
        done = run("eval", "minimal_pairs", "--data", "a.tsv", "--method", "unmasked", *sets)
        assert table(done.stdout)[0]["n"] == str(count), said


def test_a_sentence_that_cannot_be_decoded_stops_nothing(run: Run, pairs: Path) -> None:
    first = {"good": "The cats sleep.", "bad": "The cats sleeps.", "UID": "\ud800"}
    second = {"good": "It\udfff is.", "bad": "It are.", "UID": "p"}
    (pairs / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (first, second)))
    done = run("eval", "minimal_pairs", "--data", "a.jsonl", "--method", "unmasked", "-o", "out")
    assert done.exit_code == 3, done.output
    items = [json.loads(line) for line in (pairs / "out" / "items.jsonl").read_text().splitlines()]
    assert [row["status"] for row in items] == ["ok", "undecodable"]
    assert [row["group"] for row in items] == ["\\ud800", "p"]


def test_suites_are_listed_with_where_their_data_is(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "blimp").mkdir()
    monkeypatch.setenv("BESAG_DATA", str(tmp_path))
    done = run("eval", "list")
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.split()}
    assert " there " in lines["blimp"]
    assert " there " not in lines["crows_pairs"]
    assert "CC BY-SA 4.0" in lines["crows_pairs"]
    assert str(tmp_path) in done.stdout


def test_two_runs_are_compared(run: Run, pairs: Path) -> None:
    for method in ("unmasked", "pll"):
        run("eval", "minimal_pairs", "--data", "pairs.tsv", "--method", method, "-o", method)
    done = run("eval", "compare", "unmasked", "pll")
    assert done.exit_code == 0, done.output
    rows = table(done.stdout)
    assert rows[0]["figure"] == "accuracy"
    assert float(rows[0]["difference"]) == pytest.approx(float(rows[0]["b"]) - float(rows[0]["a"]))
    assert "minimal_pairs: " in done.stderr
    assert "A is small-en · unmasked, B is small-en · pll" in done.stderr
    wrong = run("eval", "compare", "unmasked", "nowhere")
    assert wrong.exit_code == 2
    assert "no such folder: 'nowhere'" in wrong.stderr
