"""`besag bulk` with a pool that is this process: the bytes of `besag score`, and what is said on the way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bulk.conftest import bert as bert
from tests.bulk.conftest import here, sentences
from tests.cli.conftest import Run, put, table

from besag.bulk.pipeline import Pool
from besag.files import progress


@pytest.fixture(autouse=True)
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pool, "check", lambda self: None)
    monkeypatch.setattr(Pool, "__call__", lambda self, reader, units, work: here(reader, units, work))
    monkeypatch.setitem(progress.BLOCK, "cpu", 4)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    lines = [line.encode() for line in sentences(30)]
    lines[3], lines[10] = b"", b"caf\xe9"
    return put(tmp_path / "corpus.tsv", b"id\ttext\n" + b"".join(b"%d\t%s\n" % pair for pair in enumerate(lines)))


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize("options", [[], ["--per", "token", "--entropy", "--base", "2"]])
def test_the_bytes_of_score(
    run: Run, corpus: Path, bert: Path, tmp_path: Path, format: str, options: list[str]
) -> None:
    common = [corpus, "-m", bert, "--method", "pll", "--method", "unmasked", *options]
    assert run("score", *common, "-o", tmp_path / f"straight.{format}").exit_code == 3
    job = tmp_path / "job"
    result = run("bulk", "score", *common, "-o", job, "--format", format, "--shard-rows", 8)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "30 rows in 4 shards: besag bulk merge" in result.stderr
    assert "2 rows have no result: 1 empty, 1 undecodable" in result.stderr
    assert run("bulk", "merge", job, "-o", tmp_path / f"merged.{format}").exit_code == 0
    assert (tmp_path / f"merged.{format}").read_bytes() == (tmp_path / f"straight.{format}").read_bytes()


def test_status_and_going_on(
    run: Run, corpus: Path, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, seen = tmp_path / "job", []

    def interrupted(self: Pool, *arguments: Any) -> Iterator[Any]:
        for note in here(*arguments):
            seen.append(note)
            yield note
            if len(seen) == 2:
                raise KeyboardInterrupt

    common = ["bulk", "score", corpus, "-m", bert, "-o", job, "--shard-rows", 8]
    with monkeypatch.context() as patch:
        patch.setattr(Pool, "__call__", interrupted)
        result = run(*common)
    assert result.exit_code == 130
    assert "interrupted; 2 of 4 shards finished; go on with besag" in result.stderr
    told = run("bulk", "status", job).stdout
    assert "shards   2 of 4" in told
    assert "rows     16 of 30 (53.3%)" in told
    assert "statuses 1 empty, 1 undecodable" in told
    assert told.endswith("state    stopped\n")
    assert "2 of 4 shards are missing" in run("bulk", "merge", job, "-o", tmp_path / "m.tsv").stderr
    assert "holds a job already" in run(*common).stderr
    other = run(*common, "--resume", "--method", "unmasked").stderr
    assert "was begun with other settings: methods.pll is not set, and was {}; methods.unmasked is {}" in other
    assert run(*common, "--resume").exit_code == 3
    assert run("bulk", "status", job).stdout.endswith("state    finished\n")


def test_a_filter(run: Run, corpus: Path, bert: Path, tmp_path: Path) -> None:
    job = tmp_path / "job"
    result = run("bulk", "score", corpus, "-m", bert, "-o", job, "--keep", "score / tokens > -9")
    assert "kept: besag bulk merge" in result.stderr
    run("bulk", "merge", job, "-o", tmp_path / "m.tsv")
    rows = table((tmp_path / "m.tsv").read_text())
    assert 2 < len(rows) < 30
    assert all(row["status"] != "ok" or float(row["pll"]) / int(row["tokens"]) > -9 for row in rows)
    wrong = run("bulk", "score", corpus, "-m", bert, "-o", tmp_path / "k", "--keep", "scor > 1")
    assert (wrong.exit_code, "no column 'scor'" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("verb", "options", "columns"),
    [
        ("entropy", [], ["entropy", "entropy_most"]),
        ("fill", ["-k", 2], ["rank", "filled", "prob", "reason"]),
        ("sample", ["--kernel", "ordered", "--chains", 2], ["chain", "sampled", "reason"]),
        ("augment", ["--copies", 2, "--similarity", -1], ["copy", "similarity", "original"]),
    ],
)
def test_other_verbs(
    run: Run, bert: Path, tmp_path: Path, verb: str, options: list[object], columns: list[str]
) -> None:
    path = put(tmp_path / "a.txt", "the [MASK] sat\nthe red dog ran by\n")
    assert run("bulk", verb, path, "-m", bert, "-o", tmp_path / "job", *options).exit_code in (0, 3)
    run("bulk", "merge", tmp_path / "job", "-o", tmp_path / "m.tsv")
    rows = table((tmp_path / "m.tsv").read_text())
    assert {*columns, "row", "text", "status"} <= rows[0].keys()
    assert {row["row"] for row in rows} == {"1", "2"}


def test_augment_is_that_of_the_command(run: Run, corpus: Path, bert: Path, tmp_path: Path) -> None:
    options = [corpus, "-m", bert, "--copies", 2, "--similarity", -1, "--temperature", 2, "--top-k", 9, "--seed", 5]
    run("augment", *options, "-o", tmp_path / "straight.tsv")
    run("bulk", "augment", *options, "-o", tmp_path / "job", "--shard-rows", 8)
    run("bulk", "merge", tmp_path / "job", "-o", tmp_path / "merged.tsv")
    straight, merged = (table((tmp_path / f"{name}.tsv").read_text()) for name in ("straight", "merged"))
    assert list(merged[0]) == list(straight[0])
    for name in ("row", "id", "copy", "text", "changed", "status", "original"):  # numbers round as batches are cut
        assert [row[name] for row in merged] == [row[name] for row in straight]


def test_a_plan(run: Run, corpus: Path, bert: Path, tmp_path: Path) -> None:
    options = ["--plan", "--rate", 2, "--price", 3, "--actors", 5]
    told = run("bulk", "score", corpus, "-m", bert, "-o", tmp_path / "job", *options).stdout
    assert "rows     30\n" in told
    assert "time     3.0 s\n" in told
    assert "cost     0.01\n" in told
    assert not (tmp_path / "job").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--device", "tpu"], "--device 'tpu': give one of cpu, mps, cuda"),
        (["--keep", "import os"], "cannot be read: write a comparison"),
        (["--shard-rows", 7], "a whole number of blocks, each of 4 rows"),
        (["--method", "plll"], "Did you mean 'pll'"),
        (["-m", "/no/such/model"], "there is no folder '/no/such/model'"),
    ],
)
def test_what_cannot_be_meant(run: Run, corpus: Path, tmp_path: Path, arguments: list[object], said: str) -> None:
    result = run("bulk", "score", corpus, "-o", tmp_path / "job", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_without_ray_the_extra_is_told_and_nothing_else_needs_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "import besag.cli, besag.bulk\n"
        "assert not [name for name in sys.modules if name.startswith('ray.')]\n"
        "sys.argv = ['besag', 'bulk', 'score', 'a.txt', '-o', 'job']\n"
        "besag.cli.main()"
    )
    put(tmp_path / "a.txt", "a\n")
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=paths)
    assert done.returncode == 2
    assert done.stderr == "error: this needs 'ray', which is not installed: pip install 'besag[bulk]'\n"
    assert not (tmp_path / "job").exists()
