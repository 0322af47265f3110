"""How often a model prefers the acceptable sentence of a minimal pair, with standard errors.

A pair counts 1 where score(good) > score(bad), ½ where they are equal, 0 otherwise. Over the n_p pairs of paradigm p,

    a_p = (wins + ½ ties) / n_p             se_p = √(a_p (1 − a_p) / n_p)

which is the binomial error (with ties it is a little too large: halves vary less). Over P paradigms, of a phenomenon or
of everything, as they are given and not as a sample of others,

    macro    a = Σ_p a_p / P                se = √(Σ_p se_p²) / P
    micro    a = Σ_p n_p a_p / Σ_p n_p      se = √(Σ_p n_p² se_p²) / Σ_p n_p

Pairs that cannot be scored are counted apart and are in no mean. Knows pairs and scores; refuses to know files, and
what is wrong with a sentence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from besag.arrays import Floats
from besag.checks import checked
from besag.engine import Engine
from besag.errors import BesagError, nearest, quoted, require
from besag.evaluation.asking import Ask, scores_of
from besag.evaluation.pair_files import MinimalPair, read_pairs
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import Presented
from besag.results.status import Status, together
from besag.results.words import counted, dtype_name
from besag.scores import Method
from besag.scores import method as method_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

__all__ = ["Accuracy", "MinimalPair", "MinimalPairs", "minimal_pairs", "read_pairs"]

Per = Literal["paradigm", "phenomenon", "overall", "pair"]
PER: tuple[Per, ...] = ("paradigm", "phenomenon", "overall", "pair")
MACRO, MICRO = "mean over paradigms", "all pairs"  # in words


@runtime_checkable
class HasEngine(Protocol):
    """A language model."""

    engine: Engine


class Accuracy(NamedTuple):
    accuracy: float  # nan where no pair was scored
    se: float
    pairs: int  # scored
    ties: int
    unscored: int
    paradigms: int = 1


@checked
def minimal_pairs(
    model: Engine | HasEngine,
    pairs: Iterable[MinimalPair | tuple[str, str]],
    method: str | Method = "pll",
    *,
    reduction: Literal["sum", "mean"] = "sum",
    **options: Any,
) -> MinimalPairs:
    """Score both sentences of every pair, each distinct sentence once, and compare.

    Args:
        model: a `LanguageModel`.
        pairs: (good, bad) sentences, or what `read_pairs` reads from files.
        method: of scoring.
        reduction: "sum", or "mean" over tokens, for pairs whose sentences differ in length.
        options: of the method.

    Returns:
        `MinimalPairs`: accuracies by paradigm and phenomenon, with standard errors.

    Examples:
        >>> pairs = [("The cats sleep.", "The cats sleeps."), ("She is here.", "She are here.")]
        >>> besag.minimal_pairs(lm, pairs).credit.tolist()
        [1.0, 1.0]
    """
    given = tuple(one if isinstance(one, MinimalPair) else _of_two(one) for one in pairs)
    if not given:
        raise BesagError("there are no pairs to compare: give (good, bad) sentences")
    if reduction not in ("sum", "mean"):
        raise BesagError(f"reduction={reduction!r}: 'sum' or 'mean' over tokens.{nearest(reduction, ['sum', 'mean'])}")
    engine = model if isinstance(model, Engine) else model.engine
    how = method if isinstance(method, Method) else method_named(method, **options)
    value: list[tuple[float, float]] = []
    statuses = []
    for _, scores in scores_of(engine, [_Asked((Ask(one.good), Ask(one.bad))) for one in given], how):
        good, bad = (score.total if reduction == "sum" else score.mean for score in scores)
        value.append((good, bad))
        statuses.append(next((score.status for score in scores if score.status != "ok"), Status.OK))
    both = np.array(value)  # (n, 2)
    return MinimalPairs(
        pairs=given,
        good=both[:, 0],
        bad=both[:, 1],
        statuses=tuple(statuses),
        method=how.name,
        reduction=reduction,
        model=engine.conditionals.name,
        dtype=dtype_name(engine.conditionals.dtype),
    )


class _Asked(NamedTuple):
    asks: tuple[Ask, ...]


def _of_two(pair: Sequence[str]) -> MinimalPair:
    listed = isinstance(pair, Sequence) and not isinstance(pair, str)
    if not listed or len(pair) != 2 or not all(isinstance(one, str) for one in pair):
        raise BesagError(f"{quoted(pair)} is no minimal pair: give (good, bad), two sentences")
    return MinimalPair(*pair)


@dataclass(frozen=True, eq=False, repr=False)
class MinimalPairs(Presented):
    """Every pair with its two scores, and what they say together."""

    pairs: tuple[MinimalPair, ...]
    good: Floats  # (n,) score of the acceptable sentence in nats; nan where it has none
    bad: Floats  # (n,)
    statuses: tuple[Status, ...]  # (n,) "ok", or why a sentence of the pair has no score
    method: str
    reduction: str
    model: str
    dtype: str

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def credit(self) -> Floats:
        """(n,) 1, ½ or 0 for each pair; nan where it was not scored."""
        won = (self.good > self.bad) + 0.5 * (self.good == self.bad)
        return np.where(np.array([one == "ok" for one in self.statuses]), won, np.nan)

    # ---- accuracies

    @cached_property
    def paradigms(self) -> Mapping[tuple[str, str], Accuracy]:
        """(phenomenon, paradigm) → accuracy, in the order of the pairs."""
        return {key: _binomial(self.credit[members]) for key, members in self._members.items()}

    @cached_property
    def phenomena(self) -> Mapping[str, Accuracy]:
        """The mean over the paradigms of each phenomenon."""
        parts: dict[str, list[Accuracy]] = {}
        for (phenomenon, _), found in self.paradigms.items():
            parts.setdefault(phenomenon, []).append(found)
        return {name: _pooled(found, macro=True) for name, found in parts.items()}

    @property
    def macro(self) -> Accuracy:
        """The mean over paradigms."""
        return _pooled(list(self.paradigms.values()), macro=True)

    @property
    def micro(self) -> Accuracy:
        """The mean over pairs."""
        return _pooled(list(self.paradigms.values()), macro=False)

    @property
    def accuracy(self) -> float:
        """The mean over paradigms, as BLiMP's overall figure is."""
        return self.macro.accuracy

    @property
    def unscored(self) -> dict[Status, int]:
        """Status → how many pairs have it."""
        return dict(Counter(one for one in self.statuses if one != "ok"))

    @cached_property
    def _members(self) -> dict[tuple[str, str], list[int]]:
        members: dict[tuple[str, str], list[int]] = {}
        for place, one in enumerate(self.pairs):
            members.setdefault((one.group, one.paradigm), []).append(place)
        return members

    # ---- out of here

    @checked
    def table(self, per: Per = "paradigm") -> list[dict[str, Any]]:
        """One row for each paradigm, phenomenon or pair, or ("overall") the two means."""
        if per not in PER:
            raise BesagError(f"per={per!r}: one of {', '.join(PER)}.{nearest(per, PER)}")
        if per == "pair":
            return [self._pair_row(place) for place in range(len(self))]
        if per == "paradigm":
            return [
                {"phenomenon": phenomenon, "paradigm": paradigm, **_row(found, paradigms=False)}
                for (phenomenon, paradigm), found in self.paradigms.items()
            ]
        named = self.phenomena.items() if per == "phenomenon" else (("paradigms", self.macro), ("pairs", self.micro))
        key = "phenomenon" if per == "phenomenon" else "mean_over"
        return [{key: name, **_row(found)} for name, found in named]

    def _pair_row(self, place: int) -> dict[str, Any]:
        one, good, bad = self.pairs[place], float(self.good[place]), float(self.bad[place])
        return {
            "paradigm": one.paradigm, "pair": one.name, "good": one.good, "bad": one.bad, "good_score": good,
            "bad_score": bad, "difference": good - bad if good != bad else 0.0, "credit": float(self.credit[place]),
            "status": self.statuses[place],
        }  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pairs themselves (`table("pair")`), for JSON."""
        about = {name: getattr(self, name) for name in ("model", "dtype", "method", "reduction", "unit")}
        return dict(json_ready({**self._answers(), **about, **{per: self.table(per) for per in PER[:3]}}))

    @checked
    def to_pandas(self, per: Per = "paradigm") -> DataFrame:
        """`table(per)` as a frame; `frame.attrs` says what was scored and how."""
        return data.frame(self, self.table(per), per=per)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """The accuracy of each paradigm with 95 % intervals (± 1.96 standard errors), sorted within its phenomenon."""
        pyplot = require("matplotlib.pyplot", extra="plot")
        order = sorted(self.paradigms.items(), key=lambda item: (item[0][0], item[1].accuracy), reverse=True)
        if ax is None:
            _, ax = pyplot.subplots(figsize=(7.5, 1.2 + 0.24 * len(order)), layout="constrained")
        colours = {name: f"C{place % 10}" for place, name in enumerate(self.phenomena)}
        for height, ((phenomenon, _), found) in enumerate(order):
            ax.errorbar(
                100 * found.accuracy, height, xerr=196 * found.se, fmt="o", markersize=4, color=colours[phenomenon]
            )
        ax.axvline(50, color="0.6", linewidth=1, linestyle=":")
        ax.axvline(100 * self.accuracy, color="0.3", linewidth=1)
        ax.set_yticks(range(len(order)), [paradigm for (_, paradigm), _ in order], fontsize=7)
        ax.set_xlim(0, 101)
        ax.set_xlabel(f"pairs won (%), {self.method}; the line is the mean over paradigms")
        ax.set_title(self.model)
        return ax

    @property
    def status(self) -> Status:
        return together(self.statuses)

    @property
    def unit(self) -> str:
        return "nats"

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the accuracies, most important first."""
        missing = [f"{counted(n, 'pair')} not scored: {status.sentence}" for status, n in self.unscored.items()]
        ties = self.micro.ties
        return [
            f"{MACRO} {percent(self.macro)} ({self.macro.paradigms})",
            f"{MICRO} {percent(self.micro)} ({self.micro.pairs:,})",
            *([f"{ties:,} ties count half"] if ties else []),
            *missing,
            f"{self.method}, {self.reduction} over tokens",
            self.model,
            self.dtype,
        ]

    def _grids(self) -> list[Grid]:
        rows = [
            Line((name, str(one.paradigms), f"{one.pairs:,}", percent(one)), share=one.accuracy if one.pairs else None)
            for name, one in self.phenomena.items()
        ]
        return [Grid(("phenomenon", "paradigms", "pairs", "accuracy (%)"), rows, left=(0,), bar=3)]


def percent(found: Accuracy) -> str:
    """ "84.2 ± 0.3"."""
    return "–" if math.isnan(found.accuracy) else f"{100 * found.accuracy:.1f} ± {100 * found.se:.1f}"


def _binomial(credit: Floats) -> Accuracy:
    scored = credit[~np.isnan(credit)]
    n, unscored = len(scored), len(credit) - len(scored)
    if not n:
        return Accuracy(math.nan, math.nan, 0, 0, unscored)
    mean = float(scored.mean())
    return Accuracy(mean, math.sqrt(mean * (1 - mean) / n), n, int((scored == 0.5).sum()), unscored)


def _pooled(parts: Sequence[Accuracy], *, macro: bool) -> Accuracy:
    measured = [one for one in parts if one.pairs]
    pairs, ties, unscored = (sum(getattr(one, name) for one in parts) for name in ("pairs", "ties", "unscored"))
    if not measured:
        return Accuracy(math.nan, math.nan, 0, 0, unscored, 0)
    weight = np.array([1 if macro else one.pairs for one in measured], np.float64)
    weight /= weight.sum()
    mean = float(weight @ [one.accuracy for one in measured])
    error = math.sqrt(float(weight**2 @ [one.se**2 for one in measured]))
    return Accuracy(mean, error, pairs, ties, unscored, len(measured))


def _row(found: Accuracy, paradigms: bool = True) -> dict[str, Any]:
    row = found._asdict()
    if not paradigms:
        del row["paradigms"]
    return row
