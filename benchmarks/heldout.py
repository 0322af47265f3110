"""Bits per character of held-out sentences: the chain rule, token by token and by blocks of two.

    PYTHONPATH=src python3 benchmarks/heldout.py FILE [--texts 400] [--device cuda] [--model NAME]

FILE has one paragraph a line. Sentences of 6 to 30 words are cut out of it, shuffled with a fixed seed, and scored by
`pll`, `chain` and `ag_chain`; intervals are 95 % bootstrap intervals over sentences.
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path

import numpy as np

import besag

SCORES = [
    ("pll", {}), ("chain", {}), ("chain", {"order": "right-to-left"}), ("chain", {"order": "confident"}),
    ("ag_chain", {"candidates": 16}), ("ag_chain", {"candidates": 64}),
    ("ag_chain", {"candidates": 64, "weights": "marginal"}),
    ("ag_chain", {"candidates": 64, "joint": "stationary"}),
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--device")
    parser.add_argument("--model")
    arguments = parser.parse_args()
    lines = Path(arguments.file).read_text(encoding="utf-8").splitlines()
    texts = sentences(lines)[: arguments.texts]
    lm = besag.load(arguments.model, device=arguments.device, dtype="float32")
    characters = np.array([len(text) for text in texts])
    print(f"{len(texts)} sentences, {characters.sum():,} characters, {lm!r}")
    bits: dict[str, np.ndarray] = {}
    for method, options in SCORES:
        name = " ".join([method, *map(str, options.values())])
        bits[name] = np.array([-score.total for score in lm.score(texts, method, **options)]) / np.log(2)
        less = bits[name] - bits.get("chain", bits[name])
        draws = np.random.default_rng(0).integers(0, len(texts), (2000, len(texts)))
        low, high = np.percentile(less[draws].sum(1) / characters[draws].sum(1), [2.5, 97.5])
        total = characters.sum()
        print(
            f"{name:24} {bits[name].sum() / total:.4f}  {less.sum() / total:+.4f} [{low:+.4f}, {high:+.4f}]", flush=True
        )


def sentences(lines: list[str]) -> list[str]:
    found = [part for line in lines for part in re.split(r'(?<=[.!?]) (?=[A-Z"])', line.strip())]
    kept = [part for part in found if 6 <= len(part.split()) <= 30]
    random.Random(0).shuffle(kept)
    return kept


if __name__ == "__main__":
    main()
