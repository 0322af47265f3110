"""Averages of the weights of two models of one shape: folders to score, one for each share of the second.

    git show 45b9eb7:src/besag/models/small-en/model.int8.safetensors > first.safetensors
    python benchmarks/averaging.py first.safetensors src/besag/models/small-en --shares 0.5 0.8 0.9 -o averages
    python benchmarks/bits.py valid.txt.xz --models averages/0.5 averages/0.8 averages/0.9 --sentences 150
    besag eval blimp --data blimp --limit 100 --model averages/0.8

Matrices in eight bits are restored first, and averages are written in float32.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from safetensors.torch import load_file, save_file

from besag.conditionals.eight_bits import unpack

STORED = "model.int8.safetensors"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path, help="weights in eight bits, a file")
    parser.add_argument("second", type=Path, help="a folder; tokenizer and configuration are taken from it")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.5])
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()

    first, second = (unpack(load_file(file), file.name) for file in (chosen.first, chosen.second / STORED))
    config = json.loads((chosen.second / "config.json").read_text(encoding="utf-8"))
    del config["besag_weights"]
    for share in chosen.shares:
        folder = chosen.output / f"{share:g}"
        shutil.copytree(chosen.second, folder, ignore=shutil.ignore_patterns(STORED, "scorer*"))
        (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
        mixed = {name: first[name].float().lerp(weight.float(), share) for name, weight in second.items()}
        save_file(mixed, folder / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
