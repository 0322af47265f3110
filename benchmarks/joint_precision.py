"""How far a bfloat16 encoder moves conditionals and joints, and how far tables in float32 move what is iterated.

    PYTHONPATH=src python3 benchmarks/joint_precision.py [--device cuda]

The embedded model against itself: the same pairs over the same 50 candidates of each place, differences in nats; and
tables of 400 candidates solved in float64 and, as those of whole vocabularies are, in float32.
"""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np
import torch

import besag
from besag.joints import Construction, construction
from besag.places.tokens import Token

PAIRS = [
    ("The man is at the casino.", (2, 3)),
    ("Two young children are playing in the park.", (2, 3)),
    ("He was born in New York in the spring.", (5, 6)),
    ("A woman in a red coat is walking her dog.", (2, 8)),
    ("The keys to the cabinet are here.", (5, 7)),
]
MASKED = [
    "New York is [MASK] than [MASK] Orleans.",
    "The [MASK] [MASK] very tired.",
    "[MASK] [MASK]",
    "He lives in [MASK] [MASK].",
    "He grew up in [MASK] [MASK].",
    "She was born in the United [MASK] of [MASK].",
    "The capital of [MASK] [MASK] is large.",
    "He was elected to the United [MASK] [MASK].",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    device = parser.parse_args().device
    precise, rough = (besag.load(device=device, dtype=dtype, progress=False) for dtype in ("float32", "bfloat16"))
    encoders(precise, rough)
    for name in ("ag", "stationary"):
        tables(precise, construction(name))


def encoders(precise: besag.LanguageModel, rough: besag.LanguageModel) -> None:
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


def tables(lm: besag.LanguageModel, how: Construction) -> None:
    """The largest error of a pair by how likely it is, as a share of itself."""
    device = lm.conditionals.device
    worst, readings, failed = [0.0, 0.0, 0.0], [], 0
    for text in MASKED:
        exact = lm.joint(text, candidates=400).unaries
        numbers = {one.name: getattr(exact, one.name) for one in dataclasses.fields(exact)}
        single = {name: one.to(device, torch.float32) for name, one in numbers.items() if torch.is_tensor(one)}
        unaries = dataclasses.replace(exact, **single)
        found = how.build(unaries)
        readings.append(int(found.details["iterations"]))
        if found.status != "ok":
            failed += 1
            continue
        log_q = how.build(exact).law.cells(exact).cpu()
        off = (found.law.cells(unaries).double().cpu() - log_q).abs().expm1()
        likely, unlikely = log_q.exp() > 1e-3, log_q.exp() <= 1e-4
        for at, which in enumerate((likely, ~likely & ~unlikely, unlikely)):
            worst[at] = max(worst[at], float(off[which].max()))
    print(f"{how.name}, tables in float32 on {device.type}, {len(MASKED)} texts, {failed} not converged")
    print(f"  {min(readings)} to {max(readings)} readings; a pair is off by at most {worst[0]:.2%} of itself")
    print(f"  where it is above 0.1 %, {worst[1]:.2%} above 0.01 %, {worst[2]:.0%} where it is rarer")


if __name__ == "__main__":
    main()
