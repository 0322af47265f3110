from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from besag.errors import BesagError
from besag.training.run import checkpoint, shards
from besag.training.run.checkpoint import Checkpoints, random_state, set_random_state

SHARD = "state-00001.safetensors"


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
    with open(tmp_path / "step-00000005" / SHARD, "r+b") as file:
        file.truncate(500)
    with open(tmp_path / "step-00000004" / SHARD, "r+b") as file:  # one bit, the size is right
        file.seek(900)
        byte = file.read(1)[0]
        file.seek(900)
        file.write(bytes([byte ^ 1]))
    (tmp_path / "step-00000003/meta.json").write_text('{"format"')
    os.remove(tmp_path / "step-00000002" / SHARD)
    with pytest.warns(UserWarning, match="the run goes on from step 1") as told:
        found = store.newest()
    assert found is not None
    assert found.step == 1
    size = (tmp_path / "step-00000001" / SHARD).stat().st_size
    assert str(told[0].message) == (
        f"step-00000005: {SHARD} has 500 bytes instead of {size:,}; step-00000004: {SHARD} is another file than was "
        f"written (by its checksum); step-00000003: meta.json is none of a checkpoint; step-00000002: {SHARD} is "
        "missing: the run goes on from step 1"
    )
    store.save(6, state(6), {})
    assert not list(tmp_path.glob(".unfinished*"))


def test_where_none_is_whole_that_is_told_and_nothing_begins_anew(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path, shard=0.001)
    store.save(1, state(1), {})
    shards = sorted(path.name for path in (tmp_path / "step-00000001").glob("*.safetensors"))
    assert len(shards) == 5
    os.remove(tmp_path / "step-00000001" / shards[2])
    with pytest.raises(
        BesagError, match=rf"no checkpoint in .* is whole: step-00000001: {shards[2]} is missing\. Bring"
    ):
        store.newest()
    for name in shards:
        (tmp_path / "step-00000001" / name).unlink(missing_ok=True)
    with pytest.raises(BesagError, match=r"is missing and 1 more\. Bring"):
        store.newest()


def test_a_file_of_another_checkpoint_is_told_by_its_name(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    for step in (1, 2):
        store.save(step, state(step), {})
    shutil.copy(tmp_path / "step-00000001" / SHARD, tmp_path / "step-00000002" / SHARD)
    with pytest.warns(UserWarning, match=f"step-00000002: {SHARD} is another file than was written"):
        found = store.newest()
    assert found is not None
    assert found.step == 1


@pytest.mark.parametrize("files", [{"../../secret": {}}, {"state.json": 3}, [], 5])
def test_a_description_that_is_none_is_told(tmp_path: Path, files: object) -> None:
    folder = Checkpoints(tmp_path).save(1, state(1), {}).folder
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "files": files}))
    with pytest.raises(BesagError, match=r"step-00000001: .*(meta.json is none|state)"):
        Checkpoints(tmp_path).newest()
    (folder / "meta.json").write_text(json.dumps({**meta, "format": 99}))
    with pytest.raises(BesagError, match="its format is 99, and this besag reads 1 and 2"):
        Checkpoints(tmp_path).newest()


def test_beside_damaged_ones_the_new_one_stays(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path, keep=1)
    store.save(9, state(9), {})
    os.remove(tmp_path / "step-00000009" / SHARD)
    store.save(5, state(5), {})
    with pytest.warns(UserWarning, match="the run goes on from step 5"):
        assert store.newest() is not None


def test_one_of_before_there_were_shards_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "step-00000004"
    folder.mkdir()
    torch.save(state(4), folder / "state.pt")
    about = shards.checksum(folder / "state.pt")
    (folder / "meta.json").write_text(json.dumps({"format": 1, "step": 4, "processes": 1, "state": about}))
    found = Checkpoints(tmp_path).newest()
    assert found is not None
    assert torch.equal(found.read()["weights"]["a"], torch.full((1000,), 4.0))


def test_killed_in_the_middle_of_writing_the_older_one_is_used(tmp_path: Path) -> None:
    """With SIGKILL, between two shards of a checkpoint that has a hundred."""
    Checkpoints(tmp_path, keep=1).save(1, state(1), {})
    program = (
        "import sys, os, signal, torch\n"
        "from pathlib import Path\n"
        "from besag.training.run import shards\n"
        "from besag.training.run.checkpoint import Checkpoints\n"
        "put, times = shards.put, iter(range(99))\n"
        "shards.put = lambda *given: put(*given) if next(times) < 40 else os.kill(os.getpid(), signal.SIGKILL)\n"
        "Checkpoints(Path(sys.argv[1]), keep=1, shard=0.001).save(2, {'a': torch.ones(20_000)}, {})\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], env=environment, check=False, timeout=100)
    assert done.returncode == -signal.SIGKILL
    assert len(list((tmp_path / ".unfinished-00000002").iterdir())) == 40
    found = Checkpoints(tmp_path).newest()
    assert found is not None
    assert torch.equal(found.read()["weights"]["a"], torch.full((1000,), 1.0))
    Checkpoints(tmp_path).save(3, state(3), {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000001", "step-00000003"]


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
        store.save(2, state(2, size=100_000), {})
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    found = store.newest()
    assert found is not None
    assert torch.equal(found.read()["weights"]["a"], torch.full((1000,), 1.0))


@pytest.mark.parametrize("broken", [(shards, "write"), (shards, "put"), (checkpoint, "_flush")], ids=str)
def test_failing_at_any_point_leaves_the_old_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: tuple[Any, str]
) -> None:
    store = Checkpoints(tmp_path, keep=1)
    store.save(1, state(1), {})

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*broken, fail)
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
        files = json.loads((self / "meta.json").read_text())["files"]
        assert set(files) == {"state.json", SHARD}
        assert not shards.fault(self, files)
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
