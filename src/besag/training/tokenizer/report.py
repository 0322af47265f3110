"""What a tokenizer does to held-out text, in numbers that compare tokenizers.

| number | what it is |
|---|---|
| fertility | tokens a word; here words are what white space separates |
| characters, bytes | of the text, for one token |
| unknown | share of tokens that are the unknown token: what they stood for is lost |
| fallback | share of tokens that are single bytes, <0x00> … <0xFF> |
| whole_words | share of runs of letters that no token begins inside of |
| renyi | Rényi efficiency H_α(p) / log V, H_α(p) = log(Σ_v p(v)^α) / (1 − α), α = 2.5, p(v) the share of token v |
| used | share of the vocabulary that occurs |
| boundary_precision, boundary_recall, boundary_f1 | of the cuts inside runs of letters, against those of morphemes |

(Rényi efficiency: Zouhar et al. 2023; near 1 where all tokens are used alike.) Morphemes are given for each word, or
guessed from the text: an affix of a short English list is cut off where what is left is a word of the text as well,
with its spelling mended (making: make, happiness: happy). That is rough, and the same for all tokenizers compared.
Words count as often as they occur.

Knows tokenizers as `Vocabulary` does, fast and slow; knows no files.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.checks import checked
from besag.errors import BesagError, require
from besag.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pandas import DataFrame

TOGETHER = 512  # texts tokenised at a time
ALPHA = 2.5  # of Rényi's entropy
BYTE = re.compile(r"<0x[0-9A-F]{2}>")
LETTERS = re.compile(r"[^\W\d_]+")
PREFIXES = (
    "anti", "counter", "dis", "fore", "in", "inter", "mis", "multi", "non", "out", "over", "post", "pre", "re", "semi",
    "sub", "super", "trans", "un", "under", "up",
)  # fmt: skip
SUFFIXES = (
    "able", "ably", "al", "ally", "ation", "ed", "en", "er", "est", "ful", "hood", "ing", "ion", "ish", "ism", "ist",
    "ity", "ize", "less", "ly", "ment", "ness", "or", "ous", "s", "es", "ship", "ward", "y",
)  # fmt: skip
STEM = 3  # letters that are left of a word when an affix is taken off


@dataclass(frozen=True)
class TokenizerReport:
    name: str
    size: int
    texts: int
    words: int
    tokens: int
    fertility: float
    characters: float
    bytes: float
    unknown: float
    fallback: float
    whole_words: float
    renyi: float
    used: float
    boundary_precision: float
    boundary_recall: float
    boundary_f1: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON: nan becomes None."""
        return {name: None if isinstance(x, float) and math.isnan(x) else x for name, x in asdict(self).items()}


@checked
def report(
    tokenizers: Mapping[str, Vocabulary | Any], texts: Iterable[str], *, segmentation: Mapping[str, str] | None = None
) -> list[TokenizerReport]:
    """One report for each named tokenizer, over the same texts.

    `segmentation`: word → its morphemes with spaces between; a word that is not in it has one morpheme.
    """
    whole = [text for text in texts if text.strip()]
    if not whole:
        raise BesagError("there is no text to compare tokenizers on")
    morphemes = _guessed(whole) if segmentation is None else _given(segmentation)
    return [
        _measured(name, one if isinstance(one, Vocabulary) else Vocabulary(one), whole, morphemes)
        for name, one in tokenizers.items()
    ]


def to_pandas(reports: Sequence[TokenizerReport]) -> DataFrame:
    frame: DataFrame = require("pandas", extra="eval").DataFrame([asdict(one) for one in reports])
    return frame


def _measured(
    name: str, vocabulary: Vocabulary, texts: Sequence[str], morphemes: Callable[[str], frozenset[int]]
) -> TokenizerReport:
    counts: Counter[int] = Counter()
    cuts: Counter[str] = Counter()
    characters = size = words = runs = whole = 0
    remaining = iter(texts)
    while batch := list(islice(remaining, TOGETHER)):
        for one in vocabulary.encode(batch):
            inner = ~one.special
            counts.update(one.ids[inner].tolist())
            characters += len(one.text)
            size += len(one.text.encode())
            words += len(one.text.split())
            begin, end = one.offsets[inner].T
            starts = np.unique(begin[begin < end]).tolist()  # without lone spaces; the bytes of a character are one
            for run in LETTERS.finditer(one.text):
                first, last = bisect_right(starts, run.start()), bisect_left(starts, run.end())
                found = {start - run.start() for start in starts[first:last]}
                true = morphemes(run.group())
                runs, whole = runs + 1, whole + (not found)
                cuts.update(found=len(found), true=len(true), both=len(found & true))
    total = counts.total()
    fallback = sum(count for id, count in counts.items() if BYTE.fullmatch(vocabulary.token(id)))
    unknown = counts[vocabulary.unknown_id] if vocabulary.unknown_id is not None else 0
    return TokenizerReport(
        name=name, size=vocabulary.size, texts=len(texts), words=words, tokens=total,
        fertility=_share(total, words), characters=_share(characters, total), bytes=_share(size, total),
        unknown=_share(unknown, total), fallback=_share(fallback, total), whole_words=_share(whole, runs),
        renyi=renyi(list(counts.values()), vocabulary.size), used=len(counts) / vocabulary.size,
        boundary_precision=_share(cuts["both"], cuts["found"]), boundary_recall=_share(cuts["both"], cuts["true"]),
        boundary_f1=_share(2 * cuts["both"], cuts["found"] + cuts["true"]),
    )  # fmt: skip


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def renyi(counts: Sequence[int], size: int) -> float:
    """Rényi efficiency of how often each token occurs, in a vocabulary of `size`."""
    p = np.array(counts, np.float64) / sum(counts)
    return float(np.log(np.sum(p**ALPHA)) / (1 - ALPHA) / math.log(size)) if size > 1 else math.nan


# ---- morphemes


def _given(segmentation: Mapping[str, str]) -> Callable[[str], frozenset[int]]:
    known: dict[str, frozenset[int]] = {}
    for word, parts in segmentation.items():
        if parts.replace(" ", "") != word:
            raise BesagError(f"the morphemes {parts!r} do not spell {word!r}: write them with spaces between")
        known[word] = frozenset(accumulate(len(part) for part in parts.split()[:-1]))
    return lambda word: known.get(word) or known.get(word.lower(), frozenset())


def _guessed(texts: Sequence[str]) -> Callable[[str], frozenset[int]]:
    """Cuts where an affix leaves a word that occurs in these texts."""
    lexicon = {run.lower() for text in texts for run in LETTERS.findall(text)}

    def is_word(stem: str) -> bool:
        mended = [stem, f"{stem}e"]
        mended += [f"{stem[:-1]}y"] if stem.endswith("i") else []
        mended += [stem[:-1]] if stem[-1] == stem[-2] else []  # running: run
        return any(one in lexicon for one in mended)

    @cache
    def cuts(word: str) -> frozenset[int]:
        for suffix in sorted(SUFFIXES, key=len, reverse=True):
            stem = word.removesuffix(suffix)
            if len(stem) >= STEM and stem != word and is_word(stem):
                return cuts(stem) | {len(stem)}
        for prefix in sorted(PREFIXES, key=len, reverse=True):
            rest = word.removeprefix(prefix)
            if len(rest) >= STEM and rest != word and is_word(rest):
                return frozenset({len(prefix)}) | {len(prefix) + cut for cut in cuts(rest)}
        return frozenset()

    return lambda word: cuts(word.lower())
