"""Leave-one-out by deletion: the token is taken out, and the text closes over the gap.

    a_i = log-odds p(y | x) − log-odds p(y | x_1 … x_{i−1} x_{i+1} … x_n)

The baseline that Pham et al. (2022) find as good as `marginalise` for text classifiers. What is left is often no
sentence, so that some of the difference is the surprise of the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import Ints
from besag.engine import Engine
from besag.explanation.removal import REMOVALS, Removal, Without


@REMOVALS.register
@dataclass(frozen=True)
class Delete(Removal):
    name = "delete"
    title = "leave one out: nothing in its place"
    formula = "log-odds p(y|x) − log-odds p(y | x_∖i)"
    passes = "n"
    cite = ("pham2022",)

    def without(self, engine: Engine, shown: Ints, places: Ints, targets: Ints) -> Without:
        count = len(places)
        stays = np.arange(len(shown)) != places[:, None]  # (n, L)
        ids = np.repeat(shown[None], count, 0)[stays].reshape(count, len(shown) - 1)
        moved = targets - (targets > places[:, None])  # (n, m)
        return Without(ids, moved, np.arange(count), np.ones(count))
