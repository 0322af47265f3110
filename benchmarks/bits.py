"""Bits a character and a byte of held-out text, by `pll`, which is no probability, and `chain`, one given the length.

    python benchmarks/bits.py valid.txt.xz --models src/besag/models/small-en other/model --sentences 500

One sentence of 40 to 200 characters from each document; the same sentences for every model.
"""

from __future__ import annotations

import argparse
import json
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
    for model in chosen.models:
        lm = besag.load(model, dtype=chosen.dtype, device=chosen.device, progress=False)
        told: dict[str, object] = {"text": Path(chosen.text[0]).name, "model": lm.name}
        for method in ("pll", "chain"):
            found = besag.corpus(lm.score(texts, method))
            told |= {"sentences": found.n_texts, "characters": found.n_characters, "bytes": found.n_bytes}
            told[method] = round(found.bits_per_character, 4)
            told[f"{method}_per_byte"] = round(found.bits_per_byte, 4)
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
