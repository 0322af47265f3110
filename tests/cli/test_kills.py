"""Commands that are killed, ended by SIGTERM, started twice or out of room: what they leave, and how they go on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

if os.name != "posix":
    pytest.skip("signals of POSIX", allow_module_level=True)

from tests.cli import killing
from tests.cli.killing import TARGETS, Sweep, Target

named = pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
@named
def test_one_kill(tmp_path: Path, target: Target, how: signal.Signals) -> None:
    Sweep(target, tmp_path).kill(how, 1, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
@named
def test_twenty_kills(tmp_path: Path, target: Target, how: signal.Signals) -> None:
    sweep = Sweep(target, tmp_path)
    sweep.kill(how, 20, seed=1)
    print(f"{target.name}: {sweep.kills} kills, {sweep.ends} ends, {sweep.lasts:.2f} s undisturbed")
