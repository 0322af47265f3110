"""The score of one text: its numbers, and everything that says what the numbers are.

Knows tokens, words, character spans and bases of the logarithm. Refuses to know how the numbers were computed: the
method's name and `normalised` are carried along, never interpreted beyond naming the perplexity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from besag.checks import checked
from besag.errors import BesagError, nearest, quoted
from besag.places.positions import Position, TokenisedText, one_place
from besag.results.status import Status
from besag.results.words import exponential
from besag.scores import plot, record, show
from besag.spans import in_order, tokens_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

BASES: Mapping[float | str, float] = {"e": math.e, math.e: math.e, "2": 2.0, 2: 2.0, "10": 10.0, 10: 10.0}
UNITS: Mapping[float, str] = {math.e: "nats", 2.0: "bits", 10.0: "hartleys"}


def parse_base(base: float | str) -> float:
    """The base of the logarithm as a number: `"e"`, `2` or `10`, written as a number or as a string."""
    if not isinstance(base, str | int | float) or base not in BASES:
        raise BesagError(f"base {quoted(base)} is not one of 'e' (nats), 2 (bits) and 10 (hartleys)")
    return BASES[base]


class Piece(NamedTuple):
    """A token or a word: the text it covers, where that stands, and its log-probability."""

    text: str
    start: int
    end: int
    value: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Score:
    """The log-probabilities of the n scored tokens of one text, in `base`.

    total = Σᵢ log_probs[i] + Σ extra;   mean = total / n;   perplexity = base^(−mean).

    The total is a log-probability only where `normalised` says of what (for example "token sequences of this
    length"); where `normalised` is empty it is a pseudo-log-likelihood and the perplexity a pseudo-perplexity.
    Where `status` is not "ok" there is no number: total, mean and perplexity are nan.
    """

    text: str  # the scored text itself, without prefix and suffix
    tokens: tuple[str, ...]  # (n,) as the tokenizer writes them
    ids: NDArray[np.int64]  # (n,)
    log_probs: NDArray[np.float64]  # (n,) in `base`
    offsets: NDArray[np.int64]  # (n, 2) characters of `text`
    words: NDArray[np.int64]  # (n,) word number of each token, counted from 0
    method: str
    normalised: str  # of what the number is a probability; "" when it is none
    base: float  # math.e, 2.0 or 10.0
    specials: str  # what was done with special tokens
    word_policy: str
    model: str
    dtype: str
    status: Status = Status.OK  # or why there is no number: empty, unknown, mask
    extra: Mapping[str, float] = field(default_factory=dict)  # parts of the total that belong to no token
    standard_error: float | None = None  # of the total, where it is an estimate
    rank: NDArray[np.int64] | None = None  # (n,) 1 = the model's first choice
    entropy: NDArray[np.float64] | None = None  # (n,) in `base`
    unknown: int = 0  # how many scored tokens are the unknown token
    spaced: bool = True  # are words of this vocabulary set apart by spaces?

    # ---- the numbers

    @property
    def total(self) -> float:
        return float(self.log_probs.sum()) + sum(self.extra.values()) if self.status == "ok" else math.nan

    @property
    def mean(self) -> float:
        """The total per token."""
        return self.total / len(self) if len(self) else math.nan

    @property
    def surprisals(self) -> NDArray[np.float64]:
        return -self.log_probs

    @property
    def perplexity(self) -> float:
        """base^(−total / n): a pseudo-perplexity when `normalised` is empty."""
        return exponential(-self.mean * math.log(self.base))

    @property
    def bits_per_character(self) -> float:
        return -self.total * math.log2(self.base) / len(self.text) if self.text else math.nan

    @property
    def bits_per_byte(self) -> float:
        """Bits for each byte of the text in UTF-8."""
        return -self.total * math.log2(self.base) / n_bytes(self.text) if self.text else math.nan

    @property
    def unit(self) -> str:
        return UNITS[self.base]

    def __len__(self) -> int:
        return len(self.tokens)

    @checked
    def in_base(self, base: float | str) -> Score:
        """The same score with logarithms in another base."""
        new = parse_base(base)
        if new == self.base:
            return self
        factor = math.log(self.base) / math.log(new)
        return replace(
            self,
            base=new,
            log_probs=self.log_probs * factor,
            extra={name: value * factor for name, value in self.extra.items()},
            standard_error=None if self.standard_error is None else self.standard_error * factor,
            entropy=None if self.entropy is None else self.entropy * factor,
        )

    # ---- parts of the text

    @overload
    def reduce(self, how: Literal["sum", "mean"] = "sum", per: str = "token") -> float: ...
    @overload
    def reduce(self, how: Literal["none"], per: str = "token") -> NDArray[np.float64]: ...
    @overload
    def reduce(self, how: str, per: str = "token") -> float | NDArray[np.float64]: ...
    @checked
    def reduce(self, how: str = "sum", per: str = "token") -> float | NDArray[np.float64]:
        """The total ("sum"), the total per token or word ("mean"), or the value of each token or word ("none").

        Sum and mean are of the whole total, so `extra` counts in them; the parts are of the tokens alone.
        """
        if how not in ("sum", "mean", "none"):
            raise BesagError(f"how={how!r} is not 'sum', 'mean' or 'none'.{nearest(how, ('sum', 'mean', 'none'))}")
        if per not in ("token", "word"):
            raise BesagError(f"per={per!r} is not 'token' or 'word'.{nearest(per, ('token', 'word'))}")
        if how == "sum":
            return self.total
        if how == "none":
            return np.array([word.value for word in self.by_word()]) if per == "word" else self.log_probs
        if per == "token":
            return self.mean
        n_words = len(np.unique(self.words))
        return self.total / n_words if n_words else math.nan

    def by_token(self) -> list[Piece]:
        """Each token with the text it covers (its raw form where it covers none, as a lone '▁')."""
        values = self.log_probs.tolist()
        return [
            Piece(self.text[start:end] or token, start, end, value)
            for token, (start, end), value in zip(self.tokens, self.offsets.tolist(), values, strict=True)
        ]

    def by_word(self) -> list[Piece]:
        """Each word with the text it covers and the sum over its tokens."""
        pieces = []
        for tokens in self.tokens_by_word():
            ends = self.offsets[tokens]  # (k, 2)
            visible = ends[ends[:, 0] < ends[:, 1]] if (ends[:, 0] < ends[:, 1]).any() else ends
            start, end = int(visible[:, 0].min()), int(visible[:, 1].max())
            text = self.text[start:end] or "".join(self.tokens[i] for i in tokens)
            pieces.append(Piece(text, start, end, float(self.log_probs[tokens].sum())))
        return pieces

    def tokens_by_word(self) -> list[list[int]]:
        """Which tokens each word has."""
        members: dict[int, list[int]] = {}
        for i, word in enumerate(self.words.tolist()):
            members.setdefault(word, []).append(i)
        return list(members.values())

    @checked
    def by_span(self, spans: Sequence[tuple[int, int]], tiling: bool = False) -> list[Piece]:
        """Each of some spans of characters, in order, with the sum over its tokens; nan where it has none.

        A token belongs to the first span that holds one of its characters, and to no other (`span` counts a token
        wherever it overlaps). With `tiling` the spans are all of the text, white space before a span is part of it, and
        the sums over spans add up to the sum over tokens.
        """
        spans = in_order(spans, self.text)
        sums = [float(self.log_probs[at].sum()) if at else math.nan for at in tokens_of(self.offsets, spans, tiling)]
        return [Piece(self.text[a:b], a, b, value) for (a, b), value in zip(spans, sums, strict=True)]

    @checked
    def span(self, start: int, end: int) -> float:
        """The sum over the tokens that overlap the characters text[start:end].

        A token that covers no character (a lone '▁') belongs to the place where it stands.
        """
        return self._at((start, end))

    def __getitem__(self, key: slice | str | tuple[int, int]) -> float:
        """`score[3:6]`: the value of a span of characters; `score["word"]`: of the one place where that stands."""
        if isinstance(key, str | tuple):
            return self._at(key)
        if not isinstance(key, slice):
            raise BesagError(
                f"score[{key!r}] could mean a token or a character: write score.log_probs[i] for a token, "
                "score[i:j] for characters, score['word'] for a piece of the text"
            )
        if key.step not in (None, 1):
            raise BesagError(f"score[{key.start}:{key.stop}:{key.step}] has a step; a span is score[start:end]")
        length = len(self.text)
        start, end = (0 if key.start is None else key.start), (length if key.stop is None else key.stop)
        return self.span(*(i + length if -length <= i < 0 else i for i in (start, end)))

    def _at(self, position: Position) -> float:
        """The sum over the tokens of the one place that a position names."""
        if self.status != "ok":
            raise BesagError(f"{quoted(self.text)} has no spans, {show.reason(self)}")
        none = np.zeros(len(self), bool)  # special tokens are not scored
        where = TokenisedText(self.text, self.tokens, self.offsets, none, none, self.spaced, numbered=False)
        return float(self.log_probs[list(one_place(where, position).tokens)].sum())

    # ---- out of here

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the total, most important first."""
        return show.facts(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON (`results/data.py` has the convention for nan and infinity)."""
        return record.to_dict(self)

    def to_pandas(self) -> DataFrame:
        """One row a token; `frame.attrs` says what the numbers are."""
        return record.to_pandas(self)

    @checked
    def plot(self, ax: Axes | None = None, kind: Literal["line", "text"] = "line") -> Axes:
        """The surprisals as a line over the tokens, or as colours on the text itself."""
        return plot.draw(self, ax, kind)

    def __repr__(self) -> str:
        return show.table(self)

    def _repr_html_(self) -> str:
        return show.html(self)


def n_bytes(text: str) -> int:
    """The length of a text in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))
