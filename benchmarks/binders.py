"""Does a model that learned peptides given their targets rank the true one first? Loops of antibodies.

    python3 benchmarks/binders.py make --data FOLDER/protein_antibody -o pairs
    besag train recipes/binders.toml --set model.start=ANTIBERTY --set data.train=pairs/train.tsv \\
        --set data.valid=pairs/test.tsv --set "data.template={source} {target}" --set data.max_length=140 \\
        --set data.batch_tokens=512 --set schedule.steps=60 --set evaluation.every=0 --set evaluation.sentences=8 \\
        -o runs/loops
    PYTHONPATH=src python3 benchmarks/binders.py rank pairs/test.tsv --model ANTIBERTY
    PYTHONPATH=src python3 benchmarks/binders.py rank pairs/test.tsv --model runs/loops/model

The peptide is the third loop of a light chain, and its target the chain without it: a stand-in for complexes, made of
what is at hand. The loop is ranked among itself shuffled (is it a loop at all?) and among the loops of other chains
(does it fit this target?). Rank 1 is best; by chance the mean rank among k others is 1 + k/2.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import time
from pathlib import Path

import numpy as np

import besag
from antibodies import FILES, chains, loops, spaced


def make(data: Path, output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    for part in FILES:
        pairs = loops(chains(data, part), "L")
        with (output / f"{part}.tsv").open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, delimiter="\t", lineterminator="\n")
            table.writerow(["target", "binder"])
            table.writerows([spaced(target), spaced(loop)] for target, loop in pairs)
        print(f"{output / part}.tsv: {len(pairs)} pairs")


def shuffled(peptide: str, count: int, draw: random.Random) -> list[str]:
    """As many distinct orders of its residues as asked, or as come of so many tries; its own is none of them."""
    orders: dict[str, None] = {}
    for _ in range(100 * count):
        if len(orders) < count:
            orders["".join(draw.sample(peptide, len(peptide)))] = None
            orders.pop(peptide, None)
    return list(orders)


def rank(file: Path, model: str, targets: int, others: int, seed: int) -> None:
    with file.open(encoding="utf-8") as lines:
        pairs = [(row["target"].replace(" ", ""), row["binder"].replace(" ", ""))
                 for row in csv.DictReader(lines, delimiter="\t")][:targets]  # fmt: skip
    lm, draw = besag.load(model, device="cpu", progress=False), random.Random(seed)
    ranks: dict[str, list[int]] = {"shuffled": [], "other": []}
    perplexities, began = [], time.perf_counter()
    for target, true in pairs:
        rest = sorted({loop for _, loop in pairs} - {true})
        sets = {"shuffled": shuffled(true, others, draw), "other": draw.sample(rest, min(others, len(rest)))}
        found = lm.binders(target, list(dict.fromkeys([true, *sets["shuffled"], *sets["other"]])))
        value = {one.peptide: one.perplexity for one in found.binders}
        perplexities.append(value[true])
        for name, against in sets.items():
            ranks[name].append(1 + sum(value[one] <= value[true] for one in against))
    told: dict[str, object] = {"model": Path(model).name, "targets": len(pairs), "others": others}
    for name, of in ranks.items():
        told[name] = {
            "mean_rank": float(np.mean(of)), "se": float(np.std(of, ddof=1) / len(of) ** 0.5),
            "first": float(np.mean([one == 1 for one in of])), "chance": 1 + others / 2,
        }  # fmt: skip
    told["median_perplexity"] = float(np.median(perplexities))
    print(json.dumps({**told, "seconds": time.perf_counter() - began}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("--data", type=Path, required=True, help="the folder of SAbDab's Parquet files")
    making.add_argument("-o", "--output", type=Path, required=True)
    ranking = commands.add_parser("rank")
    ranking.add_argument("file", type=Path)
    ranking.add_argument("--model", required=True)
    ranking.add_argument("--targets", type=int, default=16)
    ranking.add_argument("--others", type=int, default=5, help="of each kind")
    ranking.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.command == "make":
        make(chosen.data, chosen.output)
    else:
        rank(chosen.file, chosen.model, chosen.targets, chosen.others, chosen.seed)


if __name__ == "__main__":
    main()
