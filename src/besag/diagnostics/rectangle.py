"""The rectangle test: are the model's conditionals at two places those of any joint at all?

For tokens x ≠ x' at a and y ≠ y' at b, both families of conditionals say what the odds ratio of the 2 × 2 minor is:

    ω_A = log A(x|y) − log A(x'|y) − log A(x|y') + log A(x'|y')         A = p(a | b, rest)
    ω_B = log B(y|x) − log B(y'|x) − log B(y|x') + log B(y'|x')         B = p(b | a, rest)

In a positive joint both are log [p(x,y) p(x',y') / p(x',y) p(x,y')], so D = ω_A − ω_B = 0 for every minor, and only
then is there a joint. The size of ω is how strongly the places depend on each other; D is measured against it. A minor
needs four sequences and nothing of the size of the vocabulary squared, so hundreds of them are cheap on any model.

Minors are drawn where it matters: x and x' without replacement from what the model expects at a when both places are
hidden, y and y' likewise at b. So the averages here weigh likely tokens, unlike the score of Arnold and Press, which
counts every cell of the table alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from besag import noise
from besag.arrays import Floats, Ints
from besag.checks import MOST_MINORS, checked, whole_number
from besag.conditionals.contract import Conditionals
from besag.diagnostics import plots, show
from besag.diagnostics.reading import pairs
from besag.engine import Engine, Plan, Request
from besag.errors import BesagError, quoted, require
from besag.joints.candidates import outcome_ids, shown
from besag.noise import Measuring
from besag.places.places import Places
from besag.places.positions import Position
from besag.reductions import Logit, Row
from besag.results import data
from besag.results.grid import Grid
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import counted, dtype_name, unseen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Minors(NamedTuple):
    """The 2 × 2 minors of one pair of places."""

    tokens: Ints  # (M, 4) x, x', y, y'
    log_odds_a: Floats  # (M,) ω_A, nats
    log_odds_b: Floats  # (M,) ω_B


@dataclass(frozen=True, eq=False, repr=False)
class Rectangles(Presented):
    """Minors of one pair of places, or of several pairs of one text with equally many minors each."""

    text: str
    pairs: tuple[tuple[int, int], ...]  # positions, special tokens counted
    minors: tuple[Minors, ...]  # one entry a pair
    names: tuple[str, ...]  # the text's tokens
    words: dict[int, str]  # id → token, of all that were drawn
    seed: int
    model: str
    dtype: str
    unknown: int = 0  # tokens around the places that the tokenizer does not know

    @cached_property
    def log_odds_a(self) -> Floats:
        """(M,) over all pairs."""
        return np.concatenate([one.log_odds_a for one in self.minors])

    @cached_property
    def log_odds_b(self) -> Floats:
        return np.concatenate([one.log_odds_b for one in self.minors])

    @cached_property
    def deviations(self) -> Floats:
        """(M,) D = ω_A − ω_B: all 0 where there is a joint."""
        return self.log_odds_a - self.log_odds_b

    @property
    def mean(self) -> float:
        """The mean of |D|, in nats."""
        return float(np.abs(self.deviations).mean())

    @property
    def standard_error(self) -> float:
        """Of the mean of |D| over the minors that could be drawn at these places; nan for one minor a pair."""
        return self._error(np.abs(self.deviations))

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.square(self.deviations).mean()))

    @property
    def quantiles(self) -> dict[float, float]:
        """Of |D|."""
        return dict(zip(QUANTILES, np.quantile(np.abs(self.deviations), QUANTILES).tolist(), strict=True))

    @property
    def dependence(self) -> float:
        """The mean of ½ (|ω_A| + |ω_B|): how strongly the places depend on each other, in nats."""
        return float(self._strengths.mean())

    @property
    def dependence_error(self) -> float:
        return self._error(self._strengths)

    @property
    def _strengths(self) -> Floats:
        strengths: Floats = (np.abs(self.log_odds_a) + np.abs(self.log_odds_b)) / 2
        return strengths

    @property
    def correlation(self) -> float:
        """Between ω_A and ω_B; 1 where there is a joint, nan where one of them does not vary."""
        a, b = self.log_odds_a - self.log_odds_a.mean(), self.log_odds_b - self.log_odds_b.mean()
        size = float(np.sqrt(np.dot(a, a) * np.dot(b, b)))
        return float(np.dot(a, b)) / size if size > 0 else float("nan")

    def _error(self, values: Floats) -> float:
        """Of a mean: pairs are given, minors within a pair are drawn."""
        per_pair = values.reshape(len(self.pairs), -1)  # (P, M / P)
        if per_pair.shape[1] < 2:
            return float("nan")
        return float(np.sqrt((per_pair.var(1, ddof=1) / per_pair.shape[1]).sum()) / len(self.pairs))

    # ---- what it is

    @property
    def status(self) -> Status:
        return Status.OK  # conditionals without minors are refused

    @property
    def unit(self) -> str:
        return "nats"

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        minors = counted(len(self.deviations), "2 × 2 minor")
        return [*unseen(self.unknown), minors, f"nats, seed {self.seed}", self.model, self.dtype]

    # ---- out of here

    def to_dict(self) -> dict[str, Any]:
        """For JSON: what the minors say together."""
        return show.rectangles_dict(self)

    def to_pandas(self) -> DataFrame:
        """One row a minor."""
        pandas = require("pandas", extra="eval")
        sizes = [len(one.tokens) for one in self.minors]
        tokens = np.concatenate([one.tokens for one in self.minors])  # (M, 4)
        named = {
            name: pandas.Series([self.words[id] for id in tokens[:, side].tolist()], dtype=object)
            for side, name in enumerate(("x", "x'", "y", "y'"))
        }
        places = np.repeat(np.array(self.pairs), sizes, axis=0)
        odds = {"log_odds_a": self.log_odds_a, "log_odds_b": self.log_odds_b, "deviation": self.deviations}
        return data.frame(self, {"a": places[:, 0], "b": places[:, 1], **named, **odds})

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """ω_B against ω_A, a point a minor: on the diagonal where there is a joint."""
        return plots.rectangles(self, ax)

    def _title(self) -> list[str]:
        return [quoted(self.text), show.rectangles_where(self)]

    def _grids(self) -> list[Grid]:
        return [show.rectangles_grid(self)]


@checked
def rectangles(
    engine: Engine,
    text: str,
    positions: Sequence[Position] | None = None,
    *,
    minors: int = 100,
    seed: int = 0,
    outcomes: Literal["text", "all"] = "text",
) -> Rectangles:
    """The test at two places of a text: those given, its two masks, or else every two neighbours in it.

    `minors` are drawn at each pair of places, each of them 4 sequences (fewer where minors share tokens).
    """
    whole_number(minors, "minors", right="the test needs at least 1", most=MOST_MINORS)
    conditionals = engine.conditionals
    where = pairs(conditionals, text, positions)
    found = tuple(engine.run(plan(conditionals, one, minors=minors, seed=seed, outcomes=outcomes) for one in where))
    ids = np.unique(np.concatenate([one.tokens.ravel() for one in found])).tolist()
    encoded = where[0].encoded
    return Rectangles(
        text=encoded.text,
        pairs=tuple((one.positions[0], one.positions[1]) for one in where),
        minors=found,
        names=encoded.tokens,
        words={id: conditionals.vocabulary.token(id) for id in ids},
        seed=seed,
        model=conditionals.name,
        dtype=dtype_name(conditionals.dtype),
        unknown=where[0].unknown if positions is not None else encoded.unknown,
    )


def plan(
    conditionals: Conditionals, places: Places, *, minors: int, seed: int, outcomes: Literal["text", "all"]
) -> Plan[Minors]:
    """Hide both places and draw; then show each drawn token and ask what the other place says of the drawn ones."""
    answers = yield Request((Row(),), shown(conditionals, places), np.zeros(2, np.int64), np.array(places.at))
    allowed = outcome_ids(conditionals, outcomes)
    a, b = places.positions
    which = (a << 16) + b, np.arange(minors)
    drawn = []
    for side, log_probs in enumerate(answers["row"].astype(np.float64)):
        numbers = (noise.uniform(seed, Measuring.MINORS, *which, 2 * side + turn) for turn in range(2))  # (M,) each
        drawn.append(allowed[np.stack(two_of(log_probs[allowed], *numbers))])  # (2, M)

    # a is asked of x and x' given each of y and y', then b of y and y' given each of x and x'
    sequences = np.concatenate([shown(conditionals, places, 1 - asked, drawn[1 - asked].ravel()) for asked in (0, 1)])
    wanted = np.concatenate([np.tile(drawn[asked].T, (2, 1)) for asked in (0, 1)])  # (4M, 2)
    place = np.repeat(places.at, 2 * minors)
    answers = yield Request((Logit(),), sequences, np.arange(4 * minors), place, wanted)
    logit = answers["logit"].astype(np.float64).reshape(2, 2, minors, 2)  # asked, shown, minor, wanted
    if not np.isfinite(logit).all():
        raise BesagError("the rectangle test needs positive conditionals, and one here is 0")
    odds = np.diff(np.diff(logit, axis=3), axis=1)[:, 0, :, 0]  # (2, M)
    return Minors(np.concatenate(drawn).T, odds[0], odds[1])


def two_of(log_probs: Floats, first: Floats, second: Floats) -> tuple[Ints, Ints]:
    """Two different outcomes for each pair of numbers in (0, 1), the second as if the first did not exist."""
    if np.isfinite(log_probs).sum() < 2:
        raise BesagError("the rectangle test needs two tokens that can stand at each place, and here only one can")
    probs = np.exp(log_probs - log_probs.max())
    one = _inverse(probs, first)
    two = np.empty_like(one)
    for chosen in np.unique(one):  # the rest is summed anew: 1 − p would be 0 where p is nearly 1
        rest = np.exp(log_probs - np.delete(log_probs, chosen).max())
        rest[chosen] = 0.0
        two[one == chosen] = _inverse(rest, second[one == chosen])
    return one, two


def _inverse(weights: Floats, uniform: Floats) -> Ints:
    cumulated = np.cumsum(weights)
    return np.asarray(np.searchsorted(cumulated, uniform * cumulated[-1], side="right"), np.int64)
