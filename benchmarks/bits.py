"""Bits a character and a byte of held-out text, by `pll`, which is no probability, and `chain`, one given the length.

    python benchmarks/bits.py valid.txt.xz --models src/besag/models/small-en other/model --sentences 500

One sentence of 40 to 200 characters from each document; the same sentences for every model.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from studies import sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+")
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--device")
    parser.add_argument("--dtype", default="float32")
    chosen = parser.parse_args()

    import besag

    texts = sentences(chosen.text, chosen.sentences)
    characters, size = sum(map(len, texts)), sum(len(text.encode()) for text in texts)
    for model in chosen.models:
        lm = besag.load(model, dtype=chosen.dtype, device=chosen.device, progress=False)
        told: dict[str, object] = {
            "text": Path(chosen.text[0]).name, "model": lm.name, "sentences": len(texts), "characters": characters,
            "bytes": size,
        }  # fmt: skip
        for method in ("pll", "chain"):
            bits = -sum(one.total for one in lm.score(texts, method)) / math.log(2)
            told[method], told[f"{method}_per_byte"] = round(bits / characters, 4), round(bits / size, 4)
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
