"""The joint of k places of a text over candidate sets: a law of k-tuples of tokens, with what says what it is.

    p(x_1 … x_k) = p(these k places | the rest of the text),   x_i in C_i

Knows tokens, marginals, conditionals and draws. Refuses to know how p is found (`block_ag.py`, `block_loglinear.py`)
and what is asked for it (`block_asking.py`). All Π|C_i| numbers are held; that is what limits k and the sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from besag import noise
from besag.arrays import Ints
from besag.checks import checked, whole_number
from besag.engine import Engine
from besag.errors import BesagError, nearest, quoted
from besag.joints import block_show
from besag.joints.block_ag import Mixture
from besag.joints.block_asking import ask
from besag.joints.block_loglinear import Effects
from besag.joints.candidates import Candidates, Kind
from besag.joints.fillings import MOST_ROWS, filled_text, one_each, plot_fillings
from besag.places.filling import Filling
from besag.places.places import Places
from besag.places.tokens import Token, token_id
from besag.registry import refuse_unknown
from besag.results.grid import Grid
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import dtype_name
from besag.vocabulary import Vocabulary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


BLOCK_METHODS: Mapping[str, type[Mixture] | type[Effects]] = {"ag": Mixture, "loglinear": Effects}
BLOCK_OPTIONS: Mapping[str, tuple[str, ...]] = {"ag": ("tolerance", "limit"), "loglinear": ()}


class Outside(NamedTuple):
    """Probability mass outside the candidate sets, before renormalisation, one number a place."""

    hidden: tuple[float, ...]  # with all places hidden
    given: tuple[float, ...]  # given the other places, averaged over the joint


def block_joint(
    engine: Engine,
    places: Places,
    method: str = "ag",
    *,
    outcomes: Kind = "text",
    candidates: Candidates | Literal["auto"] = "auto",
    **options: Any,
) -> BlockJoint:
    """The joint of two or more places of a text, by one of BLOCK_METHODS.

    `candidates` is how many of the likeliest tokens of each place may stand there, "all", or a list of words for each
    place; "auto" takes as many as can be asked in some seconds. The text's own tokens are among the likeliest, and
    among words only if they are given.
    Options of "ag": `tolerance` is on the residual (1e-9), and `limit` says how many steps may be taken to reach it.
    """
    refuse_unknown(f"the joint of {len(places.at)} places by {method!r}", BLOCK_OPTIONS[method], options)
    if len(places.at) < 2:
        raise BesagError(f"a joint needs two places or more, and here is one: {places.title}. fill() answers for one")
    how = BLOCK_METHODS[method](**options)
    asked = ask(engine, places, how.add, outcomes=outcomes, candidates=candidates)
    solved = how.solve()
    log_p, model = solved.log_p.cpu().numpy(), engine.conditionals
    given = [  # Σ p(x_−i)·(1 − mass of C_i given x_−i)
        float((np.exp(np.logaddexp.reduce(log_p, i)) * -np.expm1(held.clamp_max(0.0).cpu().numpy())).sum())
        for i, held in enumerate(asked.log_held)
    ]
    return BlockJoint(
        places=places,
        ids=asked.ids,
        log_probs=log_p,
        forced=asked.forced,
        lost=Outside(tuple((1 - asked.hidden).tolist()), tuple(given)),
        status=solved.status,
        details={**solved.details, "sequences": sum(len(held.flatten()) for held in asked.log_held)},
        vocabulary=model.vocabulary,
        model=model.name,
        dtype=dtype_name(model.dtype),
        method=method,
    )


@dataclass(frozen=True, eq=False, repr=False)
class BlockJoint(Presented):
    """p over C_1 × … × C_k, in nats. Places are numbered from 0, in the order in which they were named.

    A token may be named as the tokenizer writes it ("▁man"), as a word ("man": the token it would be at that place), or
    by its id. Where `status` is not "ok" the iteration did not finish, and says why.
    """

    places: Places
    ids: tuple[Ints, ...]  # the candidates of each place
    log_probs: NDArray[np.float64]  # (|C_1|, …, |C_k|) log p
    forced: tuple[bool, ...]  # was the text's own token added to the candidates?
    lost: Outside
    status: Status
    details: Mapping[str, float | int]  # iterations, residual, objective, misfit, sequences
    vocabulary: Vocabulary
    model: str
    dtype: str
    method: str = "ag"

    @cached_property
    def normalised(self) -> str:
        """Of what p is a probability."""
        return block_show.extent(self)

    @property
    def unit(self) -> str:
        return "nats"

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        return block_show.facts(self)

    def __len__(self) -> int:
        return len(self.ids)

    # ---- the numbers

    @checked
    def log_prob(self, *tokens: str | int) -> float:
        """log p of one token for each place."""
        return float(self.log_probs[self._indices(tokens)])

    @cached_property
    def marginals(self) -> tuple[NDArray[np.float64], ...]:
        """log p of each place alone, (|C_i|,), in the order of `ids`."""
        places = range(len(self))
        return tuple(_sum_out(self.log_probs, [j for j in places if j != i]) for i in places)

    @checked
    def conditional(self, place: int, shown: Mapping[int, str | int]) -> NDArray[np.float64]:
        """log p of a place given tokens at some of the others, (|C_place|,); what is not shown is summed out."""
        for number in (place, *shown):
            if number not in range(len(self)):
                raise BesagError(f"there is no place {number!r}: they are numbered 0 to {len(self) - 1}")
        if place in shown:
            raise BesagError(f"place {place} cannot be both asked and shown")
        index = tuple(self._index(i, shown[i]) if i in shown else slice(None) for i in range(len(self)))
        left = [i for i in range(len(self)) if i not in shown]
        log_p = _sum_out(self.log_probs[index], [axis for axis, i in enumerate(left) if i != place])
        total = np.logaddexp.reduce(log_p)
        if np.isneginf(total):
            raise BesagError(f"{dict(shown)!r} has probability 0, so nothing can be conditioned on it")
        return np.asarray(log_p - total)

    @checked
    def top(self, n: int = 10) -> list[Filling]:
        """The n likeliest fillings, likeliest first."""
        flat, n = self.log_probs.ravel(), min(whole_number(n, "n", most=MOST_ROWS), self.log_probs.size)
        best = np.argpartition(-flat, n - 1)[:n]
        best = best[np.lexsort((best, -flat[best]))]
        return [self._filling(index) for index in zip(*np.unravel_index(best, self.log_probs.shape), strict=True)]

    @checked
    def sample(self, n: int, seed: int = 0) -> list[tuple[Token, ...]]:
        """n independent fillings: draw i is the same however many are drawn."""
        uniform = noise.uniform(seed, noise.Measuring.DRAW, np.arange(whole_number(n, "n", most=MOST_ROWS)))
        cumulated = np.cumsum(np.exp(self.log_probs.ravel()))
        cells = np.searchsorted(cumulated, uniform * cumulated[-1], side="right")
        return [self._tokens(index) for index in zip(*np.unravel_index(cells, self.log_probs.shape), strict=True)]

    @cached_property
    def entropy(self) -> float:
        return _entropy(self.log_probs)

    @cached_property
    def total_correlation(self) -> float:
        """Σ_i H(x_i) − H(x): how much the places say of one another; with two, their mutual information."""
        return sum(map(_entropy, self.marginals)) - self.entropy

    @cached_property
    def gold(self) -> Filling | None:
        """The text's own tokens, where it has them."""
        index = self._own
        return None if index is None else self._filling(index)

    @cached_property
    def rank(self) -> int:
        """Of the text's own tokens: 1 is the likeliest; 0 where the text has none."""
        return 0 if self._own is None else 1 + int((self.log_probs > self.log_probs[self._own]).sum())

    # ---- out of here

    @checked
    def text(self, *tokens: str | int) -> str:
        """The text with one token for each place filled in."""
        return filled_text(self.vocabulary, self.places, tokens)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: all that is known of it, and the 20 likeliest fillings."""
        return block_show.to_dict(self)

    @checked
    def to_pandas(self, n: int = 100) -> DataFrame:
        """The n likeliest fillings, one row each; `frame.attrs` says what the numbers are."""
        return block_show.to_pandas(self, n)

    @checked
    def plot(self, ax: Axes | None = None, n: int = 10) -> Axes:
        """The n likeliest fillings as bars, the likeliest on top."""
        return plot_fillings(ax, self.top(n), [quoted(self.places.encoded.text), *self.facts])

    def _title(self) -> list[str]:
        return [quoted(self.places.encoded.text)]

    def _grids(self) -> list[Grid]:
        return [block_show.grid(self)]

    # ---- tokens and cells

    @property
    def _own(self) -> tuple[int, ...] | None:
        gold = self.places.gold
        if gold is None or any(own not in ids for own, ids in zip(gold, self.ids, strict=True)):
            return None
        return tuple(int(np.flatnonzero(ids == own)[0]) for own, ids in zip(gold, self.ids, strict=True))

    def _tokens(self, index: Sequence[int]) -> tuple[Token, ...]:
        return tuple(Token.of(self.vocabulary, ids[at]) for ids, at in zip(self.ids, index, strict=True))

    def _filling(self, index: tuple[int, ...]) -> Filling:
        tokens, log_p = self._tokens(index), float(self.log_probs[index])
        return Filling(tokens, self.text(*tokens), log_p, float(np.exp(log_p)))

    def _indices(self, tokens: Sequence[str | int]) -> tuple[int, ...]:
        return tuple(self._index(i, token) for i, token in enumerate(one_each(tokens, len(self), "log_prob")))

    def _index(self, place: int, token: str | int) -> int:
        """Where a token stands among the candidates of a place."""
        found = np.flatnonzero(self.ids[place] == token_id(self.vocabulary, self.places, place, token))
        if not len(found):
            known = [self.vocabulary.token(id) for id in self.ids[place]]
            raise BesagError(
                f"{token!r} is not among the {len(known)} candidates of place {place}.{nearest(str(token), known)}"
            )
        return int(found[0])


def _sum_out(log_p: NDArray[np.float64], axes: Sequence[int]) -> NDArray[np.float64]:
    for axis in sorted(axes, reverse=True):
        log_p = np.logaddexp.reduce(log_p, axis)
    return log_p


def _entropy(log_p: NDArray[np.float64]) -> float:
    return -float(np.where(np.isneginf(log_p), 0.0, np.exp(log_p) * np.where(np.isneginf(log_p), 0.0, log_p)).sum())
