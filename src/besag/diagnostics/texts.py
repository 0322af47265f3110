"""Numbers of sampled texts: how varied they are, how new, how often they stutter, and what another model says of them.

The units are words (runs of letters and digits, other signs one by one), or whatever `tokens` cuts a text into.

    self-BLEU    the mean over texts of BLEU against all the others, in 0 … 1; high where texts repeat one another:
                 min(1, e^(1 − r/c)) · (Π_{k=1…n} p_k)^(1/n)
                 p_k = Σ_g min(count(g), most of g in one other text) / Σ_g count(g), over the k-grams g of the text; an
                 empty numerator counts as 0.1 (method 1 of Chen and Cherry), orders longer than the text are left out
                 c: words of the text; r: of the other text nearest to it in length, the shorter of two
    distinct-n   different n-grams / n-grams, over all texts; falls as texts are added
    novelty-n    the share of n-grams, each occurrence counted, that stand nowhere in a reference
    stutter      the share of words with a left neighbour that are equal to it
    entropy      −Σ f log₂ f over the frequencies of words, in bits; too low where there are few words

No n-gram goes over the end of a text, or of a line of the reference. A reference is read once, line by line, and only
the n-grams of the texts are kept, by number, so memory does not grow with it and nothing is confused by a hash.

None of these numbers is good or bad alone: a sampler of one good sentence is fluent and has self-BLEU 1, one of random
words is varied. Compare samples of one size, and read fluency (`judge`) and variety together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from besag import noise
from besag.arrays import Floats
from besag.checks import checked, whole_number
from besag.diagnostics.grams import Grams, Rate, ratio
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.files.lines import lines_of
from besag.results import data, grid
from besag.results.data import from_json, json_ready
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import amount, counted, number
from besag.scores import method
from besag.scores.scoring import Scoring

if TYPE_CHECKING:
    from pandas import DataFrame

Judge: TypeAlias = Engine | Callable[[list[str]], Iterable[float | Sequence[float] | Floats]]

WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
ORDERS = 4
LONGEST = 100  # words of an n-gram
MOST = 1000  # texts that are compared with one another


def words(text: str) -> list[str]:
    """Runs of letters and digits, with an apostrophe inside; every other sign for itself."""
    return WORD.findall(text)


class Judged(NamedTuple):
    """What another model says of the texts."""

    texts: int  # that it gave a probability
    refused: int  # and that it did not
    word_nats: Rate  # −log p a word of ours, so that judges with different tokens compare
    bits_per_character: float
    token_perplexity: float  # by the judge's own tokens; nan where it tells no tokens

    @property
    def perplexity(self) -> float:
        """A word."""
        return math.exp(self.word_nats.value) if self.word_nats.value < 700 else math.inf


@dataclass(frozen=True, eq=False, repr=False)
class TextReport(Presented):
    texts: int
    empty: int  # texts without a word, left out of everything else
    words: int
    kinds: int  # different words
    lengths: tuple[float, float, float, float, float]  # words a text: mean, sd, least, median, most
    characters: float  # a text, mean
    distinct: tuple[float, ...]  # of orders 1 … n
    self_bleu: float
    compared: int  # texts that were compared for it
    stutter: Rate
    entropy: float  # bits a word
    novelty: tuple[float, ...] | None = None  # of orders 1 … n
    judged: Judged | None = None

    # ---- what it is

    @property
    def status(self) -> Status:
        """Partly, where texts were left out or refused by the judge."""
        left_out = self.empty + (self.judged.refused if self.judged is not None else 0)
        return Status.PARTLY if left_out else Status.OK

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        refused = 0 if self.judged is None else self.judged.refused
        return [
            counted(self.texts, "text"),
            counted(self.words, "word"),
            *([f"{self.empty} without a word, left out"] if self.empty else []),
            *([f"the judge gave {counted(refused, 'text')} no probability"] if refused else []),
        ]

    # ---- out of here

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        judged = None
        if self.judged is not None:
            whole = {**self.judged._asdict(), "perplexity": self.judged.perplexity}
            nats = whole.pop("word_nats")
            judged = {**whole, "word_nats": nats.value, "word_nats_error": nats.error}
        names = ("texts", "empty", "words", "kinds", "characters", "self_bleu", "compared", "distinct", "novelty",
                 "entropy")  # fmt: skip
        lengths = dict(zip(("mean", "sd", "least", "median", "most"), self.lengths, strict=True))
        stutter = {"stutter": self.stutter.value, "stutter_error": self.stutter.error}
        about = {name: getattr(self, name) for name in names}
        return dict(json_ready({**self._answers(), **about, "lengths": lengths, **stutter, "judged": judged}))

    def to_pandas(self) -> DataFrame:
        """One row with a column a number."""
        flat: dict[str, Any] = {}
        for name, value in self.to_dict().items():
            if isinstance(value, dict):
                flat.update({f"{name}_{key}": from_json(part) for key, part in value.items()})
            elif isinstance(value, list) and name != "facts":
                flat.update({f"{name}_{order}": from_json(part) for order, part in enumerate(value, 1)})
            elif name not in ("status", "facts", "novelty", "judged"):
                flat[name] = from_json(value)
        return data.frame(self, [flat])

    def _grids(self) -> list[grid.Grid]:
        mean, sd, least, median, most = self.lengths
        rows = [
            ["words a text", f"{number(mean, 1)} ± {number(sd, 1)}", f"{least:g} to {most:g}, median {median:g}"],
            ["self-BLEU", number(self.self_bleu, 3), f"{counted(self.compared, 'text')}; lower is more varied"],
            ["distinct-n", " ".join(number(x, 3) for x in self.distinct), f"n = 1 … {len(self.distinct)}"],
        ]
        if self.novelty is not None:
            rows.append(["novelty-n", " ".join(number(x, 3) for x in self.novelty), "n-grams not in the reference"])
        rows += [
            ["stutter", f"{self.stutter.value:.2%}{_error(self.stutter.error)}", "words equal to their left neighbour"],
            ["entropy", number(self.entropy), f"bits a word, {self.kinds:,} different ones"],
        ]
        if self.judged is not None:
            nats = f"{number(self.judged.word_nats.value)} nats a word"
            rows.append(["perplexity", amount(self.judged.perplexity), f"a word, by the judge: {nats}"])
            rows.append(["", number(self.judged.bits_per_character), "bits a character"])
            if self.judged.token_perplexity == self.judged.token_perplexity:
                rows.append(["", amount(self.judged.token_perplexity), "perplexity a token of the judge"])
        return [grid.Grid((), grid.lines(rows), left=(0, 2))]


@checked
def measure(
    texts: Sequence[str],
    *,
    tokens: Callable[[str], Sequence[Hashable]] = words,
    n: int = ORDERS,
    reference: str | Path | Iterable[str] | None = None,
    judge: Judge | None = None,
    most: int | None = MOST,
    seed: int = 0,
) -> TextReport:
    """All numbers of some texts, with n-grams of the orders 1 … n.

    `reference` is a file (plain, .gz, .xz or .bz2; a text a line) or any texts, for the novelty. `judge` is the engine
    of a causal model, or a function from texts to log-probabilities in nats, of a text or of each of its tokens. Of
    more than `most` texts so many, drawn by `seed`, are compared for the self-BLEU, which grows with their number.
    """
    if isinstance(texts, str):
        raise BesagError(f"expected a list of texts, got the text {quoted(texts)}: write [{quoted(texts)}].")
    whole_number(n, "n", right="n-grams have at least one word", most=LONGEST)
    if most is not None:
        whole_number(most, "most", 2, right="compare at least 2 texts, or None for all")
    cut = [list(tokens(text)) for text in texts]
    grams = Grams([one for one in cut if one], n)
    if not len(grams):
        raise BesagError(f"{counted(len(texts), 'text')} without a word: there is nothing to measure")
    full = [text for text, one in zip(texts, cut, strict=True) if one]
    lengths = grams.lengths.astype(np.float64)
    spread = float(lengths.std(ddof=1)) if len(lengths) > 1 else math.nan
    shown = (float(lengths.mean()), spread, float(lengths.min()), float(np.median(lengths)), float(lengths.max()))
    value, compared = self_bleu(cut, n, most=most, seed=seed)
    return TextReport(
        texts=len(texts),
        empty=len(texts) - len(full),
        words=int(lengths.sum()),
        kinds=len(grams.known),
        lengths=shown,
        characters=float(np.mean([len(text) for text in full])),
        distinct=grams.distinct(),
        self_bleu=value,
        compared=compared,
        stutter=grams.stutter(),
        entropy=grams.entropy(),
        novelty=None if reference is None else grams.novelty(map(tokens, lines(reference))),
        judged=None if judge is None else judged(judge, full, lengths),
    )


def self_bleu(
    texts: Iterable[Sequence[Hashable]], n: int = ORDERS, *, most: int | None = None, seed: int = 0
) -> tuple[float, int]:
    """The self-BLEU of texts that are cut into words, and of how many; nan for fewer than two."""
    full = [text for text in texts if len(text)]
    if most is not None and len(full) > most:
        turn = np.argsort(noise.uniform(seed, noise.Measuring.SUBSET, np.arange(len(full))), kind="stable")[:most]
        full = [full[at] for at in np.sort(turn).tolist()]
    return (float(Grams(full, n).bleu().mean()) if len(full) > 1 else math.nan), len(full)


def stutter(texts: Iterable[Sequence[Hashable]]) -> Rate:
    """The share of words, or of any tokens, that are equal to their left neighbour."""
    return Grams([text for text in texts if len(text)], 1).stutter()


def lines(source: str | Path | Iterable[str]) -> Iterator[str]:
    """The lines of a file, or texts as they are."""
    if not isinstance(source, str | Path):
        yield from source
        return
    path = Path(source)
    if not path.is_file():
        raise BesagError(f"there is no file {str(path)!r} to compare with")
    for _, line in lines_of(str(path)):
        yield line


def judged(judge: Judge, texts: list[str], lengths: Floats) -> Judged:
    """`lengths` (N,) are the words of each text."""
    parts = _log_probs(judge, texts)
    if len(parts) != len(texts):
        raise BesagError(f"the judge was given {len(texts)} texts and answered about {len(parts)}")
    totals = np.array([float(np.sum(part)) for part in parts])
    good = np.isfinite(totals)
    nats, characters = -totals[good], sum(len(text) for text, ok in zip(texts, good, strict=True) if ok)
    told = all(np.ndim(part) == 1 for part in parts)
    tokens = sum(np.size(part) for part, ok in zip(parts, good, strict=True) if ok) if told else 0
    return Judged(
        int(good.sum()),
        int((~good).sum()),
        ratio(nats, lengths[good]),
        float(nats.sum() / math.log(2) / characters) if characters else math.nan,
        math.exp(min(float(nats.sum()) / tokens, 700.0)) if tokens else math.nan,
    )


def _log_probs(judge: Judge, texts: list[str]) -> list[float | Sequence[float] | Floats]:
    if not isinstance(judge, Engine):
        return list(judge(texts))
    scoring = Scoring(judge.conditionals, method("causal"), "tokenizer", "", "", " ", math.e, False, False, None, False)
    scores = scoring.run(judge, texts, len(texts))
    return [score.log_probs if score.status == "ok" else np.array([math.nan]) for score in scores]


def _error(error: float) -> str:
    return "" if error != error else f" ± {error:.2%}"
