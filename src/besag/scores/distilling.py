"""Learning a one-pass scorer from a teacher: the regression of `regression.py`, by least squares in closed form.

    min over w   Σ_texts Σ_i (log p(x_i | x_∖i) − log q_i(x_i) − w · z_i)²  +  λ Σ_k (w_k · size of z_k)²

The teacher's terms come from `pll`, text by text; z from one pass over each text. Only sums over places are kept, so
the texts may be many. λ is chosen on every tenth text, by the same sums, and all learn with it then. A large λ leaves
log q_i(x_i) as it is: what the network says in one pass is where the regression starts from.

Knows texts, terms and sums. Refuses to know files, which are `cli/distil_scorer.py`'s.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np

from besag.arrays import Floats
from besag.conditionals.twins import TWINS
from besag.engine import Engine
from besag.errors import BesagError
from besag.scores.maskless import Maskless
from besag.scores.passage import Parts, Passage, ScorePlan
from besag.scores.registry import Method
from besag.scores.regression import BESIDE, Evidence, Regression, View, fit, view_of, width
from besag.scores.scoring import score
from besag.statistics import spearman

LAMBDAS = tuple(10.0 ** (power / 2) for power in range(17))  # in places: 1 … 10⁸
TINY = 1e-12  # below, a feature is never anything but 0
TUNED_BY = 10  # every tenth text chooses λ
FEWEST = 20  # texts, below which there is nothing to be learned or judged
TIMED, TIMED_TOKENS = 64, 20  # how many texts are timed, of about how many tokens

Terms = Mapping[str, Floats]  # text → (n,) log p(x_i | x_∖i)


@dataclass
class Moments:
    """Sums over places of products of (z, y), from which every least-squares fit and its error follow."""

    width: int
    sums: Floats = field(init=False)  # (F + 1, F + 1)
    places: int = 0

    def __post_init__(self) -> None:
        self.sums = np.zeros((self.width + 1, self.width + 1))

    def add(self, z: Floats, y: Floats) -> None:  # (n, F), (n,)
        rows = np.concatenate([z, y[:, None]], 1, dtype=np.float64)
        self.sums += rows.T @ rows
        self.places += len(rows)

    def __add__(self, other: Moments) -> Moments:
        both = Moments(self.width)
        both.sums, both.places = self.sums + other.sums, self.places + other.places
        return both

    def ridge(self, penalty: float) -> Floats:
        """w (F,) with the least Σ (y − w·z)² + penalty · Σ_k w_k² · (mean of z_k²)."""
        size = np.sqrt(np.maximum(np.diag(self.sums)[:-1] / self.places, TINY))
        squares = self.sums[:-1, :-1] / np.outer(size, size) + penalty * np.eye(self.width)
        return np.asarray(np.linalg.solve(squares, self.sums[:-1, -1] / size) / size)

    def error(self, weight: Floats) -> float:
        """The mean of (y − w·z)² over the places summed here."""
        against = np.append(-weight, 1.0)
        return float(against @ self.sums @ against / self.places)


@dataclass(frozen=True)
class _Gathering(Method):
    """One pass over each text; its z go into the sums of the group its text is in."""

    name = "evidence"
    title = "what a scorer learns from"
    formula = "z"
    passes = "1"
    view: View
    terms: Terms
    groups: Sequence[Moments]
    number: Mapping[str, int]  # of each text

    def cost(self, n: int, length: int) -> int:
        return Maskless().cost(n, length)

    def plan(self, passage: Passage) -> ScorePlan:
        answers = yield from passage.ask_shown(Evidence(), wish=TWINS if self.view == "twins" else "")
        for text, z, said in zip(passage.texts, answers["evidence"], answers["target"], strict=True):
            tunes = self.number[text.text] % TUNED_BY == 0
            self.groups[tunes].add(z, self.terms[text.text] - said)
        return Parts.of(answers)


def teach(engine: Engine, terms: Terms) -> tuple[Regression, float]:
    """The scorer learned from these terms of the engine's own network, and the λ that was chosen."""
    if len(terms) < FEWEST:
        raise BesagError(f"{len(terms)} texts to learn from: give {FEWEST} at least, and better some thousands")
    view, features = view_of(engine.conditionals), width(engine.conditionals) + BESIDE
    learns, tunes = Moments(features), Moments(features)
    gathering = _Gathering(view, terms, (learns, tunes), {text: number for number, text in enumerate(terms)})
    for _ in score(engine, iter(terms), gathering):
        pass
    best = min(LAMBDAS, key=lambda penalty: tunes.error(learns.ridge(penalty)))
    return Regression(view, (learns + tunes).ridge(best), engine.conditionals.name), best


class Figures(NamedTuple):
    """How near a way of scoring comes to pll: Spearman's ρ over texts and over tokens, and the mean error a token."""

    totals: float
    means: float
    tokens: float
    error: float  # mean |f_i − log p(x_i | x_∖i)|


def judge(engine: Engine, terms: Terms) -> dict[str, Figures]:
    """`maskless` (of a network that has its scorer), `unmasked` and length alone, beside pll on held-out texts."""
    if len(terms) < FEWEST:
        raise BesagError(f"{len(terms)} held-out texts to judge by: hold out {FEWEST} at least")
    texts, true = list(terms), list(terms.values())
    ways = {name: [one.log_probs for one in score(engine, texts, name)] for name in ("maskless", "unmasked")}
    average = np.concatenate(true).mean()
    ways["length"] = [np.full(len(one), average) for one in true]
    return {name: _figures(found, true) for name, found in ways.items()}


def _figures(found: Sequence[Floats], true: Sequence[Floats]) -> Figures:
    totals, means = ([np.array([how(one) for one in part]) for part in (found, true)] for how in (np.sum, np.mean))
    flat = np.concatenate(found), np.concatenate(true)
    return Figures(spearman(*totals), spearman(*means), spearman(*flat), float(np.abs(flat[0] - flat[1]).mean()))


class Speed(NamedTuple):
    """Texts a second by pll and by maskless, on the same texts, one after the other."""

    tokens: float  # of a text, on average
    pll: float
    maskless: float

    @property
    def gain(self) -> float:
        return self.maskless / self.pll


def race(engine: Engine, terms: Terms) -> Speed:
    """Time both methods on the texts whose length is nearest to `TIMED_TOKENS`."""
    nearest = sorted(terms, key=lambda text: abs(len(terms[text]) - TIMED_TOKENS))[:TIMED]
    spent = {}
    for method in ("pll", "maskless"):
        score(engine, nearest[:2], method)  # what happens once, happens here
        began = time.perf_counter()
        score(engine, nearest, method)
        spent[method] = time.perf_counter() - began
    tokens = float(np.mean([len(terms[text]) for text in nearest]))
    return Speed(tokens, len(nearest) / spent["pll"], len(nearest) / spent["maskless"])


def held_out(terms: Terms, count: int) -> tuple[Terms, Terms]:
    """The terms without the last `count` texts, and those."""
    first = max(0, len(terms) - count)
    return dict(islice(terms.items(), first)), dict(islice(terms.items(), first, None))


def use(engine: Engine, found: Regression) -> None:
    """From now on, the engine's network is asked with this scorer."""
    fit(engine.conditionals, found)
    engine.conditionals.regression = found  # type: ignore[attr-defined]
