"""Leave-one-out by the mask: the token is hidden, and nothing takes its place.

    a_i = log-odds p(y | x) − log-odds p(y | x with [MASK] at i)

A masked language model knows what a mask means: on conditionals of one joint law p(y | x with [MASK] at i) is p(y)
given the other tokens, the same number as `marginalise` by one pass instead of k. A classifier knows it only if it was
trained on masked texts (Madsen et al. 2024, `tuning.masked` of a head's recipe); to any other a mask is a token it has
never seen, and the difference is partly its surprise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import Ints
from besag.engine import Engine
from besag.explanation.removal import REMOVALS, Removal, Without, hidden


@REMOVALS.register
@dataclass(frozen=True)
class Mask(Removal):
    name = "mask"
    title = "leave one out: the mask in its place"
    formula = "log-odds p(y|x) − log-odds p(y | x_∖i, [MASK])"
    passes = "n"
    cite = ("madsen2024",)
    aliases = ("leave_one_out",)

    def without(self, engine: Engine, shown: Ints, places: Ints, targets: Ints) -> Without:
        count = len(places)
        copies = np.repeat(targets[None], count, 0)
        return Without(hidden(engine, shown, places), copies, np.arange(count), np.ones(count))
