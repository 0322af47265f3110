"""`besag bulk score` beside one `besag score` process with all threads, on the same lines; and the driver's memory.

    python benchmarks/bulk.py                                        # 20,000 lines by pll, 200,000 by unmasked: an hour
    python benchmarks/bulk.py --pll 400 --unmasked 4000              # a look
    python benchmarks/bulk.py --memory 100000 1000000 --model FOLDER # peak memory of the driver, on few texts

Both run in processes of their own, in turn, and write TSV. Rates are told twice: over the whole command, and without
what one row takes (starting Python, loading the model, starting Ray). Lines are short English sentences, drawn from
templates, so that nothing has to be fetched.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

SUBJECTS = ["The old man", "A child", "My neighbour", "The doctor", "Every student", "The small dog", "Nobody"]
VERBS = ["walked to", "looked at", "remembered", "left", "painted", "never saw", "sat beside"]
OBJECTS = ["the house", "a river", "the empty garden", "his brother", "the church", "a red door", "the station"]
FEW = 100  # texts
ENDS = ["", " in the morning", " again", " with a friend", " before it rained", " for a long time"]


class Timed(NamedTuple):
    seconds: float
    peak: int  # kilobytes of the process itself


def lines(count: int) -> str:
    draw = random.Random(0)
    parts = (SUBJECTS, VERBS, OBJECTS, ENDS)
    found = []
    for number in range(count):
        subject, verb, thing, end = (draw.choice(part) for part in parts)
        found.append(f"{subject} {verb} {thing}{end}, {number % 997}.\n")  # few of them are the same
    return "".join(found)


def timed(*arguments: object) -> Timed:
    """A command, and the most memory its own process had."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "besag", *map(str, arguments)], stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            said = Path(f"/proc/{process.pid}/status").read_text()
            peak = max(peak, *(int(line.split()[1]) for line in said.splitlines() if line.startswith("VmHWM")), 0)
        except (OSError, ValueError):
            pass
        time.sleep(0.1)
    if process.returncode not in (0, 3):
        raise SystemExit(f"besag {' '.join(map(str, arguments))} ended with {process.returncode}")
    return Timed(time.perf_counter() - began, peak)


def compared(method: str, rows: int, model: list[str], place: Path, bulk: list[str]) -> dict[str, float | str]:
    """Rates of both, and of bulk as a share of the other."""
    path, one = place / f"{rows}.txt", place / "one.txt"
    path.write_text(lines(rows))
    one.write_text(lines(1))
    common = ["--method", method, *model, "--quiet", "--force", "-o"]
    start = timed("score", one, *common, place / "one.tsv").seconds
    start_bulk = timed("bulk", "score", one, *common, place / "one-job", *bulk).seconds
    alone = timed("score", path, *common, place / "scores.tsv").seconds
    shared = timed("bulk", "score", path, *common, place / "job", *bulk).seconds
    merge = timed("bulk", "merge", place / "job", "--force", "-o", place / "merged.tsv").seconds
    same = (place / "merged.tsv").read_bytes() == (place / "scores.tsv").read_bytes()
    return {
        "method": method, "rows": rows, "score_seconds": alone, "bulk_seconds": shared, "merge_seconds": merge,
        "score_start": start, "bulk_start": start_bulk, "share_of_rate": alone / shared,
        "share_of_rate_without_start": (alone - start) / (shared - start_bulk), "same_bytes": str(same),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pll", type=int, default=20_000)
    parser.add_argument("--unmasked", type=int, default=200_000)
    parser.add_argument("--memory", type=int, nargs="*", help="measure the driver's memory at so many rows instead")
    parser.add_argument("--model", help="folder or hub name; if not given, the embedded model")
    parser.add_argument("--actors", type=int)
    parser.add_argument("--shard-rows", type=int)
    chosen = parser.parse_args()
    model = [] if chosen.model is None else ["--model", chosen.model]
    bulk = [] if chosen.actors is None else ["--actors", str(chosen.actors)]
    bulk += [] if chosen.shard_rows is None else ["--shard-rows", str(chosen.shard_rows)]
    print(json.dumps({"cores": os.cpu_count(), "load": os.getloadavg()}))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for rows in chosen.memory or ():
            path = place / "rows.txt"
            few = lines(FEW).splitlines(keepends=True)  # equal questions run once: what is left is rows, in and out
            path.write_text("".join(few[number % FEW] for number in range(rows)))
            found = timed(
                "bulk", "score", path, "--method", "unmasked", *model, "--quiet", "--force", "-o", place / "job", *bulk
            )
            print(json.dumps({"rows": rows, "driver_peak_mb": found.peak / 1024, "seconds": found.seconds}), flush=True)
        if not chosen.memory:
            for method, rows in (("pll", chosen.pll), ("unmasked", chosen.unmasked)):
                if rows:
                    print(json.dumps(compared(method, rows, model, place, bulk)), flush=True)
    print(json.dumps({"load": os.getloadavg()}))


if __name__ == "__main__":
    main()
