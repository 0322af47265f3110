"""Rows of a made-up study, with numbers that a test can know."""

from __future__ import annotations

import numpy as np

from besag.joints.metrics import Metrics
from besag.results.status import Status
from besag.study.pairs import PairRow


def joint(pair_nll: float, unary_nll: float = 1.0, rank: int = 1, **details: object) -> dict:
    numbers = Metrics(pair_nll, unary_nll, 0.1, 0.2, 0.05, 0.3, 0.4, 0.15, 5.0, 0.5, rank)
    return {**numbers._asdict(), "status": Status.OK, **details}


def row(text: int, pairs: str = "random", distance: int = 1, forced: tuple = (False, False), **joints: dict) -> PairRow:
    return PairRow(
        text=text, pairs=pairs, a=1, b=1 + distance, tokens=("a", "b"), length=20, lost=(0.0,) * 4, forced=forced,
        incompatibility=2.0, own_unary_nll=0.9, joints=joints or {"mlm": joint(2.0), "ag": joint(1.5)},
    )  # fmt: skip


def many(count: int = 60, seed: int = 0) -> list[PairRow]:
    """AG gains on the independent MLM, more so at short distances; HCB is no better than it."""
    generator = np.random.default_rng(seed)
    rows = []
    for text in range(1, count + 1):
        distance = int(generator.integers(1, 20))
        base = float(generator.gamma(4.0, 0.7))
        gain = float(generator.normal(1.0 / distance, 0.2))
        joints = {
            "mlm": joint(base, base, 50),
            "ag": joint(base - gain, base - gain, 7, iterations=20),
            "hcb": joint(base + float(generator.normal(0.0, 0.3)), base, 60),
        }
        rows.append(row(text, distance=distance, **joints))
    return rows
