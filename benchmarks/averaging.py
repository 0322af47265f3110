"""Averages of the weights of two models of one shape, as `run.start_share` makes them: a folder for each share.

    git archive 45b9eb7 src/besag/models/small-en | tar -x --transform 's,^src/besag/models/small-en,first,'
    python benchmarks/averaging.py first src/besag/models/small-en --shares 0.5 0.8 0.9 -o averages
    python benchmarks/bits.py valid.txt.xz --models averages/0.5 averages/0.8 averages/0.9 --sentences 150
    besag eval blimp --data blimp --limit 100 --model averages/0.8

A share is that of the second model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import besag
from besag.training.run.averaging import blended


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs=2, help="two folders")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.5])
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()

    first, second = (besag.load(model, device="cpu", dtype="float32") for model in chosen.models)
    for share in chosen.shares:
        with blended(second.model, first.model.state_dict(), 1 - share):
            for part in (second.model, second.tokenizer):
                part.save_pretrained(chosen.output / f"{share:g}")


if __name__ == "__main__":
    main()
