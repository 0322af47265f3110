"""One pass over the shown text, corrected to what pll would say: Σ_i f_i with f_i ≈ log p(x_i | x_∖i).

Salazar et al. (2020) train a network to give a text's pseudo-log-likelihood in one pass, with nothing of it hidden, by
regression on the scores of the network itself. So it is here, token by token, with a frozen network and a linear
regression on what it says (`regression.py`), so that the network stays what it was. `besag distil-scorer` learns it.

The number is an estimate of the PLL, and no probability: a term may even come out above 0. It has no rank and no
entropy, for which a place must be hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.scores.passage import Parts, Passage, ScorePlan
from besag.scores.registry import Method, register, windows
from besag.scores.regression import regression_of


@register
@dataclass(frozen=True)
class Maskless(Method):
    name = "maskless"
    title = "pll estimated in one pass, by a regression that was learned (besag distil-scorer)"
    formula = "Σ_t f_t(x) ≈ Σ_t log p(x_t | x_∖t)"
    passes = "1"
    cite = ("salazar2020",)
    aliases = ("one_pass_pll",)

    @property
    def ranks(self) -> bool:
        return False

    def cost(self, n: int, length: int) -> int:
        return windows(n, length) * (length + min(n, length))  # a masked token for each token of the text

    def plan(self, passage: Passage) -> ScorePlan:
        regression = regression_of(passage.conditionals)
        answers = yield from passage.ask_shown(regression, wish=regression.wish)
        return Parts(answers["regressed"].astype(np.float64))
