"""How long exact answers of the lab take: gaps by Lanczos, and exact mixing from every start.

    PYTHONPATH=src python benchmarks/lab.py

The aims on two cores: 12 spins below 5 s, 16 below 60 s, mixing of 10 below 5 s. One line of JSON each; the first of
them pays for what torch and numpy set up.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

from besag.lab import chain, clique, ising
from besag.lab.chains import gibbs, mixing_time, spectrum


def timed(what: str, aim: float, answer: Callable[[], float]) -> None:
    began = time.perf_counter()
    found = answer()
    seconds = time.perf_counter() - began
    print(json.dumps({"what": what, "seconds": round(seconds, 3), "aim": aim, "answer": found}), flush=True)


def main() -> None:
    print(json.dumps({"cores": os.cpu_count(), "load": os.getloadavg()}))
    timed("gap, chain of 12 spins", 5, lambda: spectrum(gibbs(ising(chain(12), 0.5))).gap)
    timed("gap, chain of 16 spins", 60, lambda: spectrum(gibbs(ising(chain(16), 0.5))).gap)
    timed("mixing time from every start, clique of 10 spins", 5, lambda: mixing_time(gibbs(ising(clique(10), 0.1))))


if __name__ == "__main__":
    main()
