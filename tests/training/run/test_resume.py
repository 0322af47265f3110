"""Killed with SIGKILL in the middle and resumed, a run ends in the same bits as one that was left alone."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.training import a_run

from besag.errors import BesagError
from besag.train_model import train as train_by_the_door
from besag.training.run import export, logs, train
from besag.training.run.checkpoint import Checkpoints

COMMON = {"ema": 0.9, "accumulate": 2, "log_every": 2}
CASES: dict[str, dict[str, Any]] = {
    "steps": {"schedule": {"steps": 8}, "run": COMMON},
    "tokens": {
        "schedule": {"tokens": 3600, "shape": "cosine"},
        "masking": {"law": "adaptive", "rate_law": "cosine", "end_rate": 0.1},
        "optimizer": {"name": "muon"},
        "run": COMMON,
    },
}


def killed(folder: Path, changes: dict[str, Any], step: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[3])])}
    command = [sys.executable, a_run.__file__, str(folder), json.dumps(changes), "--kill", str(step)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == -signal.SIGKILL, done.stderr


def assert_the_same(whole: Path, torn: Path) -> None:
    """Weights to the byte, the log but for its clock, and nothing half-written in sight."""
    one, other = (load_file(folder / "model" / "model.safetensors") for folder in (whole, torn))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    contents = [(folder / "model" / "model.safetensors").read_bytes() for folder in (whole, torn)]
    assert contents[0] == contents[1]
    told, again = (logs.read(folder) for folder in (whole, torn))
    timeless = lambda row: {name: value for name, value in row.items() if "second" not in name}  # noqa: E731
    assert [timeless(row) for row in told] == [timeless(row) for row in again]
    files = [{str(file.relative_to(folder)) for file in (folder / "model").rglob("*")} for folder in (whole, torn)]
    assert files[0] == files[1]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_bit_for_bit(case: str, tmp_path: Path) -> None:
    changes = CASES[case]
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    killed(torn, changes, step=5)  # the checkpoint is of step 3
    assert [path.name for path in (torn / "checkpoints").iterdir()] == ["step-00000003"]
    assert not (torn / "model").exists()
    train(a_run.small(whole, changes), quiet=True)
    torch.manual_seed(123)
    result = train(a_run.small(torn, changes), resume=True, quiet=True)
    assert result.finished
    assert result.step >= 7
    assert_the_same(whole, torn)


# ---- at any moment

SHORT = {
    "schedule": {"steps": 8},
    "run": {"checkpoint_every": 2, "log_every": 3, "threads": 1},
    "evaluation": {"every": 4, "sentences": 2},
}
SPAWN = multiprocessing.get_context("forkserver")  # imports everything once, and starts a process in no time
SPAWN.set_forkserver_preload(["tests.training.a_run", "besag.train_model", "besag.training.run.build",
                              "besag.training.run.trainer", "besag.evaluation.monitor"])  # fmt: skip


def run_until(folder: Path, number: int | None = None, seconds: float = 0.0) -> int:
    """Begin or go on in a process, send it a signal after so many seconds; its exit code."""
    process = SPAWN.Process(target=a_run.attempt, args=(str(folder), SHORT))
    process.start()
    if number is not None:
        process.join(seconds)
        if process.is_alive():
            os.kill(process.pid or 0, number)
    process.join(120)
    assert process.exitcode is not None
    return process.exitcode


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    a_run.attempt(str(folder), SHORT)
    return folder


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_one_kill_of_each_kind(number: int, undisturbed: Path, tmp_path: Path) -> None:
    torn = tmp_path / "run"
    process = SPAWN.Process(target=a_run.attempt, args=(str(torn), SHORT))
    process.start()
    while process.is_alive() and not (torn / "checkpoints").exists():
        time.sleep(0.005)
    os.kill(process.pid or 0, number)
    process.join(60)
    assert process.exitcode in (-signal.SIGKILL, 0)
    assert run_until(torn) == 0
    assert_the_same(undisturbed, torn)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_twenty_kills_at_random_moments(number: int, undisturbed: Path, tmp_path: Path) -> None:
    """Of as many runs as it takes: one that ends in spite of them is compared, and the next begun."""
    moments = random.Random(5)
    run_until(tmp_path / "first")  # starts the server of processes, which takes a while
    begun = time.monotonic()
    run_until(tmp_path / "timed")
    longest = time.monotonic() - begun
    kills, runs = 0, 0
    while kills < 20:
        folder = tmp_path / str(runs)
        while not (folder / "model").exists() and kills < 20:
            kills += run_until(folder, number, moments.uniform(0, longest)) != 0 or not (folder / "model").exists()
        assert run_until(folder) == 0
        assert_the_same(undisturbed, folder)
        runs += 1


def test_a_kill_after_the_last_checkpoint_tells_the_evaluation_once(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def dies(*_: Any, **__: Any) -> None:
        raise Killed

    recipe = a_run.small(tmp_path / "run", SHORT)
    with monkeypatch.context() as patched:
        patched.setattr(export, "export", dies)
        with pytest.raises(Killed):
            train_by_the_door(recipe, quiet=True)
    assert sum(logs.is_evaluation(row) and row["step"] == 8 for row in logs.read(tmp_path / "run")) == 1
    result = train_by_the_door(recipe, resume=True, quiet=True)
    assert result.finished
    assert_the_same(undisturbed, tmp_path / "run")
    assert {"loss", "heldout_loss"} <= result.metrics.keys()  # also what was told before


def test_a_full_disk_leaves_no_half_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from besag.training.run import card

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    recipe = a_run.small(tmp_path / "run", SHORT)
    with monkeypatch.context() as patched:
        patched.setattr(card, "write", full)
        with pytest.raises(BesagError, match=r"could not be written to '.*model': No space left on device. The last"):
            train(recipe, quiet=True)
    assert not (tmp_path / "run" / "model").exists()
    assert not list((tmp_path / "run").glob(".model*"))
    train(recipe, resume=True, quiet=True)
    assert (tmp_path / "run" / "model" / "model.safetensors").exists()


def test_broken_checkpoints_are_passed_over_or_told(undisturbed: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "run"
    shutil.copytree(undisturbed, folder)
    shutil.rmtree(folder / "model")
    store = Checkpoints(folder / "checkpoints")
    newest = store.newest()
    assert newest is not None
    for content in ("[" * 3000, "{}", "5", '{"format": 1, "state": 3, "step": "a"}', ""):
        (newest.folder / "meta.json").write_text(content)
        older = store.newest()
        assert older is not None
        assert older.step < newest.step
    (older.folder / "state.pt").write_bytes(b"torn")
    with pytest.raises(BesagError, match=r"cannot be read"):
        older.read()
    other = a_run.small(folder, {**SHORT, "model": {"config": {**a_run.MODEL, "hidden_size": 32}}})
    (folder / "recipe.toml").unlink()
    with pytest.raises(BesagError, match=r"no recipe.toml that says what of"):
        train(other, resume=True, quiet=True)
