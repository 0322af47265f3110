"""The masked marginals of a text: what may stand at each place given all the others, each place hidden alone.

    log_probs[i, v] = log p(x_i = v | x_∖i)

A row is the model's whole answer, of which `pll` keeps the text's own entry. The numbers are those of the full softmax,
whichever columns are kept, so that log p(G) − log p(A) is the same from any table; `renormalised` gives the law over
the columns alone. Knows tokens and columns. Refuses to know how anything was asked (`marginals_asking.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Floats, Ints
from besag.checks import checked, whole_number
from besag.errors import BesagError, nearest, quoted
from besag.places.tokens import Token, token_ids
from besag.results.grid import Grid
from besag.results.result import Presented
from besag.results.status import Status
from besag.scores import marginals_show
from besag.scores.score import UNITS
from besag.vocabulary import Encoded, Vocabulary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

WHOLE = "the whole vocabulary"


@dataclass(frozen=True, eq=False, repr=False)
class Marginals(Presented):
    """log p of k tokens at each of n places, in `base`; `own`, `rank` and `entropy` are those of the model's whole row.

    A place is named as in `positions=`: by its token number, special tokens counted, negative from the end. A token may
    be named as the tokenizer writes it, as a word that is one token at that place, or by its id. Where a mask stands in
    the text there is no token of its own: `own` is nan and `rank` 0. Where `status` is not "ok" there are no rows.
    """

    encoded: Encoded
    places: Ints  # (n,) token numbers, special tokens counted
    log_probs: Floats  # (n, k) in `base`
    outcomes: Ints  # (n, k) the token that each column stands for, which for words may differ between places
    own: Floats  # (n,) of the text's own token
    rank: Ints  # (n,) of it among all tokens: 1 is the model's first choice
    entropy: Floats  # (n,) of the row, in `base`
    candidates: tuple[str, ...] | None  # (k,) as they were given; None: the columns are tokens of the vocabulary
    normalised: str  # over what a row sums to one
    vocabulary: Vocabulary
    base: float
    specials: str
    model: str
    dtype: str
    status: Status = Status.OK  # or why there is no number: "empty", "unknown"

    # ---- what it is

    @cached_property
    def text(self) -> str:
        """The text itself, without prefix and suffix."""
        return self.encoded.text[slice(*self.encoded.span)]

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """(n,) as the tokenizer writes them."""
        return tuple(self.encoded.tokens[place] for place in self.places)

    @property
    def ids(self) -> Ints:
        """(n,) of the text's own tokens."""
        return self.encoded.ids[self.places]

    @cached_property
    def offsets(self) -> Ints:
        """(n, 2) characters of `text`."""
        start, end = self.encoded.span
        return np.asarray(np.clip(self.encoded.offsets[self.places] - start, 0, end - start))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """(k,) what the columns are called: the candidates, or the tokens."""
        if self.candidates is not None:
            return self.candidates
        return tuple(self.vocabulary.token(id) for id in self.outcomes[0]) if len(self) else ()

    @property
    def unit(self) -> str:
        return UNITS[self.base]

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        return marginals_show.facts(self)

    def __len__(self) -> int:
        return len(self.places)

    # ---- the numbers

    @checked
    def log_prob(self, at: int, token: str | int) -> float:
        """log p of a token at a place, given all the others."""
        row = self._row(at)
        return float(self.log_probs[row, self._column(row, token)])

    @checked
    def effect(self, own: str | int, at: int, other: str | int) -> float:
        """log p(other) − log p(own) at a place: the effect of a substitution, below 0 where the model likes it less.

        `own` is what the text says there, and is held to it: `effect("A", 41, "G")` is the variant A41G of a protein
        whose tokens are residues, the first of them token 1.
        """
        row = self._row(at)
        self._refuse_another(row, own)
        return self.log_prob(at, other) - float(self.own[row])

    @property
    def effects(self) -> Floats:
        """(n, k) log p of each column minus that of the text's own token: 0 where the column is that token."""
        return self.log_probs - self.own[:, None].astype(self.log_probs.dtype)

    @checked
    def top(self, at: int, n: int = 5) -> list[tuple[Token, float]]:
        """The n likeliest of the columns at a place, likeliest first, with their log p."""
        row = self._row(at)
        values = self.log_probs[row]
        best = np.argsort(-values, kind="stable")[: whole_number(n, "n")]
        return [(Token.of(self.vocabulary, self.outcomes[row, index]), float(values[index])) for index in best]

    def renormalised(self) -> Marginals:
        """The same over the columns alone: each row sums to one over them, and rank and entropy are among them."""
        nats = self.log_probs.astype(np.float64) * math.log(self.base)  # (n, k)
        with np.errstate(invalid="ignore", divide="ignore"):
            log_p = nats - np.logaddexp.reduce(nats, 1, keepdims=True)
        if np.isnan(log_p).any():
            place = int(self.places[np.isnan(log_p).any(1)][0])
            raise BesagError(f"all columns have probability 0 at token {place}, so they cannot be renormalised")
        here = self.outcomes == self.ids[:, None]  # (n, k)
        there = here.any(1)
        own = np.where(there, np.where(here, log_p, -np.inf).max(1, initial=-np.inf), np.nan)
        rank = np.where(there, 1 + (log_p > np.where(there, own, 0)[:, None]).sum(1), 0)
        entropy = -np.where(np.isneginf(log_p), 0, np.exp(log_p) * np.where(np.isneginf(log_p), 0, log_p)).sum(1)
        scale, what = 1 / math.log(self.base), f"these {self.log_probs.shape[1]:,} tokens"
        return replace(
            self, log_probs=log_p * scale, own=own * scale, rank=rank, entropy=entropy * scale, normalised=what
        )

    # ---- out of here

    def to_dict(self) -> dict[str, Any]:
        """For JSON: every fact and place, with all candidates, or with the 20 likeliest tokens of the vocabulary."""
        return marginals_show.to_dict(self)

    @checked
    def to_pandas(self, wide: bool = True) -> DataFrame:
        """One row a place and one column a token or candidate; `wide=False`: one row a place and candidate."""
        return marginals_show.to_pandas(self, wide)

    @checked
    def plot(self, ax: Axes | None = None, n: int = 20) -> Axes:
        """The effects of substitutions as a heatmap over the places: all candidates, or the n likeliest tokens."""
        return marginals_show.draw(self, ax, whole_number(n, "n"))

    def _title(self) -> list[str]:
        return [] if len(self) else [quoted(self.text)]

    def _grids(self) -> list[Grid]:
        return [marginals_show.grid(self)]

    # ---- places and columns

    def _row(self, at: int) -> int:
        length = len(self.encoded.ids)
        number = whole_number(at, "at", least=-length, right="name a place by its token number, special tokens counted")
        found = np.flatnonzero(self.places == number % length if number < length else np.zeros(len(self), bool))
        if not len(found):
            known = ", ".join(f"{place} {token}" for place, token in zip(self.places[:12], self.tokens, strict=False))
            more = " …" if len(self) > 12 else ""
            raise BesagError(f"token {at} of {quoted(self.text)} was not asked; asked were {known}{more}")
        return int(found[0])

    def _refuse_another(self, row: int, own: str | int) -> None:
        place = int(self.places[row])
        if self.rank[row] == 0 and math.isnan(self.own[row]):
            raise BesagError(f"token {place} of {quoted(self.text)} has no value of its own to compare with")
        if self._token(row, own) != int(self.ids[row]):
            raise BesagError(
                f"token {place} of {quoted(self.text)} is {self.tokens[row]!r}, not {own!r}: effect(own, at, other) "
                "names what stands there first"
            )

    def _token(self, row: int, token: str | int) -> int:
        return token_ids(self.vocabulary, self.encoded, int(self.places[row]), [token])[0]

    def _column(self, row: int, token: str | int) -> int:
        if self.candidates is not None and isinstance(token, str) and token in self.candidates:
            return self.candidates.index(token)
        found = np.flatnonzero(self.outcomes[row] == self._token(row, token))
        if not len(found):
            guess = nearest(str(token), self.columns)
            raise BesagError(f"{token!r} is not among the {len(self.columns):,} columns of these marginals.{guess}")
        return int(found[0])
