"""How near `maskless` comes to `pll` on texts that no scorer learned from: the SNLI rows of docs/scores/maskless.md.

    python benchmarks/maskless.py snli/validation.tsv --columns premise hypothesis --texts 150

Distinct texts of three words or more, drawn with a seed; `unmasked` and length alone stand beside it, as in the table
of `besag distil-scorer`, which judges on the last of its own texts.
"""

from __future__ import annotations

import argparse
import csv
import json

import numpy as np

import besag
from besag.scores.distilling import judge

FEWEST_WORDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", help="a TSV with a header")
    parser.add_argument("--columns", nargs="+", required=True)
    parser.add_argument("--texts", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="if not given, the embedded one")
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()
    with open(chosen.table, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        texts = list(dict.fromkeys(row[name] for row in rows for name in chosen.columns))
    texts = [text for text in texts if len(text.split()) >= FEWEST_WORDS]
    drawn = np.random.default_rng(chosen.seed).permutation(len(texts))[: chosen.texts]
    lm = besag.load(chosen.model, device=chosen.device, progress=False)
    terms = {score.text: score.log_probs for score in lm.score([texts[one] for one in drawn], "pll")}
    for way, figures in judge(lm.engine, terms).items():
        print(json.dumps({"way": way, "texts": len(terms), **{k: round(v, 4) for k, v in figures._asdict().items()}}))


if __name__ == "__main__":
    main()
