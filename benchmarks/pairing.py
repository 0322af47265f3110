"""Which chains belong together: `lm.match` on synthetic paralogs made from antibody chains, beside chance.

    PYTHONPATH=src python3 benchmarks/pairing.py --data FOLDER/protein_antibody --model ANTIBERTY
    PYTHONPATH=src python3 benchmarks/pairing.py --data FOLDER/protein_antibody --model ANTIBERTY --of chains

A group of pairs drawn at random plays the paralogs of one species. `halves`: a pair is a chain cut in the middle, so
partners must agree on their germline gene. `chains`: a pair is the heavy and the light chain of one antibody.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np

import besag
from antibodies import chains, halves, heavy_and_light, spaced


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of SAbDab's Parquet files")
    parser.add_argument("--model", required=True, help="AntiBERTy, as benchmarks/antiberty.py makes it")
    parser.add_argument("--of", choices=["halves", "chains"], default="halves")
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--size", type=int, default=6, help="pairs of a group")
    parser.add_argument("--method", default="elbo")
    parser.add_argument("--samples", type=int, help="of elbo")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    found = [one for part in ("train", "test") for one in chains(chosen.data, part)]
    pairs = sorted(halves(found) if chosen.of == "halves" else heavy_and_light(found))
    random.Random(chosen.seed).shuffle(pairs)
    pairs = pairs[: chosen.groups * chosen.size]
    groups = [str(place // chosen.size) for place in range(len(pairs))]
    lm = besag.load(chosen.model, device="cpu", progress=False)
    options = {} if chosen.samples is None else {"samples": chosen.samples}
    began = time.perf_counter()
    first, second = ([spaced(pair[side]) for pair in pairs] for side in (0, 1))
    matching = lm.match(first, second, groups, method=chosen.method, seed=chosen.seed, **options)
    right = np.array([own == place for place, own in enumerate(matching.partner)]).reshape(-1, chosen.size)
    error = right.mean(1).std(ddof=1) / len(right) ** 0.5
    print(json.dumps({
        "of": chosen.of, "groups": len(right), "pairs": len(pairs), "method": matching.method,
        "accuracy": matching.accuracy, "standard_error": error, "chance": matching.chance,
        "prob": float(np.mean([one.prob for one in matching.pairs])),
        "seconds": time.perf_counter() - began,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
