"""How far a bfloat16 encoder moves conditionals and joints: the embedded model against itself in float32.

    PYTHONPATH=src python3 benchmarks/joint_precision.py [--device cuda]

The same pairs over the same 50 candidates of each place; differences in nats.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

import besag
from besag.joints import construction
from besag.places.tokens import Token

PAIRS = [
    ("The man is at the casino.", (2, 3)),
    ("Two young children are playing in the park.", (2, 3)),
    ("He was born in New York in the spring.", (5, 6)),
    ("A woman in a red coat is walking her dog.", (2, 8)),
    ("The keys to the cabinet are here.", (5, 7)),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    device = parser.parse_args().device
    precise, rough = (besag.load(device=device, dtype=dtype, progress=False) for dtype in ("float32", "bfloat16"))
    of_tables: list[torch.Tensor] = []
    of_joints: dict[str, list[float]] = {name: [] for name in ("mlm", "order", "ag", "stationary")}
    for text, positions in PAIRS:
        first = precise.joint(text, positions, candidates=50)
        sets = [[Token.of(precise.vocabulary, id) for id in ids] for ids in (first.unaries.ids_a, first.unaries.ids_b)]
        second = rough.joint(text, positions, candidates=sets)
        for table in ("log_a", "log_b"):
            of_tables.append((getattr(first.unaries, table) - getattr(second.unaries, table)).abs().flatten())
        for name, found in of_joints.items():
            values = [joint.by(construction(name)).gold.log_prob for joint in (first, second)]
            found.append(abs(values[0] - values[1]))
    cells = torch.cat(of_tables)
    print(f"{precise!r} against {rough.dtype}, {len(PAIRS)} pairs")
    print(f"log A and log B: mean {cells.mean():.4f}, 99 % below {cells.quantile(0.99):.4f}, at most {cells.max():.4f}")
    for name, found in of_joints.items():
        print(f"log q of the text's own pair, {name}: mean {np.mean(found):.4f}, at most {max(found):.4f}")


if __name__ == "__main__":
    main()
