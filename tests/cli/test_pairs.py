"""`besag pairs`: the study from a file to its folder, cut off and gone on with, and told again."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Run, put, table

import besag
from besag.cli.pairs import BLOCK
from besag.study.folder import Folder
from besag.study.pairs import study

TEXTS = ["The cats sleep.", "No", "A man is at the casino."]
QUICK = ("--candidates", 10, "--pairs", "contiguous")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return put(tmp_path / "texts.txt", "\n".join(TEXTS) + "\n")


def rows(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "pairs.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_study_is_what_python_finds(run: Run, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    result = run("pairs", file, "-o", folder, *QUICK, "--seed", 4)
    assert result.exit_code == 3, result.stderr  # "No" has no neighbours
    assert "1 of 3 pairs were not measured: 1 short" in result.stderr
    assert "contiguous (2 pairs)" in result.stdout
    lm = besag.load()
    expected = list(study(lm.engine, TEXTS, candidates=10, pairs=["contiguous"], seed=4))
    found = rows(folder)
    assert [(row["text"], row["a"], row["b"], row["status"]) for row in found] == [
        (row.text, row.a, row.b, row.status) for row in expected
    ]
    assert found[2]["joints"]["ag"]["pair_nll"] == pytest.approx(expected[2].joints["ag"]["pair_nll"], abs=1e-3)
    settings = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    assert (settings["model"], settings["candidates"], settings["texts"], settings["seed"]) == (
        "small-en",
        10,
        3,
        4,
    )
    assert len(pq.read_table(folder / "pairs.parquet")) == 2 * 12 + 1
    assert len(table((folder / "table.tsv").read_text(encoding="utf-8"))) == 12
    assert (folder / "nll-by-distance.png").stat().st_size > 10_000


def test_ctrl_c_says_how_to_go_on_and_the_same_command_does(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, written = Folder.append, []

    def interrupted(folder: Folder, row: object) -> None:
        if len(written) == 2:
            with open(folder.path / "pairs.jsonl", "a", encoding="utf-8") as torn:
                torn.write('{"text": 3, "pai')
            raise KeyboardInterrupt
        written.append(row)
        append(folder, row)  # type: ignore[arg-type]

    command = ("pairs", file, "-o", tmp_path / "study", *QUICK)
    monkeypatch.setitem(BLOCK, "cpu", 2)
    monkeypatch.setattr(Folder, "append", interrupted)
    first = run(*command)
    assert first.exit_code == 130
    assert "interrupted after 2 of 3 pairs; the same command goes on" in first.stderr
    monkeypatch.setattr(Folder, "append", append)
    second = run(*command)
    assert second.exit_code == 3
    assert "2 of 3 pairs are there already" in second.stderr
    assert [row["text"] for row in rows(tmp_path / "study")] == [1, 2, 3]
    third = run(*command)
    assert third.stdout == second.stdout
    other = run(*command, "--seed", 1)
    assert other.exit_code == 2
    assert "seed is 1, and was 0" in other.stderr


def test_the_report_alone(run: Run, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    whole = run("pairs", file, "-o", folder, *QUICK, "--limit", 1)
    assert whole.exit_code == 0, whole.stderr
    for made in ("table.tsv", "pairs.parquet", "nll-by-distance.png"):
        (folder / made).unlink()
    again = run("pairs", "--report", folder)
    assert (again.exit_code, again.stdout) == (0, whole.stdout)
    assert (folder / "table.tsv").exists()


def test_texts_come_from_tables_and_stdin_too(run: Run, tmp_path: Path) -> None:
    corpus = put(tmp_path / "corpus.tsv", "id\tsentence\n1\tThe cats sleep.\n")
    kinds = ("--pairs", "distance", "--distances", "1,2", "--per-text", 2, "--candidates", 5)
    result = run("pairs", corpus, "-o", tmp_path / "a", *kinds)
    assert result.exit_code == 0, result.stderr
    assert [(row["pairs"], row["text"]) for row in rows(tmp_path / "a")] == [("distance 1", 1)] * 2 + [
        ("distance 2", 1)
    ] * 2
    piped = run("pairs", "-", "-o", tmp_path / "b", *kinds, stdin="The cats sleep.\n")
    assert piped.exit_code == 0, piped.stderr
    assert [row["a"] for row in rows(tmp_path / "b")] == [row["a"] for row in rows(tmp_path / "a")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["FILE"], "give a FILE of texts and --output FOLDER"),
        (["FILE", "-o", "out", "--pairs", "contigous"], "Did you mean 'contiguous'?"),
        (["FILE", "-o", "out", "--distances", "1,2"], "--distances 1,2 needs --pairs distance"),
        (["FILE", "-o", "out", "--pairs", "distance", "--distances", "1;2"], "'1;2': write numbers"),
        (["missing.txt", "-o", "out"], "no such file: 'missing.txt'"),
        (["FILE", "--report", "out"], "--report FOLDER stands alone"),
        (["--report", "nowhere"], "'nowhere' is no study"),
    ],
)
def test_wrong_words_are_answered_before_the_model_is_loaded(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.setattr(besag, "load", None)
    result = run("pairs", *(str(file) if part == "FILE" else part for part in arguments))
    assert result.exit_code == 2
    assert said in result.stderr
