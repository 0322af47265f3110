"""Acceptability: do scores go with how people rate sentences (Lau, Clark and Lappin 2017; Lau et al. 2020)?

Pearson's r and Spearman's ρ between mean ratings and four measures of a sentence of n tokens, by its score LP:

    LP        log p(s), by any method of scoring
    MeanLP    LP / n
    PenLP     LP / ((5 + n) / (5 + 1))^0.8
    SLOR      (LP − log p_u(s)) / n

with p_u the unigram probability of the tokens. It is estimated from a text that is given (`unigrams=FILE.txt`), cut by
the model's own tokenizer, or from counts (a TSV of token and count); each token of the vocabulary counts one more, so
none is impossible. Without such a file there is no SLOR. Intervals are by the bootstrap over sentences.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from besag.errors import BesagError, quoted
from besag.evaluation.asking import Model
from besag.evaluation.metrics import Metric, Statistic, per_group
from besag.evaluation.suite import Answer, Ask, Item, Row, Source, Suite, register
from besag.files.lines import lines_of
from besag.files.packed import plain_name
from besag.files.rows import read
from besag.scores import Method
from besag.statistics import pearson, spearman

MEASURES = {"pen_lp": "PenLP", "lp": "LP", "mean_lp": "MeanLP", "slor": "SLOR"}  # the headline first
ALPHA, START = 0.8, 5  # of PenLP
TOGETHER = 512  # lines that are tokenised at a time


@register
@dataclass(frozen=True)
class Acceptability(Suite):
    name = "acceptability"
    title = "graded judgements: do scores correlate with mean ratings?"
    cite = ("lau2020", "lau2017")
    folder = "acceptability_in_context"
    files = "context-none-ratings.csv (ID, sentence, mean-ratings, source-language), or any table of such columns"
    origin = "https://github.com/jhlau/acceptability-prediction-in-context"
    licence = "Apache 2.0"
    ties = "equal numbers share the mean of their ranks (Spearman)"

    sentence: Annotated[str, "column of the sentence"] = "sentence"
    rating: Annotated[str, "column of the mean rating"] = "mean-ratings"
    kind: Annotated[str, "column that says of which kind a sentence is; empty for none"] = "source-language"
    identifier: Annotated[str, "column of ids; empty for line numbers"] = "ID"
    unigrams: Annotated[str | None, "for SLOR: a text to count tokens in, or a TSV of token and count"] = None

    def read(self, source: Source) -> Iterator[Item]:
        for table in source.tables("*.csv", "*.tsv", "*.jsonl"):
            for row in table.rows:
                sentence, rating = source.texts(row, self.sentence, self.rating)
                [kind] = source.texts(row, self.kind) if self.kind else ["all"]
                [name] = source.texts(row, self.identifier) if self.identifier else [str(row.place)]
                about = {"sentence": sentence, "rating": _rating(rating, f"{row.where}: {self.rating}")}
                yield Item(name, kind, (Ask(sentence),), about, row.where)

    def answers(
        self, lm: Model, items: Sequence[Item], method: Method | None, block: int | None = None
    ) -> Iterator[Answer]:
        """The score, and the unigram log-probability of its tokens where one was asked for."""
        unigrams = None if self.unigrams is None else Unigrams(lm, self.unigrams)
        for item, given, status in super().answers(lm, items, method, block):
            yield Answer(item, [*given, *([unigrams(one.tokens) for one in given] if unigrams else [])], status)

    def judge(self, item: Item, given: Sequence[Any]) -> Row:
        score, n = given[0], len(given[0].tokens)
        found = {"n_tokens": n, "lp": score.total, "mean_lp": score.total / n,
                 "pen_lp": score.total / ((START + n) / (START + 1)) ** ALPHA}  # fmt: skip
        slor = {"unigram_lp": given[1], "slor": (score.total - given[1]) / n} if len(given) > 1 else {}
        return {**item.about, **found, **slor}

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        there = {name: label for name, label in MEASURES.items() if name in rows[0]}
        whence = "" if self.unigrams is None else f"; unigrams of {Path(self.unigrams).name}"
        found = [
            Metric(f"{word} {label}", Statistic(function, (name, "rating")), _meaning(word, label, whence), unit="",
                   chance=0.0)
            for word, function in (("Pearson", pearson), ("Spearman", spearman)) for name, label in there.items()
        ]  # fmt: skip
        kinds = per_group(rows, "group", found[0])
        return [*found, *(kinds if len(kinds) > 1 else [])]


def _rating(said: str, where: str) -> float:
    try:
        rating = float(said)
    except ValueError:
        rating = math.nan
    if not math.isfinite(rating):
        raise BesagError(f"{where} is {quoted(said)}, and no finite number")
    return rating


def _meaning(word: str, label: str, whence: str) -> str:
    slor = whence if label == "SLOR" else ""
    return f"{word}'s correlation of {label} with the mean rating, over sentences; 1 is perfect, 0 is none{slor}"


class Unigrams:
    """log p_u of tokens: (count + 1) / (all counts + V)."""

    def __init__(self, lm: Model, path: str) -> None:
        self.counts = _counted(path) if plain_name(path).endswith(".tsv") else _of_text(lm, path)
        if not self.counts:
            raise BesagError(f"{path} holds no token to count")
        self.total = self.counts.total() + lm.conditionals.width

    def __call__(self, tokens: Sequence[str]) -> float:
        return sum(math.log((self.counts[token] + 1) / self.total) for token in tokens)


def _counted(path: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in read(path, "tsv"):
        assert not isinstance(row.values, str)
        if not {"token", "count"} <= row.values.keys():
            raise BesagError(f"{row.where} needs the columns token and count, and has {', '.join(row.values)}")
        token, count = str(row.values["token"]), str(row.values["count"])
        if not count.isdecimal():
            raise BesagError(f"{row.where}: count is {quoted(count)}, and no whole number")
        found[token] += int(count)
    return found


def _of_text(lm: Model, path: str) -> Counter[str]:
    found: Counter[str] = Counter()
    texts = [line for _, line in lines_of(path) if line.strip()]
    for start in range(0, len(texts), TOGETHER):
        for encoded in lm.vocabulary.encode(texts[start : start + TOGETHER]):
            found.update(encoded.tokens[place] for place in encoded.places)
    return found
