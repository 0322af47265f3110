"""Matching: of two lists of sequences, which one of the second goes with each of the first?

    E_ij = −score(a_i ∥ b_j),        P = Sinkhorn(E / τ),        π = argmin Σ_i E_iπ(i)

After DiffPALM (Lupo, Sgarbossa and Bitbol 2024): the masked loss of two sequences as one falls where they belong
together, and a soft permutation is found by it. DiffPALM shows all pairs to a network at once, so that its loss is no
sum over pairs and is followed downhill by gradients; here a network sees one pair at a time, the loss of a permutation
is a sum, and both the soft and the best permutation are found as they are. What a sequence scores by itself cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from besag import noise
from besag.arrays import Floats
from besag.checks import checked, number
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.matching.permutations import MOST_STEPS, TOLERANCE, assignment, sinkhorn
from besag.noise import Measuring
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.plots import bars
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import counted, dtype_name, percent
from besag.results.words import number as written
from besag.scores.registry import Method
from besag.scores.registry import method as scoring
from besag.scores.scoring import score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


class Pair(NamedTuple):
    group: str
    first: str
    second: str
    prob: float  # of this pair in the soft permutation
    margin: float  # how much the energy rises if this pair may not be; inf where there is no other


@dataclass(frozen=True, eq=False, repr=False)
class Matching(Presented):
    """One partner for each sequence of the first list, within its group."""

    pairs: tuple[Pair, ...]  # in the order of the first list
    partner: tuple[int, ...]  # (n,) the number of its partner in the second list
    groups: int
    method: str
    temperature: float
    seed: int
    residual: float  # of Sinkhorn's scaling
    model: str
    dtype: str

    @property
    def chance(self) -> float:
        """The mean accuracy of random permutations within groups: one pair of each group is right."""
        return self.groups / len(self.pairs)

    @property
    def accuracy(self) -> float:
        """The share of pairs that stood side by side: means something only where the lists were given in true order."""
        return float(np.mean([own == place for place, own in enumerate(self.partner)]))

    @property
    def status(self) -> Status:
        return Status.OK if self.residual < TOLERANCE else Status.NOT_CONVERGED

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        late = f"NOT CONVERGED: residual {self.residual:.2g} after {MOST_STEPS:,} steps, {TOLERANCE:g} wanted"
        return [
            *([] if self.status.fine else [late]),
            f"{counted(len(self.pairs), 'pair')} in {counted(self.groups, 'group')}, by the least energy in all",
            f"energies are −{self.method} of the two as one, in nats; probabilities by Sinkhorn at temperature "
            f"{self.temperature:g}",
            f"{percent(self.accuracy)} stood side by side as given, by chance {percent(self.chance)}",
            f"seed {self.seed} among equals",
            self.model,
            self.dtype,
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        names = ("pairs", "partner", "accuracy", "chance", "groups", "method", "temperature", "seed", "residual",
                 "model", "dtype")  # fmt: skip
        return dict(json_ready({**self._answers(), **{name: getattr(self, name) for name in names}}))

    def to_pandas(self) -> DataFrame:
        """One row a pair."""
        return data.frame(self, self.pairs, Pair._fields, accuracy=self.accuracy, chance=self.chance)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """How sure each pair is."""
        labels = [f"{one.first} – {one.second}" for one in self.pairs]
        return bars(ax, labels, [one.prob for one in self.pairs], "probability of the pair", self.facts)

    def _grids(self) -> list[Grid]:
        lines = [
            Line((one.group, one.first, one.second, percent(one.prob), written(one.margin)), share=one.prob)
            for one in self.pairs
        ]
        return [Grid(("group", "first", "second", "prob", "margin"), lines, left=(0, 1, 2), bar=3)]


@checked
def match(
    engine: Engine,
    first: Sequence[str],
    second: Sequence[str],
    groups: Sequence[str] | None = None,
    *,
    separator: str = " ",
    method: str = "pll",
    temperature: float = 1.0,
    seed: int = 0,
    **options: object,
) -> Matching:
    """Partners for sequences; `options` are those of the scoring method.

    Equals are told apart by the seed and not by their order: a model that knows nothing must not find that partners
    were given side by side.
    """
    number(temperature, "temperature", least=1e-6)
    how = scoring(method, **options)
    if len(first) != len(second) or not first:
        raise BesagError(f"{len(first)} sequences and {len(second)} others: give as many of each, and at least one")
    given = ["" for _ in first] if groups is None else list(groups)
    if len(given) != len(first):
        raise BesagError(f"{len(given)} groups for {len(first)} pairs of sequences: give one for each")
    pairs: list[Pair | None] = [None] * len(first)
    partner, worst, names = np.empty(len(first), np.int64), 0.0, list(dict.fromkeys(given))
    for turn, name in enumerate(names):
        own = [place for place, group in enumerate(given) if group == name]
        energies = _energies(engine, [first[i] for i in own], [second[i] for i in own], separator, how)
        soft, residual = sinkhorn(energies, temperature)
        order = np.argsort(noise.uniform(seed, Measuring.ORDER, turn, np.arange(len(own))), kind="stable")
        hard = order[assignment(energies[:, order])]
        worst = max(worst, residual)
        for row, column in enumerate(hard.tolist()):
            partner[own[row]] = own[column]
            margin = _margin(energies, row, column)
            pairs[own[row]] = Pair(name, first[own[row]], second[own[column]], float(soft[row, column]), margin)
    found = [one for one in pairs if one is not None]
    conditionals = engine.conditionals
    return Matching(
        tuple(found), tuple(partner.tolist()), len(names), how.label, temperature, seed, worst, conditionals.name,
        dtype_name(conditionals.dtype),
    )  # fmt: skip


def _energies(engine: Engine, first: list[str], second: list[str], separator: str, how: Method) -> Floats:
    """(n, n) of each with each: all of them run together."""
    texts = [f"{one}{separator}{other}" for one in first for other in second]
    totals = []
    for text, found in zip(texts, score(engine, texts, how), strict=True):
        if found.status != "ok" or not np.isfinite(found.total):
            raise BesagError(f"the pair {quoted(text)} cannot be scored: {found.status.sentence}")
        totals.append(-found.total)
    return np.array(totals).reshape(len(first), len(second))


def _margin(energies: Floats, row: int, column: int) -> float:
    """What the best permutation without this pair costs more than the best of all."""
    if len(energies) == 1:
        return float("inf")
    barred = energies.copy()
    barred[row, column] = np.abs(energies).sum() + 1  # dearer than any permutation
    rows = np.arange(len(energies))
    return float(energies[rows, assignment(barred)].sum() - energies[rows, assignment(energies)].sum())
