"""What a suite costs beside its scores: `besag.evaluate` on minimal pairs, and one `lm.score` of the same texts.

    PYTHONPATH=src python3 benchmarks/suites.py --data FOLDER/blimp --each 20

The two take turns in one process, after a first round that is not counted. CPU seconds (user and system, of all
threads) are what counts: other work on the machine disturbs them least. `overhead` is the suite's share on top.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import besag


def spent(work: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of BLiMP's JSON Lines")
    parser.add_argument("--each", type=int, default=20, help="pairs of a paradigm")
    parser.add_argument("--model", help="if not given, the embedded one")
    parser.add_argument("--method", default="pll")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    texts = []
    for path in sorted(chosen.data.glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            pairs = [json.loads(line) for line in islice(file, chosen.each)]
        texts += [pair[side] for pair in pairs for side in ("sentence_good", "sentence_bad")]
    lm = besag.load(*filter(None, [chosen.model]), progress=False, device="cpu")
    ways = {
        "score": lambda: lm.score(texts, chosen.method),
        "suite": lambda: besag.evaluate(lm, "blimp", data=chosen.data, method=chosen.method, limit=chosen.each),
    }
    rounds = [{name: spent(way) for name, way in ways.items()} for _ in range(chosen.rounds + 1)][1:]
    median = {name: statistics.median(each[name] for each in rounds) for name in ways}
    found = {
        "texts": len(texts), "method": chosen.method, "cpu_seconds": median, "rounds": rounds,
        "overhead": median["suite"] / median["score"] - 1, "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }  # fmt: skip
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
