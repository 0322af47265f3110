"""Many scores as one number: the (pseudo-)perplexity of a corpus, with its uncertainty.

Knows sums, read in one pass and in constant memory. Refuses to add numbers that are not alike: other methods, other
models, or numbers normalised over other things.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from besag.checks import checked
from besag.errors import BesagError, quoted
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, lines
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import amount, counted, exponential, meaning, number
from besag.scores.score import Score, n_bytes

if TYPE_CHECKING:
    from pandas import DataFrame

COUNTS = ("n_texts", "n_tokens", "n_words", "n_characters", "n_bytes", "n_unknown")


@dataclass(frozen=True, slots=True, repr=False)
class Corpus(Presented):
    """What a model makes of a corpus of m scored texts, text i with n_i tokens and total t_i (in nats).

    R = Σ t_i / Σ n_i is the mean per token and exp(−R) the perplexity, which Salazar et al. (2020) call PPPL where
    the t_i are pseudo-log-likelihoods. R is a ratio of sums over texts, the units that were drawn, so

        standard_error² = m / (m − 1) · Σ (t_i − R n_i)² / (Σ n_i)²,

    which does not pretend that the tokens of a text are independent; it is nan for a single text. Words are separated
    by white space; words, characters and bytes (UTF-8) are those of the scored texts.
    """

    n_texts: int
    n_tokens: int
    n_words: int
    n_characters: int
    n_bytes: int
    n_unknown: int  # how many of the tokens are the unknown token
    total: float  # nats
    standard_error: float  # of the mean per token, nats
    skipped: Mapping[Status, int]  # status -> how many texts have no score
    method: str
    normalised: str
    model: str

    @property
    def mean(self) -> float:
        """Nats per token."""
        return self.total / self.n_tokens

    @property
    def perplexity(self) -> float:
        """exp(−total / tokens)."""
        return exponential(-self.mean)

    @property
    def perplexity_interval(self) -> tuple[float, float]:
        """Where the perplexity of more such texts lies with 95 % confidence: exp(−R ∓ 1.96 · standard error)."""
        reach = 1.96 * self.standard_error
        return exponential(-self.mean - reach), exponential(-self.mean + reach)

    @property
    def word_perplexity(self) -> float:
        """exp(−total / words) = perplexity^(tokens / words): comparable between tokenizers."""
        return exponential(-self.total / self.n_words) if self.n_words else math.nan

    @property
    def bits_per_character(self) -> float:
        return -self.total / math.log(2.0) / self.n_characters

    @property
    def bits_per_byte(self) -> float:
        return -self.total / math.log(2.0) / self.n_bytes

    # ---- what it is

    @property
    def status(self) -> Status:
        return Status.PARTLY if self.skipped else Status.OK

    @property
    def unit(self) -> str:
        return "nats"

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        return [
            *(f"{counted(n, 'text')} skipped: {status} ({status.sentence})" for status, n in self.skipped.items()),
            f"{self.method}: {meaning(self.normalised)}",
            self.model,
        ]

    # ---- out of here

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        whole = {**self._answers(), "meaning": meaning(self.normalised), "skipped": self.skipped}
        names = ("method", "normalised", "model", "perplexity", "perplexity_interval", "word_perplexity",
                 "bits_per_character", "bits_per_byte", "total", "unit", "mean", "standard_error", *COUNTS)  # fmt: skip
        return dict(json_ready({**whole, **{name: getattr(self, name) for name in names}}))

    def to_pandas(self) -> DataFrame:
        """One row with a column a number; `frame.attrs` says what the numbers are."""
        low, high = self.perplexity_interval
        names = ("perplexity", "word_perplexity", "bits_per_character", "bits_per_byte", "total", "mean",
                 "standard_error", *COUNTS)  # fmt: skip
        row = {name: getattr(self, name) for name in names}
        return data.frame(self, [{**row, "perplexity_low": low, "perplexity_high": high}])

    def _grids(self) -> list[Grid]:
        name = "perplexity" if self.normalised else "pseudo-perplexity"
        low, high = self.perplexity_interval
        interval = "" if math.isnan(low) else f"95 %: {amount(low)} to {amount(high)}"
        rows = [
            (f"{name} per token", amount(self.perplexity), interval),
            (f"{name} per word", amount(self.word_perplexity), ""),
            ("bits per character", f"{self.bits_per_character:.4f}", ""),
            ("bits per byte", f"{self.bits_per_byte:.4f}", ""),
            ("total", f"{number(self.total)} nats", ""),
            ("texts", f"{self.n_texts:,}", ""),
            ("tokens", f"{self.n_tokens:,}", f"{self.n_unknown:,} of them unknown" if self.n_unknown else ""),
            ("words", f"{self.n_words:,}", ""),
            ("characters", f"{self.n_characters:,}", ""),
        ]
        return [Grid((), lines(rows), left=(0, 1, 2))]


class _Moments:
    """Running means and centred second moments of (t, n): one pass, no cancellation of large sums."""

    def __init__(self) -> None:
        self.count = 0
        self.mean_t = self.mean_n = self.tt = self.tn = self.nn = 0.0

    def add(self, t: float, n: int) -> None:
        self.count += 1
        off_t, off_n = t - self.mean_t, n - self.mean_n
        self.mean_t += off_t / self.count
        self.mean_n += off_n / self.count
        self.tt += off_t * (t - self.mean_t)
        self.tn += off_t * (n - self.mean_n)
        self.nn += off_n * (n - self.mean_n)

    def standard_error(self) -> float:
        """Of the ratio R = mean(t) / mean(n); the residuals t − R n have mean 0, so the centred moments suffice."""
        if self.count < 2:
            return math.nan
        ratio = self.mean_t / self.mean_n
        squares = self.tt - 2 * ratio * self.tn + ratio * ratio * self.nn
        return math.sqrt(max(squares, 0.0) / (self.count * (self.count - 1))) / self.mean_n


class Tally:
    """A corpus as it grows, in constant memory: `add` scores as they come, then ask for the `corpus`."""

    def __init__(self) -> None:
        self.kind: tuple[str, str, str] | None = None  # method, normalised, model
        self.total = 0.0
        self.counts, self.skipped = Counter[str](), Counter[Status]()
        self.moments = _Moments()

    def add(self, score: Score) -> None:
        if not isinstance(score, Score):
            raise BesagError(f"a corpus is made of scores, as lm.score gives them, and {quoted(score)} is none")
        kind = (score.method, score.normalised, score.model)
        if self.kind is not None and kind != self.kind:
            raise BesagError(f"a corpus has one method and one model, not {_named(self.kind)} and then {_named(kind)}")
        self.kind = kind
        if score.status != "ok":
            self.skipped[score.status] += 1
            return
        nats = score.total * math.log(score.base)
        self.total += nats
        self.moments.add(nats, len(score))
        self.counts["n_tokens"] += len(score)
        self.counts["n_words"] += len(score.text.split())
        self.counts["n_characters"] += len(score.text)
        self.counts["n_bytes"] += n_bytes(score.text)
        self.counts["n_unknown"] += score.unknown

    def state(self) -> dict[str, Any]:
        """All of it as data, for a run that goes on from here: `restore` takes it up."""
        numbers = {"counts": dict(self.counts), "skipped": dict(self.skipped), "moments": vars(self.moments)}
        return {"kind": self.kind, "total": self.total, **numbers}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.kind = None if state["kind"] is None else tuple(state["kind"])
        self.total = state["total"]
        self.counts = Counter(state["counts"])
        self.skipped = Counter({Status(name): count for name, count in state["skipped"].items()})
        vars(self.moments).update(state["moments"])

    def corpus(self) -> Corpus:
        if self.kind is None:
            raise BesagError("a corpus needs at least one score, and there was none")
        if not self.moments.count:
            reasons = ", ".join(f"{n} '{status}'" for status, n in self.skipped.items())
            raise BesagError(f"none of the {self.skipped.total()} texts has a score: their status is {reasons}")
        method, normalised, model = self.kind
        return Corpus(
            **self.counts,
            n_texts=self.moments.count,
            total=self.total,
            standard_error=self.moments.standard_error(),
            skipped=dict(self.skipped),
            method=method,
            normalised=normalised,
            model=model,
        )


@checked
def corpus(scores: Iterable[Score]) -> Corpus:
    """The (pseudo-)perplexity of all the texts together.

    Args:
        scores: of one method and model; read once, so a generator will do.

    Returns:
        A `Corpus`: perplexity, bits per character and byte, with the uncertainty of so many texts.

    Examples:
        >>> found = besag.corpus(lm.score(["It rained all night.", "The door was open."], "chain"))
        >>> found.n_texts, round(found.bits_per_character, 2)
        (2, 1.01)
    """
    tally = Tally()
    for score in scores:
        tally.add(score)
    return tally.corpus()


def _named(kind: tuple[str, str, str]) -> str:
    method, normalised, model = kind
    return f"{method!r} ({meaning(normalised)}) of {model!r}"
