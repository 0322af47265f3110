"""Killed with SIGKILL in the middle and resumed, a run ends in the same bits as one that was left alone."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import random
import re
import shutil
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
from besag.train_model import evaluation_of
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
    folder = tmp_path / "run"
    shutil.copytree(undisturbed, folder)
    shutil.rmtree(folder / "model")
    store = Checkpoints(folder / "checkpoints")
    newest = store.newest()
    assert newest is not None
    for content in ("[" * 3000, "{}", "5", '{"format": 1, "state": 3, "step": "a"}', '{"format": 2, "files": 3}', ""):
        (newest.folder / "meta.json").write_text(content)
        with pytest.warns(UserWarning, match=f"{newest.folder.name}: meta.json is none of a checkpoint"):
            older = store.newest()
        assert older is not None
        assert older.step < newest.step
    (older.folder / "state-00001.safetensors").write_bytes(b"torn")
    with pytest.raises(BesagError, match=r"state-00001.safetensors' is no file of a checkpoint"):
        older.read()
    other = a_run.small(folder, {**SHORT, "model": {"config": {**a_run.MODEL, "hidden_size": 32}}})
    (folder / "recipe.toml").unlink()
    with pytest.raises(BesagError, match=r"no recipe.toml that says what of"):
        train(other, resume=True, quiet=True)


# ---- over several machines

TRAVEL: dict[str, Any] = {
    "optimizer": {"name": "muon", "lr": 1e-2},
    "schedule": {"steps": 24, "shape": "trapezoid"},
    "run": {"ema": 0.9, "checkpoint_state": "16-bit", "checkpoint_every": 100, "log_every": 4},
    "evaluation": {"sentences": 2},
}


def stopping_after(steps: int) -> Any:
    asked = iter(range(1, 10**9))
    return lambda: next(asked) >= steps


def sat_through(folder: Path, changes: dict[str, Any], *sittings: int) -> Path:
    """Sittings of so many steps, each on a machine of its own: another path, another number of workers."""
    home = folder / "0"
    for number, steps in enumerate((*sittings, 10**9)):
        after = folder / str(number)
        if number:
            shutil.copytree(home / "run", after / "run", ignore=shutil.ignore_patterns("cache", "tensorboard", ".*"))
            a_run.corpus(after)
            torch.manual_seed(number)
        workers = {**changes, "run": {**changes["run"], "workers": number % 2}}
        train(a_run.small(after / "run", workers), resume=number > 0, stop=stopping_after(steps), quiet=True,
              monitor=evaluation_of)  # fmt: skip
        home = after
    return home / "run"


def test_three_sittings_in_16_bits_are_as_good_as_one(tmp_path: Path) -> None:
    train(a_run.small(tmp_path / "whole" / "run", TRAVEL), quiet=True, monitor=evaluation_of)
    end = sat_through(tmp_path / "parts", TRAVEL, 7, 9)
    one, other = (logs.read(folder) for folder in (tmp_path / "whole" / "run", end))
    assert [row["step"] for row in one] == [row["step"] for row in other] == [4, 8, 12, 16, 20, 24, 24]
    assert [row.get("tokens") for row in one] == [row.get("tokens") for row in other]  # the same batches
    assert one[0]["loss"] - one[-2]["loss"] > 1
    assert abs(one[-1]["heldout_loss"] - other[-1]["heldout_loss"]) < 0.01
    assert abs(one[-2]["loss"] - other[-2]["loss"]) < 0.01
    card = (end / "model" / "README.md").read_text()
    assert re.search(
        r"- sitting 1 of 3: \d{4}-\d\d-\d\d \d\d:\d\d to .*: steps 1 to 7, [\d,]+ tokens, 0:\d\d of tr", card
    )
    assert "steps 8 to 16" in card
    assert "steps 17 to 24" in card
    assert "hardware:" not in card
    assert "sitting" not in (tmp_path / "whole" / "run" / "model" / "README.md").read_text()


@pytest.mark.slow
def test_three_sittings_in_float32_are_one_to_the_bit(tmp_path: Path) -> None:
    exact = {**TRAVEL, "run": {**TRAVEL["run"], "checkpoint_state": "float32"}}
    train(a_run.small(tmp_path / "whole" / "run", exact), quiet=True, monitor=evaluation_of)
    assert_the_same(tmp_path / "whole" / "run", sat_through(tmp_path / "parts", exact, 7, 9))


@pytest.mark.parametrize("state", ["float32", "16-bit"])
def test_masters_are_the_same_bits_after_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    """Weights in bfloat16 are not in the checkpoint: they are rounded from their masters, as before."""
    from besag.training.run.trainer import Loop

    run = {**TRAVEL["run"], "checkpoint_state": state, "precision": "bfloat16-pure"}
    recipe = a_run.small(tmp_path / "run", {**TRAVEL, "run": run})
    seen: list[Any] = []
    restore, snapshot = Loop._restore, Loop.snapshot

    def kept(loop: Any) -> Any:
        weights = {name: weight.detach().clone() for name, weight in loop.built.objective.named_parameters()}
        return copy.deepcopy(snapshot(loop)), weights

    monkeypatch.setattr(Loop, "snapshot", lambda loop: seen.append(kept(loop)) or snapshot(loop))
    train(recipe, stop=stopping_after(5), quiet=True)
    monkeypatch.setattr(Loop, "_restore", lambda loop, saved: (restore(loop, saved), seen.append(kept(loop)))[0])
    train(recipe, resume=True, stop=stopping_after(1), quiet=True)
    (before, rounded), (after, again) = seen[:2]
    assert {weight.dtype for weight in rounded.values()} == {torch.bfloat16}
    assert all(torch.equal(rounded[name], again[name]) for name in rounded)
    assert all(value.dtype == torch.float32 for name, value in before["objective"].items() if name in rounded)
    assert all(torch.equal(value, after["objective"][name]) for name, value in before["objective"].items())
    moments = [(one, after["optimizer"]["state"][number]) for number, one in before["optimizer"]["state"].items()]
    same = [torch.equal(one[name], other[name]) for one, other in moments for name in one]
    assert all(same) == (state == "float32")
    for one, other in moments:
        for name in one:
            rate = 2**-10 if name == "square" else 2**-11
            torch.testing.assert_close(other[name], one[name], rtol=rate * 1.001, atol=1e-9)


def test_a_missing_file_is_told_and_nothing_begins_anew(tmp_path: Path) -> None:
    """A run that was carried here without one of its files."""
    recipe = a_run.small(tmp_path / "run", {"run": {"checkpoint_shard": 1.0}, "schedule": {"steps": 3}})
    train(recipe, stop=stopping_after(1), quiet=True)
    [folder] = (tmp_path / "run" / "checkpoints").iterdir()
    assert all(file.stat().st_size <= 10**6 for file in folder.iterdir())
    (folder / "state-00002.safetensors").rename(tmp_path / "left-behind")
    with pytest.raises(BesagError, match=r"step-00000001: state-00002.safetensors is missing. Bring what is missing"):
        train(recipe, resume=True, quiet=True)
    (tmp_path / "left-behind").rename(folder / "state-00002.safetensors")
    assert train(recipe, resume=True, quiet=True).finished
