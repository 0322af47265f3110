from __future__ import annotations

import json
import os
import random
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from besag.errors import BesagError
from besag.training.run import checkpoint
from besag.training.run.checkpoint import Checkpoints, random_state, set_random_state


def state(step: int, size: int = 1000) -> dict[str, object]:
    return {"weights": {"a": torch.full((size,), float(step))}, "step": step}


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    store.save(7, state(7), {"processes": 1})
    found = store.newest()
    assert found is not None
    assert found.step == 7
    assert found.meta["processes"] == 1
    assert torch.equal(found.read()["weights"]["a"], torch.full((1000,), 7.0))


def test_old_ones_go_when_the_new_one_is_whole(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path, keep=2)
    for step in (5, 10, 100_000_000, 15):
        store.save(step, state(step), {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000015", "step-100000000"]


def test_a_torn_one_is_passed_over(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path, keep=9)
    for step in (1, 2, 3, 4, 5):
        store.save(step, state(step), {})
    shutil.copytree(tmp_path / "step-00000005", tmp_path / ".unfinished-00000006")
    with open(tmp_path / "step-00000005/state.pt", "r+b") as file:
        file.truncate(500)
    with open(tmp_path / "step-00000004/state.pt", "r+b") as file:  # one bit, the size is right
        file.seek(900)
        byte = file.read(1)[0]
        file.seek(900)
        file.write(bytes([byte ^ 1]))
    (tmp_path / "step-00000003/meta.json").write_text('{"format"')
    os.remove(tmp_path / "step-00000002/state.pt")
    found = store.newest()
    assert found is not None
    assert found.step == 1
    store.save(6, state(6), {})
    assert not list(tmp_path.glob(".unfinished*"))


def test_none_is_found_where_none_is(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "nowhere").newest() is None


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """No file can grow beyond `size` bytes: writing fails in the middle, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_old_one_whole(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path, keep=1)
    store.save(1, state(1), {})
    with small_disk(20_000), pytest.raises(BesagError, match=r"step 2 could not be written.*step 1 is whole"):
        store.save(2, state(2, size=100_000), {})
    with small_disk(20_000), pytest.raises(BesagError, match=r": (File too large|No space left on device); the one of"):
        store.save(2, state(2, size=100_000), {})  # not in torch's words, "unexpected pos 153856"
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    found = store.newest()
    assert found is not None
    assert torch.equal(found.read()["weights"]["a"], torch.full((1000,), 1.0))


@pytest.mark.parametrize("broken", ["_write_state", "_write", "_flush"])
def test_failing_at_any_point_leaves_the_old_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    store = Checkpoints(tmp_path, keep=1)
    store.save(1, state(1), {})

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, broken, fail)
    with pytest.raises(BesagError, match="No space left on device"):
        store.save(2, state(2), {})
    found = store.newest()
    assert found is not None
    assert found.step == 1


def test_killed_before_the_name_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is on the disk before the rename: the name never stands for less."""
    store, seen = Checkpoints(tmp_path), []
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        assert json.loads((self / "meta.json").read_text())["state"] == checkpoint._checksum(self / "state.pt")
        seen.append(target.exists())
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    store.save(3, state(3), {})
    assert seen == [False]


def draws() -> list[float]:
    return [random.random(), float(np.random.rand()), float(torch.rand(())), float(np.random.randn())]


def test_every_generator_goes_on(tmp_path: Path) -> None:
    np.random.randn()  # leaves a second Gaussian behind
    Checkpoints(tmp_path).save(1, {"random": [random_state()]}, {})
    expected = draws()
    found = Checkpoints(tmp_path).newest()
    assert found is not None
    set_random_state(found.read()["random"][0])
    assert draws() == expected
