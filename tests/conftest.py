"""Shared settings: one thread a worker (the suite runs in parallel), and hypothesis without deadlines.

`-m gpu` looks only into files that mark such tests, and needs no package that they do not import.
"""

import os
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")  # read once: as besag's commands set it for the processes they are
os.environ.setdefault("PYTEST_TIMEOUT", "600")  # here, since strict settings name no plugin that may be missing

import pytest
import torch

torch.set_num_threads(1)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell: besag keeps to that, and
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that send it could not
if find_spec("hypothesis"):
    from hypothesis import settings

    settings.register_profile("besag", deadline=None, max_examples=25, derandomize=True)
    settings.load_profile("besag")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.option.markexpr == "gpu" and collection_path.name.startswith("test_"):
        return "mark.gpu" not in collection_path.read_text(encoding="utf-8") or None
    return None


@pytest.fixture(autouse=True)
def no_figure_stays_open() -> Iterator[None]:
    """pyplot keeps every figure until it is closed, and warns after twenty: whose test it hits is chance."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
