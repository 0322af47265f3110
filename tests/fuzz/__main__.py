"""`make fuzz`: many hostile inputs, of the command line and of Python, and what is wrong with how they end.

    python -m tests.fuzz --cli 20000 --api 5000 --seed 0       # FUZZ_SEED is the seed where none is given
    python -m tests.fuzz --again '["score", "a\\u0000b"]'       # one of them, with what it prints

Inputs come in blocks of 250; block k of a seed is always the same, so `--from k` goes on where a run was stopped.
Each new kind of fault is one line with an input that shows it. The exit code is 1 where there was any.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from tests.fuzz import calls, commands, pool, watching

BLOCK = 250
MEMORY = 12 << 30


def drawn(inputs: st.SearchStrategy[Any], number: int, count: int, use: Callable[[Any], None]) -> None:
    """`count` inputs of block `number`."""

    @seed(number)
    @settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate], verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(inputs)
    def each(one: Any) -> None:
        use(one)

    each()


class Tally:
    """What was wrong, and how often."""

    def __init__(self) -> None:
        self.inputs = 0
        self.faults: collections.Counter[str] = collections.Counter()
        self.ends: collections.Counter[Any] = collections.Counter()

    def add(self, ended: tuple[str | None, Any], what: str) -> None:
        wrong, end = ended
        self.inputs += 1
        self.ends[end] += 1
        if wrong is not None:
            kind = wrong.partition(": ")[0]
            if not self.faults[kind]:
                print(f"FAULT {wrong}\n      {what}", flush=True)
            self.faults[kind] += 1


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--cli", type=int, default=20_000, help="command lines")
    arguments.add_argument("--api", type=int, default=5_000, help="calls in Python")
    arguments.add_argument("--seed", type=int, default=int(os.environ.get("FUZZ_SEED", "0")))
    arguments.add_argument("--from", type=int, default=0, dest="start", help="the block to begin with")
    arguments.add_argument("--again", help="one command line, as JSON")
    asked = arguments.parse_args()
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # what asks for more is told so, and the machine stays up
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        pool.write(Path(root))
        here = Path(root) / "here"
        cli, api = Tally(), Tally()
        with watching.remembered("../pool/tiny"):
            if asked.again:
                return again(json.loads(asked.again), here)
            run(cli, asked.cli, commands.lines(), lambda one: cli.add(watching.command(one, here), told(one)), asked)
        here.mkdir(exist_ok=True)
        with chdir(here):
            run(api, asked.api, calls.drawn(), lambda one: api.add(calls.made(one), one), asked)
    for name, tally in (("command lines", cli), ("calls", api)):
        ends = ", ".join(f"{times:,} {end}" for end, times in tally.ends.most_common())
        print(f"{name}: {tally.inputs:,} ({ends}), {sum(tally.faults.values())} faults")
        for kind, times in tally.faults.most_common():
            print(f"  {times:5d}  {kind}")
    return 1 if cli.faults or api.faults else 0


def run(tally: Tally, count: int, inputs: Any, use: Callable[[Any], None], asked: argparse.Namespace) -> None:
    begun, block = time.monotonic(), asked.start
    while tally.inputs < count:
        drawn(inputs, (asked.seed << 20) + block, min(BLOCK, count - tally.inputs), use)
        block += 1
        spent = time.monotonic() - begun
        print(f"… {tally.inputs:,} of {count:,}, {spent:.0f} s, {sum(tally.faults.values())} faults; --from {block}",
              file=sys.stderr, flush=True)  # fmt: skip


def told(line: list[str]) -> str:
    shown = json.dumps(line)
    return f"python -m tests.fuzz --again '{shown}'" if len(shown) < 2000 else f"{shown[:1000]} … {shown[-200:]}"


def again(line: list[str], folder: Path) -> int:
    os.environ["BESAG_DEBUG"] = "1"
    from besag.cli import app

    folder.mkdir()
    with chdir(folder):
        app(line, prog_name="besag")
    return 0


if __name__ == "__main__":
    sys.exit(main())
