"""Commands that are killed, ended by SIGTERM, started twice or out of room: what they leave, and how they go on."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest

if os.name != "posix":
    pytest.skip("signals of POSIX", allow_module_level=True)

from tests.cli import killing
from tests.cli.conftest import Run, put
from tests.cli.killing import TARGETS, Sweep, Target

from besag.files.claim import Claim

named = pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
@named
def test_one_kill(tmp_path: Path, target: Target, how: signal.Signals) -> None:
    sweep = Sweep(target, tmp_path)
    for results in sweep.killed(how, 1, seed=0):
        assert results == sweep.expected
    assert sweep.kills == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
@named
def test_twenty_kills(tmp_path: Path, target: Target, how: signal.Signals) -> None:
    sweep = Sweep(target, tmp_path)
    for results in sweep.killed(how, 20, seed=1):
        assert results == sweep.expected
    assert sweep.kills == 20


# ---- two at once


@pytest.mark.parametrize(
    "command",
    [
        ("score", "texts.txt", "-o", "out"),
        ("score", "-", "-o", "out"),
        ("score", "texts.txt", "-o", "out", "--resume"),
        ("score", "texts.txt", "-o", "out", "--force"),
        ("marginals", "texts.txt", "-o", "out"),
        ("choose", "One.", "Two.", "-o", "out"),
        ("fill", "The [MASK].", "-o", "out"),
        ("sample", "The [MASK].", "-o", "out"),
        ("sample", "The [MASK].", "--record", "out.jsonl"),
        ("sample", "The [MASK].", "--record", "out.jsonl", "--resume"),
        ("sample", "The [MASK].", "--record", "out.parquet"),
        ("augment", "texts.txt", "-o", "out"),
        ("edit", "The cat.", "cat=dog", "-o", "out"),
        ("joint", "The [MASK] [MASK].", "-o", "out"),
        ("compare", "The [MASK] [MASK].", "-o", "out"),
        ("lengths", "texts.txt", "-o", "out.json"),
        ("pairs", "texts.txt", "-o", "out"),
        ("eval", "overlap", "texts.txt", "--against", "texts.txt", "-o", "out"),
        ("tokenizer", "train", "texts.txt", "-o", "out"),
        ("tokenizer", "report", "embedded", "--text", "texts.txt", "-o", "out"),
    ],
    ids=" ".join,
)
def test_the_second_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "texts.txt", "The cat sat.\n")
    if command[0] in ("pairs", "tokenizer") and command[1] != "report":
        (tmp_path / "out").mkdir()
    claimed = next(word for word in command if word.startswith("out"))
    with Claim(claimed):
        before = sorted(tmp_path.rglob("*"))
        result = run(*command, stdin="The cat sat.\n")
        assert result.exit_code == 2, result.output
        assert f"'{claimed}' is being written by another process (process {os.getpid()} on " in result.stderr
        assert "choose another" in result.stderr
        assert sorted(tmp_path.rglob("*")) == before


@named
def test_two_processes_on_one_output(tmp_path: Path, target: Target) -> None:
    sweep = Sweep(target, tmp_path)
    folder = killing.inputs(tmp_path / "two")
    first = killing.start(folder, *target.command)
    try:
        killing.wait(first, lambda: any(path.stat().st_size for path in folder.rglob("*.lock")))
        os.kill(first, signal.SIGSTOP)  # in the middle of its work
        assert killing.run(folder, *target.command, *target.again) == 2
        assert f"is being written by another process (process {first} on " in (tmp_path / "stderr").read_text()
    finally:
        os.kill(first, signal.SIGCONT)
    assert killing.end(first) in (0, 3)
    assert killing.contents(target, folder) == sweep.expected
    assert killing.listing(folder) == sweep.left


# ---- a full disk


@named
def test_a_full_disk(tmp_path: Path, target: Target) -> None:
    """No file may grow beyond a size: what is there is whole, and it goes on once there is room."""
    sweep = Sweep(target, tmp_path)
    largest = max(len(content) for content in sweep.expected.values())

    def full(size: int) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    for size in (largest // 4, largest // 2):
        folder = killing.inputs(tmp_path / f"full-{size}")
        code = killing.end(killing.start(folder, *target.command, prepare=lambda size=size: full(size)))  # type: ignore[misc]
        said = (tmp_path / "stderr").read_text()
        assert code == 2, said
        assert "error: cannot write '" in said
        killing.readable(folder)
        assert killing.run(folder, *target.command, *target.again) in (0, 3), (tmp_path / "stderr").read_text()
        assert killing.contents(target, folder) == sweep.expected


# ---- what SIGTERM says


@named
def test_sigterm_says_how_to_go_on(tmp_path: Path, target: Target) -> None:
    folder = killing.inputs(tmp_path / "inputs")
    process = killing.start(folder, *target.command)
    rows = folder / target.results[0]
    rows = folder / "out.parquet.progress" if target.name == "score parquet" else rows
    killing.wait(process, lambda: rows.exists() and rows.stat().st_size)
    os.kill(process, signal.SIGTERM)
    assert killing.end(process) == 143
    said = (tmp_path / "stderr").read_text()
    assert "interrupted" in said
    assert target.says in said
    assert all(word in said for word in target.again)
    killing.readable(folder)
