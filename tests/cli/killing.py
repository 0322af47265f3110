"""Commands that run in processes of their own, split off from one that has imported everything: a kill costs no start.

The model is a tiny random network that was made before, so that what is resumed is held to the bits of a network, whose
numbers depend on what runs together. Blocks are small, and states are saved at every step.
"""

from __future__ import annotations

import gc
import importlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import typer
from tests import networks
from tqdm.std import tqdm

import besag.cli
from besag.files import progress
from besag.samplers import recording
from besag.study import report

LETTERS = ["the", "cat", "sat", "on", "a", "mat", "and", "one", "red", "dog", "ran", "by"]


@cache
def model() -> besag.LanguageModel:
    vocabulary = networks.vocabulary("bert")
    return besag.load((networks.tiny("bert").eval(), vocabulary.tokenizer), device="cpu", progress=False)


@cache
def warm() -> Any:
    """The command line, built once, with everything imported that a command would import."""
    for name in (
        "matplotlib.pyplot", "pyarrow.parquet", "tqdm.auto", "besag.cli.side_by_side",
        "besag.evaluation.saved", "besag.evaluation.report", "besag.evaluation.suites.minimal_pairs",
        "besag.study.folder", "besag.study.plot", "besag.scores.corpora", "besag.samplers.sampling",
    ):  # fmt: skip
        importlib.import_module(name)
    model().score("the cat sat")
    gc.collect()
    gc.freeze()  # no process that is split off looks through all of it again
    return typer.main.get_command(besag.cli.app)


@dataclass(frozen=True)
class Target:
    """A command that is killed, and what must be the same afterwards."""

    name: str
    command: tuple[str, ...]
    results: tuple[str, ...]  # files
    note: str  # the file that is there for as long as something is left to do; "" where the same command always goes on
    again: tuple[str, ...] = ("--resume",)
    says: str = "go on with besag"

    def finished(self, folder: Path) -> bool:
        return bool(self.note) and (folder / self.results[0]).exists() and not (folder / self.note).exists()


def score(format: str) -> Target:
    out = f"out.{format}"
    command = ("score", "texts.tsv", "--quiet", "--method", "pll", "--method", "chain", "-o", out)
    return Target(f"score {format}", command, (out,), f"{out}.progress")


TARGETS = (
    *map(score, ("tsv", "csv", "jsonl", "parquet")),
    Target(
        "pairs",
        ("pairs", "few.txt", "--quiet", "--candidates", "5", "--method", "ag", "--method", "mlm", "-o", "study"),
        ("study/pairs.jsonl", "study/table.tsv", "study/differences.tsv", "study/pairs.parquet"),
        "", again=(), says="the same command goes on",
    ),
    Target(
        "sample",
        ("sample", "the [MASK] sat on a [MASK]", "--quiet", "--steps", "60", "-c", "3", "--record", "out.jsonl"),
        ("out.jsonl",), "", says="Go on with: besag",
    ),
    Target(
        "suites",
        ("eval", "minimal_pairs", "--data", "pairs.tsv", "--set", "header=false", "--quiet", "--method", "pll",
         "--method", "chain", "-o", "results"),
        ("results/items.jsonl", "results/figures.tsv", "results/report.html", "results/run.json"),
        "results/items.jsonl.progress",
    ),
)  # fmt: skip


def inputs(folder: Path) -> Path:
    """Texts of several lengths, all of them different."""
    folder.mkdir()
    draws = random.Random(0)
    texts = [" ".join(draws.choices(LETTERS, k=draws.randint(2, 9))) for _ in range(60)]
    (folder / "texts.tsv").write_text("id\ttext\n" + "".join(f"{at}\t{text}\n" for at, text in enumerate(texts)))
    (folder / "few.txt").write_text("\n".join(texts[:14]) + "\n")
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(texts[::2], texts[1::2], strict=True)))
    return folder


def start(folder: Path, *command: str, prepare: Callable[[], None] = lambda: None) -> int:
    """`besag COMMAND` in a process that is split off from this one: its id."""
    app = warm()
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        gc.disable()
        _become(folder, command)
        prepare()
        besag.cli.app = app
        besag.cli.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 71
    except BaseException:
        traceback.print_exc()
    finally:
        with open(2, "w", closefd=False) as stream:
            sys.stderr.flush()
            stream.flush()
        os._exit(code)


def _become(folder: Path, command: tuple[str, ...]) -> None:
    os.chdir(folder)
    for stream, name in ((0, os.devnull), (1, "../stdout"), (2, "../stderr")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | (os.O_TRUNC if stream else 0)), stream)
    streams = (os.fdopen(at, "w" if at else "r", buffering=1, closefd=False) for at in range(3))
    sys.stdin, sys.stdout, sys.stderr = streams
    sys.argv = ["besag", *command]
    warnings.resetwarnings()  # the tests make errors of them
    tqdm.set_lock(threading.RLock())  # its own is shared with the process it was split off from, also when it is killed
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(one, signal.default_int_handler if one == signal.SIGINT else signal.SIG_DFL)
    lm = model()
    besag.load = lambda *_, **__: lm  # type: ignore[assignment]
    progress.BLOCK["cpu"] = 8
    sys.modules["besag.cli.pairs"].BLOCK["cpu"] = 3  # type: ignore[attr-defined]
    recording.SAVED = 0.0
    report.Report.plot = _no_picture  # type: ignore[method-assign] # it takes longer than all the rest


def _no_picture(self: object) -> Any:
    from matplotlib.figure import Figure

    return Figure((1, 1))


def wait(process: int, until: Callable[[], object]) -> None:
    """For something that a process does while it runs."""
    while not until():
        ended = os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        assert ended is None or until(), "it has ended without"
        time.sleep(0.001)


def end(process: int) -> int:
    """The exit code; −9 where it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def run(folder: Path, *command: str) -> int:
    return end(start(folder, *command))


def contents(target: Target, folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in target.results}


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def readable(folder: Path, torn: str = "") -> None:
    """Whatever stands under its own name can be read: rows are whole, but for the last of the file `torn`."""
    for path in folder.rglob("*"):
        if path.name.startswith(".") or path.name == torn:  # a draft, or a lock
            continue
        if path.suffix == ".parquet":
            pq.read_table(path)
        elif path.suffix in (".tsv", ".csv", ".jsonl", ".json", ".progress") and path.stat().st_size:
            assert path.read_bytes().endswith(b"\n"), path


class Undisturbed(NamedTuple):
    expected: dict[str, bytes]
    left: list[str]  # files
    lasts: float  # seconds


@cache
def undisturbed(target: Target) -> Undisturbed:
    warm()
    with tempfile.TemporaryDirectory() as name:
        folder, began = inputs(Path(name) / "inputs"), time.monotonic()
        assert run(folder, *target.command) in (0, 3), (Path(name) / "stderr").read_text()
        return Undisturbed(contents(target, folder), listing(folder), time.monotonic() - began)


class Sweep:
    """One command, killed again and again at random moments, each time gone on with, until it ends."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.target, self.folder = target, folder
        self.expected, self.left, self.lasts = undisturbed(target)
        self.kills = self.ends = 0

    def killed(self, how: signal.Signals, times: int, seed: int) -> Iterator[dict[str, bytes]]:
        """The results of each command that ended after all."""
        moments = random.Random(seed)
        while self.kills < times:
            folder = inputs(self.folder / f"{how.name}-{self.ends}")
            again: tuple[str, ...] = ()
            while not self.target.finished(folder):
                process = start(folder, *self.target.command, *again)
                again = self.target.again
                if self.kills < times:
                    time.sleep(moments.uniform(0, self.lasts))
                    os.kill(process, how)
                code = end(process)
                said = (self.folder / "stderr").read_text()
                readable(folder, torn=Path(self.target.results[0]).name if code == -signal.SIGKILL else "")
                if code in (0, 3):
                    assert listing(folder) == self.left, listing(folder)
                    break
                assert code in (-how, 128 + how), (code, said)
                self.kills += 1
            self.ends += 1
            yield contents(self.target, folder)
