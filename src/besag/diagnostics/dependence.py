"""How much every two places of a text say about each other: mutual information given the rest.

    I(a; b) = Σ_{x,y} q(x, y) log q(x, y) / (q(x) q(y))

q is a joint of the two places on their likeliest tokens, by default Arnold-Gokhale's with contexts weighted by how
likely they are (uniform weights would measure the dependence of tokens that never occur). All n (n − 1)/2 pairs run
together, of the whole text or of places that somebody names. Not to be confused with causal influence, syntax or
attention: two places that are both certain given the rest have none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from besag.checks import MOST_CANDIDATES, checked, whole_number
from besag.conditionals.contract import Conditionals
from besag.diagnostics import plots, show
from besag.diagnostics.reading import askable
from besag.engine import Engine, Plan
from besag.errors import BesagError, TooLong, quoted
from besag.joints import asking, metrics
from besag.joints.candidates import THROUGH
from besag.joints.registry import Construction, construction
from besag.places.places import find, of_tokens
from besag.places.positions import Position
from besag.places.reading import read
from besag.results import data
from besag.results.grid import Grid
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import dtype_name
from besag.vocabulary import Encoded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

MOST_TOKENS = {"cpu": 5_000_000, "mps": 50_000_000, "cuda": 1_000_000_000}  # through the network: minutes


class Dependence(NamedTuple):
    a: int  # positions, special tokens counted
    b: int
    token_a: str
    token_b: str
    mutual_information: float  # nats


class Cost(NamedTuple):
    """What a map takes, at most."""

    pairs: int
    sequences: int
    tokens: int


@dataclass(frozen=True, eq=False, repr=False)
class DependenceMap(Presented):
    text: str
    tokens: tuple[str, ...]  # (n,) as the tokenizer writes them
    positions: tuple[int, ...]  # (n,) special tokens counted
    offsets: NDArray[np.int64]  # (n, 2) characters of the text
    matrix: NDArray[np.float64]  # (n, n) nats, symmetric; nan on the diagonal and beyond the largest distance
    method: str
    candidates: int
    max_distance: int | None
    lost: float  # mass outside the candidates when both places are hidden, averaged over pairs and places
    details: Mapping[str, int]  # joints, and how many of them are unfinished
    model: str
    dtype: str
    unknown: int = 0  # tokens of the text that the tokenizer does not know
    among: int | None = None  # tokens of the text that could be asked, where only some of them were

    @property
    def pairs(self) -> int:
        return int(np.isfinite(self.matrix).sum()) // 2

    @property
    def status(self) -> Status:
        return Status.NOT_CONVERGED if self.details["unfinished"] else Status.OK

    @property
    def unit(self) -> str:
        return "nats"

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        return show.dependence_facts(self)

    @checked
    def top(self, n: int = 10) -> list[Dependence]:
        """The n pairs that depend most on each other, strongest first."""
        rows, columns = np.nonzero(np.isfinite(self.matrix) & np.tri(len(self.tokens), k=-1, dtype=bool).T)
        strongest = np.argsort(-self.matrix[rows, columns], kind="stable")[:n]
        return [self._pair(int(rows[i]), int(columns[i])) for i in strongest]

    def _pair(self, i: int, j: int) -> Dependence:
        where, named = self.positions, self.tokens
        return Dependence(where[i], where[j], named[i], named[j], float(self.matrix[i, j]))

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON; pairs that were not asked are None."""
        return show.dependence_dict(self)

    def to_pandas(self) -> DataFrame:
        """One row a pair, in the order of the text."""
        pairs = sorted(self.top(self.pairs), key=lambda pair: pair[:2])
        return data.frame(self, pairs, Dependence._fields, candidates=self.candidates, lost=self.lost)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """A heatmap over the tokens."""
        return plots.dependence(self, ax)

    def _title(self) -> list[str]:
        return [quoted(self.text)]

    def _grids(self) -> list[Grid]:
        return [show.dependence_grid(self)]


@checked
def dependence(
    engine: Engine,
    text: str,
    *,
    candidates: int = 20,
    method: str = "ag",
    max_distance: int | None = None,
    outcomes: Literal["text", "all"] = "text",
    positions: Sequence[Position] | None = None,
    **options: object,
) -> DependenceMap:
    """Mutual information between every two places of a text, or of `positions` alone; at most `max_distance` apart.

    `options` are those of the construction `method`; "ag" weighs contexts by their probability unless told otherwise.
    """
    conditionals = engine.conditionals
    if method == "ag":
        options.setdefault("weights", "marginal")
    how = construction(method, **options)
    encoded = read(conditionals.vocabulary, text)
    every, places = _places(conditionals, text, encoded, positions)
    cost(conditionals, text, candidates=candidates, max_distance=max_distance, positions=positions)
    asked = list(_pairs(conditionals, encoded, places, max_distance))
    if not asked:
        raise BesagError(f"positions={quoted(positions)}: no two of them are at most {max_distance} apart")
    plans = (_plan(conditionals, encoded, (places[i], places[j]), how, candidates, outcomes) for i, j in asked)
    found = list(engine.run(plans))
    matrix = np.full((len(places), len(places)), np.nan)
    for (i, j), one in zip(asked, found, strict=True):
        matrix[i, j] = matrix[j, i] = one.information
    unfinished = sum(not one.finished for one in found)
    return DependenceMap(
        text=encoded.text,
        tokens=tuple(encoded.tokens[place] for place in places),
        positions=tuple(places),
        offsets=encoded.offsets[places],
        matrix=matrix,
        method=how.label,
        candidates=candidates,
        max_distance=max_distance,
        lost=float(np.mean([one.lost for one in found])),
        details={"joints": len(found), "unfinished": unfinished},
        unknown=encoded.unknown,
        among=None if positions is None else len(every),
        model=conditionals.name,
        dtype=dtype_name(conditionals.dtype),
    )


def cost(
    conditionals: Conditionals, text: str, *, candidates: int = 20, max_distance: int | None = None,
    positions: Sequence[Position] | None = None,
) -> Cost:  # fmt: skip
    """What a map of this text takes, before anything runs; one that would take very long is refused."""
    right = "a dependence needs at least 2 tokens of each place"
    whole_number(candidates, "candidates", 2, right=right, most=MOST_CANDIDATES)
    encoded = read(conditionals.vocabulary, text)
    _, places = _places(conditionals, text, encoded, positions)
    whole = _cost(conditionals, encoded, places, candidates, max_distance)
    most = MOST_TOKENS[conditionals.device.type]
    if whole.tokens > most:
        one = max(1, _cost(conditionals, encoded, places, candidates, 1).tokens)
        raise BesagError(
            f"{quoted(encoded.text)} has {whole.pairs:,} pairs of places, which would run {whole.sequences:,} "
            f"sequences ({whole.tokens:,} tokens; {most:,} is the most on {conditionals.device.type}): say "
            f"max_distance={max(1, most // one)} (--max-distance) for near pairs only, or fewer candidates."
        )
    return whole


class _Found(NamedTuple):
    information: float
    lost: float
    finished: bool


def _plan(
    conditionals: Conditionals,
    encoded: Encoded,
    pair: tuple[int, int],
    how: Construction,
    candidates: int,
    outcomes: Literal["text", "all"],
) -> Plan[_Found]:
    places = of_tokens(conditionals.vocabulary, encoded, pair, conditionals.max_length)
    unaries = yield from asking.plan(conditionals, places, outcomes=outcomes, candidates=candidates)
    built = how.build(unaries)
    information = metrics.measure(unaries, built).mutual_information
    return _Found(information, (unaries.lost.hidden_a + unaries.lost.hidden_b) / 2, built.status == "ok")


def _places(
    conditionals: Conditionals, text: str, encoded: Encoded, positions: Sequence[Position] | None
) -> tuple[list[int], list[int]]:
    """All positions of a text that can be asked, and those of them that are."""
    every = askable(conditionals.vocabulary, encoded)
    if positions is None:
        return every, every
    named = sorted(find(conditionals.vocabulary, text, positions, needs_context=False).positions)
    if len(named) < 2 or not {*named} <= {*every}:
        raise BesagError(f"positions={quoted(positions)}: name two tokens of the text, or more")
    return every, named


def _pairs(
    conditionals: Conditionals, encoded: Encoded, places: list[int], max_distance: int | None
) -> Iterator[tuple[int, int]]:
    """Indices of places that are asked together: near enough for the user, and for the model to see both."""
    if max_distance is not None:
        whole_number(max_distance, "max_distance", right="places are at least 1 token apart.")
    limit, span = conditionals.max_length, places[-1] - places[0]
    reach = span if max_distance is None else min(max_distance, span)
    sees = span if limit is None else limit - int(encoded.special.sum()) - 1
    if reach > sees:
        raise TooLong(
            f"{quoted(encoded.text)} has {len(places)} tokens, and {conditionals.name!r} sees places at most {sees} "
            f"apart: say max_distance={sees} or less (--max-distance)."
        )
    return ((i, j) for j, b in enumerate(places) for i, a in enumerate(places[:j]) if b - a <= reach)


def _cost(
    conditionals: Conditionals, encoded: Encoded, places: list[int], candidates: int, max_distance: int | None
) -> Cost:
    pairs = sum(1 for _ in _pairs(conditionals, encoded, places, max_distance))
    sequences = pairs * (1 + 2 * THROUGH + 2 * candidates)
    length = min(len(encoded.ids), conditionals.max_length or len(encoded.ids))
    return Cost(pairs, sequences, sequences * length)
