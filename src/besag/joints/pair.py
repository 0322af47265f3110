"""The joint of two places of a text: a law over pairs of tokens, with everything that says what it is.

    q(x, y) = q(a = x, b = y | the rest of the text)

Knows tokens, marginals, conditionals and draws. Refuses to know how q was constructed: a construction hands over a law
made of vectors, and every number here is read from it when it is asked for. Nothing of the size of a vocabulary squared
is made except by `matrix` and `conditionals`, which say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from besag import noise
from besag.checks import checked, whole_number
from besag.errors import BesagError, nearest
from besag.joints import pair_plot, pair_show, passes
from besag.joints.comparison import Comparison
from besag.joints.fillings import MOST_ROWS, filled_text, one_each
from besag.joints.law import EVERYTHING, Index
from besag.joints.metrics import Metrics, measure
from besag.joints.registry import Built, Construction
from besag.joints.unaries import Lost, Unaries
from besag.places.filling import Filling
from besag.places.places import Places
from besag.places.tokens import Token, token_id
from besag.results.grid import Grid
from besag.results.result import Presented
from besag.results.status import Status
from besag.vocabulary import Vocabulary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

MOST_CELLS = 2**28
MOST_DRAWN = 1000  # tokens of each place in a picture


class Pair(Filling):
    """Tokens for both places of a text, and their joint probability."""

    __slots__ = ()

    @property
    def a(self) -> Token:
        return self.tokens[0]

    @property
    def b(self) -> Token:
        return self.tokens[1]


@dataclass(frozen=True, eq=False, repr=False)
class PairJoint(Presented):
    """q over the m outcomes of place a and the k outcomes of place b, in nats.

    A token may be named as the tokenizer writes it ("▁man"), as a word ("man": the token it would be at that place), or
    by its id. What `top` and `sample` give names itself, also where it is a piece that could be read as a word.
    Where `status` is not "ok" the construction did not finish, and says why.
    """

    places: Places
    unaries: Unaries
    construction: Construction
    built: Built
    vocabulary: Vocabulary
    model: str
    dtype: str

    @classmethod
    def build(
        cls,
        places: Places,
        unaries: Unaries,
        construction: Construction,
        *,
        vocabulary: Vocabulary,
        model: str,
        dtype: str,
    ) -> PairJoint:
        return cls(places, unaries, construction, construction.build(unaries), vocabulary, model, dtype)

    @checked
    def by(self, construction: Construction) -> PairJoint:
        """The same two places and conditionals, another construction."""
        return replace(self, construction=construction, built=construction.build(self.unaries))

    # ---- what it is

    @property
    def method(self) -> str:
        return self.construction.name

    @property
    def status(self) -> Status:
        return self.built.status

    @property
    def unit(self) -> str:
        return "nats"

    @cached_property
    def details(self) -> Mapping[str, float | int | str]:
        """What the construction says of its work: iterations, residual, pivot (as tokens), spread."""
        return pair_show.details(self)

    @cached_property
    def normalised(self) -> str:
        """Of what q is a probability."""
        return pair_show.extent(self.unaries, self.vocabulary)

    @property
    def lost(self) -> Lost:
        """Probability mass outside the outcomes, before renormalisation."""
        return self.unaries.lost

    @cached_property
    def gold(self) -> Pair | None:
        """The text's own two tokens, where it has them."""
        return None if self.unaries.gold is None else self._pair(*self.unaries.gold)

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        return pair_show.facts(self)

    # ---- the numbers

    @checked
    def log_prob(self, *tokens: str | int) -> float:
        """log q of one token for each of the two places."""
        x, y = one_each(tokens, 2, "log_prob")
        return self._log_q(self._index(0, x), self._index(1, y))

    @cached_property
    def marginals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """log q(a), (m,), and log q(b), (k,), in the order of `unaries.ids_a` and `unaries.ids_b`."""
        return _numpy(self.built.log_u), _numpy(self.built.log_v)

    @checked
    def conditional_a(self, y: str | int) -> NDArray[np.float64]:
        """log q(a = · | b = y), (m,)."""
        return self._given(self._cells(y=_one(self._index(1, y)))[:, 0], "b", y)

    @checked
    def conditional_b(self, x: str | int) -> NDArray[np.float64]:
        """log q(b = · | a = x), (k,)."""
        return self._given(self._cells(_one(self._index(0, x)))[0], "a", x)

    def matrix(self) -> NDArray[np.floating[Any]]:
        """log q of all pairs, (m, k), in the precision of the conditionals."""
        self._refuse_too_many("matrix")
        dense: NDArray[np.floating[Any]] = self.built.law.cells(self.unaries).cpu().numpy()
        return dense

    @property
    def conditionals(self) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
        """log q(a = x | b = y) and log q(b = y | a = x), each (m, k)."""
        self._refuse_too_many("conditionals")
        for place, log_marginal in zip("ab", self.marginals, strict=True):
            if np.isneginf(log_marginal).any():
                raise BesagError(f"some tokens have probability 0 at {place}, so nothing can be conditioned on them")
        cells = self.built.law.cells(self.unaries)
        both = torch.log_softmax(cells, 0), torch.log_softmax(cells, 1)
        return both[0].cpu().numpy(), both[1].cpu().numpy()

    @checked
    def top(self, n: int = 10) -> list[Pair]:
        """The n likeliest pairs, likeliest first."""
        _, rows, columns = passes.top(self.unaries, self.built.law, whole_number(n, "n", most=MOST_ROWS))
        found = [self._pair(x, y) for x, y in zip(rows.tolist(), columns.tolist(), strict=True)]
        return sorted(found, key=lambda pair: -pair.log_prob)  # a number alone may round otherwise than in a block

    @checked
    def sample(self, n: int, seed: int = 0) -> list[tuple[Token, Token]]:
        """n independent pairs, each by two numbers of `noise`: draw i is the same however many are drawn."""
        draw = np.arange(whole_number(n, "n", most=MOST_ROWS))
        first, second = (noise.uniform(seed, noise.Measuring.DRAW, draw, part) for part in range(2))  # (n,), (n,)
        x = _inverse(self.marginals[0], first)
        y = np.empty_like(x)
        for row in np.unique(x):  # one row at a time: rounding cannot depend on what else was drawn
            drawn = x == row
            y[drawn] = _inverse(self._cells(_one(row))[0], second[drawn])
        return list(zip(self._tokens(0, x), self._tokens(1, y), strict=True))

    def metrics(self) -> Metrics:
        """Likelihood of the text's own pair, distance of q's conditionals from the model's, entropy; in nats."""
        return self._measured

    @cached_property
    def _measured(self) -> Metrics:
        return measure(self.unaries, self.built)

    @property
    def entropy(self) -> float:
        return self._measured.entropy

    @property
    def mutual_information(self) -> float:
        return self._measured.mutual_information

    @checked
    def compare(self, constructions: Iterable[str | Construction] | None = None) -> Comparison:
        """Every construction (or those named) on these two places, by every metric."""
        return Comparison.of(self, constructions)

    # ---- out of here

    @checked
    def text(self, *tokens: str | int) -> str:
        """The text with one token for each of the two places filled in."""
        return filled_text(self.vocabulary, self.places, tokens)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: all that is known of it, and the 20 likeliest pairs."""
        return pair_show.to_dict(self)

    @checked
    def to_pandas(self, n: int = 100) -> DataFrame:
        """The n likeliest pairs, one row each; `frame.attrs` says what the numbers are."""
        return pair_show.to_pandas(self, n)

    @checked
    def plot(self, ax: Axes | None = None, n: int = 12) -> Axes:
        """q over the n likeliest tokens of each place as a heatmap, with the marginals on its sides."""
        return pair_plot.draw(self, ax, whole_number(n, "n", most=MOST_DRAWN))

    def _title(self) -> list[str]:
        return pair_show.title(self)

    def _grids(self) -> list[Grid]:
        return [pair_show.grid(self)]

    # ---- tokens and cells

    def _ids(self, side: int) -> NDArray[np.int64]:
        return (self.unaries.ids_a, self.unaries.ids_b)[side]

    def _tokens(self, side: int, indices: Iterable[int]) -> list[Token]:
        ids = self._ids(side)
        return [Token.of(self.vocabulary, ids[index]) for index in indices]

    def _pair(self, x: int, y: int) -> Pair:
        log_q = self._log_q(x, y)
        [a], [b] = self._tokens(0, [x]), self._tokens(1, [y])
        return Pair((a, b), self.text(a, b), log_q, float(np.exp(log_q)))

    def _cells(self, x: Index = EVERYTHING, y: Index = EVERYTHING) -> NDArray[np.float64]:
        return _numpy(self.built.law.cells(self.unaries, x, y))

    def _log_q(self, x: int, y: int) -> float:
        return float(self._cells(_one(x), _one(y))[0, 0])

    def _given(self, log_q: NDArray[np.float64], place: str, token: str | int) -> NDArray[np.float64]:
        total = np.logaddexp.reduce(log_q)
        if np.isneginf(total):
            raise BesagError(f"{place} = {token!r} has probability 0, so nothing can be conditioned on it")
        return np.asarray(log_q - total)

    def _index(self, side: int, token: str | int) -> int:
        """Where a token stands among the outcomes of a place."""
        id = token_id(self.vocabulary, self.places, side, token)
        found = np.flatnonzero(self._ids(side) == id)
        if not len(found):
            read = "" if token == self.vocabulary.token(id) else f" ({self.vocabulary.token(id)!r})"
            kind = pair_show.kind(self.unaries, self.vocabulary)
            known = self._tokens(side, range(len(self._ids(side))))
            raise BesagError(
                f"{token!r}{read} is not among the {len(known):,} {kind} of {'ab'[side]}.{nearest(str(token), known)}"
            )
        return int(found[0])

    def _refuse_too_many(self, what: str) -> None:
        m, k = self.unaries.shape
        if m * k > MOST_CELLS:
            raise BesagError(
                f"{what} would hold {m:,} × {k:,} numbers, more than {MOST_CELLS:,}: top(n), log_prob(x, y), "
                "conditional_a(y) and conditional_b(x) give parts of it, and candidates=200 a smaller joint"
            )


def _inverse(log_probs: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.intp]:
    """The outcomes that numbers in (0, 1) stand for: never one of probability 0."""
    cumulated = np.cumsum(np.exp(log_probs))
    return np.asarray(np.searchsorted(cumulated, uniform * cumulated[-1], side="right"))


def _numpy(values: Tensor) -> NDArray[np.float64]:
    return np.asarray(values.cpu().double().numpy())


def _one(index: int) -> slice:
    return slice(int(index), int(index) + 1)
