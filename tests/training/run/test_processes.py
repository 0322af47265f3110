"""Two processes are one that accumulates twice as much."""

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

QUIET_MODEL = {**a_run.MODEL, "embedding_dropout": 0.0, "mlp_dropout": 0.0, "attention_dropout": 0.0}


def two(folder: Path, changes: dict[str, Any]) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[3])])}
    environment["OMP_NUM_THREADS"] = "1"
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launch, a_run.__file__, str(folder), json.dumps(changes)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True) as run:
        try:
            _, said = run.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            raise
    assert run.returncode == 0, said


@pytest.mark.slow
def test_the_loss_curve_of_two_processes_is_that_of_one(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "model": {"config": QUIET_MODEL},
        "masking": {"law": "adaptive"},
        "run": {"ema": 0.9},
        "schedule": {"steps": 8},
    }
    two(tmp_path / "two", changes)
    alone = {**changes, "run": {**changes["run"], "accumulate": 2}}
    train(a_run.small(tmp_path / "one", alone), quiet=True)
    one, other = (logs.read(tmp_path / name) for name in ("one", "two"))
    assert len(one) == len(other) == 8
    for name, least in (("loss", 1e-5), ("grad_norm", 1e-4), ("lr", 1e-12), ("tokens", 0)):
        assert [row[name] for row in other] == pytest.approx([row[name] for row in one], abs=least, rel=least), name
    weights = [load_file(tmp_path / name / "model" / "model.safetensors") for name in ("one", "two")]
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, rtol=1e-3, atol=2e-5)
    assert one[0]["loss"] - one[-1]["loss"] > 0.1
