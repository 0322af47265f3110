"""Faithfulness of explanations of fillings, a method each, on the same texts: figures in docs/explanation.md.

    python benchmarks/explaining.py DATA/snli/validation.tsv [--texts 30] [--model NAME]

The last word of hypotheses of SNLI is hidden (every 97th that ends in a plain word and has six or more), and what fills
it is explained: by the mask, by deletion, and by what else could stand there. Means with standard errors, and the mean
of the differences to `mask`, text by text.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from pathlib import Path

import numpy as np

import besag

METHODS = {"mask": {}, "delete": {}, "marginalise": {"candidates": 10}}


def texts(file: Path, count: int) -> list[str]:
    with open(file, encoding="utf-8", newline="") as lines:
        said = [row["hypothesis"].strip() for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]
    whole = [one for one in said if re.search(r" [A-Za-z]+\.$", one) and len(one.split()) >= 6]
    return [re.sub(r"[A-Za-z]+\.$", "[MASK].", one) for one in whole[::97]][:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--texts", type=int, default=30)
    parser.add_argument("--model")
    chosen = parser.parse_args()
    lm = besag.load(*filter(None, [chosen.model]), progress=False)
    found: dict[str, np.ndarray] = {}
    for method, options in METHODS.items():
        values = [
            lm.explain(text, method=method, curve=True, orders=10, **options).curve.relative
            for text in texts(chosen.file, chosen.texts)
        ]
        found[method] = np.array(values)
        told = {"faithfulness": found[method], "less than mask": found["mask"] - found[method]}
        rounded = {
            name: [round(float(one), 3) for one in (part.mean(), part.std(ddof=1) / len(part) ** 0.5)]
            for name, part in told.items()
        }
        print(json.dumps({"method": method, "texts": len(values), **rounded}), flush=True)


if __name__ == "__main__":
    main()
