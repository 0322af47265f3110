"""Bits a character of held-out text: by `pll`, which is no probability, and by `chain`, which is one given the length.

    python benchmarks/bits.py valid.txt.xz --models src/besag/models/small-en other/model --sentences 500

One sentence of 40 to 200 characters from each document; the same sentences for every model.
"""

from __future__ import annotations

import argparse
import json
import math

from studies import sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+")
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--sentences", type=int, default=500)
    chosen = parser.parse_args()

    import besag

    texts = sentences(chosen.text, chosen.sentences)
    characters = sum(map(len, texts))
    for model in chosen.models:
        lm = besag.load(model, dtype="float32", progress=False)
        told: dict[str, object] = {"model": model, "sentences": len(texts), "characters": characters}
        for method in ("pll", "chain"):
            scores = lm.score(texts, method)
            told[method] = round(-sum(one.total for one in scores) / characters / math.log(2), 4)
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
