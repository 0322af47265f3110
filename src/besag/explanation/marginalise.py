"""Input marginalisation (Kim et al. 2020): the token is replaced by what else could stand there, as likely as it could.

    a_i = log-odds p(y | x) − log-odds Σ_v q(v | x_∖i) p(y | x_i ← v)

q is the masked model's own law of the place, over its k likeliest tokens. No blank is ever shown, so that a classifier
sees whole texts only. Pham et al. (2022) hold against it that a token which the rest of the text gives away has q near
1 and so an importance near 0, whatever the prediction makes of it: read it as what this token says *beyond* the
others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from besag.arrays import Ints
from besag.checks import MOST_CANDIDATES, whole_number
from besag.engine import Engine, Plan, Request
from besag.explanation.removal import REMOVALS, Removal, Without, hidden
from besag.joints.candidates import outcome_ids
from besag.reductions import Top


@REMOVALS.register
@dataclass(frozen=True)
class Marginalise(Removal):
    name = "marginalise"
    title = "input marginalisation: what else could stand in its place"
    formula = "log-odds p(y|x) − log-odds Σ_v q(v | x_∖i) p(y | x_i ← v)"
    passes = "n (k + 1)"
    cite = ("kim2020", "pham2022")
    aliases = ("input_marginalisation",)

    candidates: Annotated[int | Literal["all"], "k: replacements of a token, likeliest first"] = 30

    def __post_init__(self) -> None:
        if self.candidates != "all":
            whole_number(self.candidates, "candidates", most=MOST_CANDIDATES)

    def without(self, engine: Engine, shown: Ints, places: Ints, targets: Ints) -> Without:
        allowed = outcome_ids(engine.conditionals, "text")
        width = engine.conditionals.width
        count = len(allowed) if self.candidates == "all" else min(int(self.candidates), len(allowed))
        masked = hidden(engine, shown, places)

        def ask() -> Plan[tuple[np.ndarray, np.ndarray]]:
            top = Top(min(width, count + width - len(allowed)))  # enough, if all that are no text come first
            answers = yield Request((top,), masked, np.arange(len(places)), places)
            return answers["top_ids"], answers["top_log_probs"].astype(np.float64)

        ids, log_probs = next(engine.run([ask()]))
        rank = np.cumsum(np.isin(ids, allowed), 1) * np.isin(ids, allowed)  # (n, K) from 1 on; 0 for what is no text
        keep = (rank > 0) & (rank <= count) & (log_probs > -np.inf)
        which = np.nonzero(keep)[0]  # (R,)
        chances = np.exp(log_probs[keep])
        mass = np.bincount(which, chances, len(places))  # (n,)
        copies = np.repeat(shown[None], len(which), 0)
        copies[np.arange(len(which)), places[which]] = ids[keep]
        weight = chances / mass[which]
        lost = max(0.0, float(np.mean(1 - mass)))
        return Without(copies, np.repeat(targets[None], len(which), 0), which, weight, lost)
