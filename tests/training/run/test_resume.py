"""Killed with SIGKILL in the middle and resumed, a run ends in the same bits as one that was left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.training import a_run

from besag.training.run import logs, train

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
    one, other = (load_file(folder / "model" / "model.safetensors") for folder in (whole, torn))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    told, again = (logs.read(folder) for folder in (whole, torn))
    timeless = lambda row: {name: value for name, value in row.items() if "second" not in name}  # noqa: E731
    assert [timeless(row) for row in told] == [timeless(row) for row in again]
