"""Reading times: does surprisal tell how long a word is read, beyond its length, frequency and place?

The surprisal of a word is −Σ log p over its tokens. Two regressions predict the time of word i, both from the baselines
of the word and of the `spillover` words before it, one also from their surprisals; on held-out folds of sentences,

    Δℓ   = the log-likelihood that surprisal gains for a word      ΔR²  = the share of variance that it explains

(`regression.py`). Words without so many neighbours before them are in neither regression. Frequencies are those of a
file: of counts, or of text in which words are counted; without one they are no baseline, and rare words, which surprise
more and take longer, are then the model's merit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from besag.arrays import Floats, Ints
from besag.errors import BesagError, quoted
from besag.evaluation.figures import HIGHER, Figure, bootstrap
from besag.evaluation.regression import Gained, gained
from besag.evaluation.suite import Ask, Item, Row, Score, Source, Suite, register
from besag.files.lines import lines_of
from besag.files.rows import format_of, numbered, read

LIKELIHOOD, VARIANCE = "delta log-likelihood", "delta R2"
SIGNS = "\"'\u2018\u2019\u201c\u201d.,;:!?()[]-\u2013\u2014"  # around words
OF_SENTENCES = "the bootstrap over sentences, 1,000 draws; the regressions stay as they are"


@register
@dataclass(frozen=True)
class ReadingTimes(Suite):
    name = "reading_times"
    title = "does surprisal predict reading times, beyond length, frequency and place?"
    cite = ("luke2018", "smith2013", "goodkind2018")
    folder = "provo"
    files = "CSV or TSV files with the columns sentence_id, word_id, word, and a column for each measure"
    origin = "https://osf.io/sjefs (the Provo corpus, as the CMCL shared task prepared it)"
    licence = "CC BY 4.0"
    methods = ("chain",)
    scoring = {"words": "whitespace"}  # noqa: RUF012 (declared as a mapping)
    ties = "there are no ties"

    measures: Annotated[str, "columns of times, the headline first, with commas between"] = "GPT,FFD,TRT"
    spillover: Annotated[int, "how many words before count, too"] = 1
    folds: Annotated[int, "of sentences"] = 10
    frequencies: Annotated[str | None, "a file: TSV or CSV of words and counts, or text to count in"] = None

    def __post_init__(self) -> None:
        if not 0 <= self.spillover <= 8:
            raise BesagError(f"spillover={self.spillover}: from 0 to 8 words before")
        if not 2 <= self.folds <= 1000:
            raise BesagError(f"folds={self.folds}: from 2 to 1,000")
        if not all(self.names):
            raise BesagError(f"measures={self.measures!r}: names of columns, with commas between")

    @property
    def names(self) -> list[str]:
        return [one.strip() for one in self.measures.split(",")]

    def read(self, source: Source) -> Iterator[Item]:
        log_frequency = None if self.frequencies is None else frequencies(self.frequencies)
        for table in source.tables("*.csv", "*.tsv"):
            sentence: list[Word] = []
            for row in table.rows:
                word = self._word(source, row)
                if sentence and sentence[0].sentence != word.sentence:
                    yield self._item(table.name, sentence, log_frequency)
                    sentence = []
                sentence.append(word)
            if sentence:
                yield self._item(table.name, sentence, log_frequency)

    def _word(self, source: Source, row: Any) -> Word:
        sentence, place, word, *times = source.texts(row, "sentence_id", "word_id", "word", *self.names)
        if not word.strip() or len(word.split()) > 1:
            raise BesagError(f"{row.where}: {word!r} is no word")
        return Word(
            sentence, int(_number(place, "word_id", row.where)), word.strip(),
            [_number(time, name, row.where) for name, time in zip(self.names, times, strict=True)], row.where,
        )  # fmt: skip

    def _item(self, table: str, words: Sequence[Word], log_frequency: Mapping[str, float] | None) -> Item:
        about: dict[str, Any] = {
            "words": [one.text for one in words],
            "positions": [one.place for one in words],
            **{f"time:{name}": [one.times[k] for one in words] for k, name in enumerate(self.names)},
        }
        if log_frequency is not None:
            about["log_frequency"] = [log_frequency.get(plain(one.text), log_frequency[""]) for one in words]
        text = " ".join(about["words"])
        return Item(f"{table}/{words[0].sentence}", table, (Ask(text),), about, words[0].where)

    def judge(self, item: Item, given: Sequence[Score]) -> Row:
        [score] = given
        ends = np.cumsum([len(word) + 1 for word in item.about["words"]]).tolist()
        spans = [(end - 1 - len(word), end - 1) for word, end in zip(item.about["words"], ends, strict=True)]
        surprisal = [-piece.value for piece in score.by_span(spans, tiling=True)]
        there = [place for place, value in enumerate(surprisal) if not math.isnan(value)]  # a word may have no token
        known = {**item.about, "surprisal": surprisal}
        return {name: [values[place] for place in there] for name, values in known.items()}

    def figures(self, rows: Sequence[Row]) -> list[Figure]:
        return [
            *_figures(rows, self, self.names[0], ""),
            *(one for name in self.names for one in _figures(rows, self, name, name)),
        ]


class Word(NamedTuple):
    sentence: str
    place: int
    text: str
    times: list[float]
    where: str


class Design(NamedTuple):
    """What the regressions are given: n words that have all their neighbours."""

    times: Floats  # (n,)
    baselines: Floats  # (n, p)
    surprisal: Floats  # (n, 1 + spillover)
    sentence: Ints  # (n,)


def design(rows: Sequence[Row], measure: str, spillover: int) -> Design:
    """Of the words whose `spillover` words before are there: place, and of each length, frequency, surprisal."""
    times, base, surprisal, sentence = [], [], [], []
    numbers = {row["id"]: number for number, row in enumerate(rows)}  # a row that was drawn twice is one sentence
    for row in rows:
        places = row["positions"]
        known = [[len(plain(word)) for word in row["words"]]]
        known += [row["log_frequency"]] if "log_frequency" in row else []
        for i in range(spillover, len(places)):
            near = range(i, i - spillover - 1, -1)
            if places[i] - places[i - spillover] != spillover:
                continue
            times.append(row[f"time:{measure}"][i])
            base.append([places[i], *(values[j] for values in known for j in near)])
            surprisal.append([row["surprisal"][j] for j in near])
            sentence.append(numbers[row["id"]])
    if not times:
        raise BesagError(f"no word has {spillover} words before it: there is nothing to predict times from")
    order = np.argsort(sentence, kind="stable")
    return Design(*(np.array(part, kind)[order] for part, kind in zip(
        (times, base, surprisal, sentence), (float, float, float, np.int64), strict=True)))  # fmt: skip


def gain(rows: Sequence[Row], suite: ReadingTimes, measure: str) -> tuple[Gained, Ints]:
    """What surprisal adds, and of which sentence each number is."""
    given = design(rows, measure, suite.spillover)
    return gained(given.times, given.baselines, given.surprisal, given.sentence, suite.folds), given.sentence


def _figures(rows: Sequence[Row], suite: ReadingTimes, measure: str, group: str) -> list[Figure]:
    found, sentence = gain(rows, suite, measure)
    _, which = np.unique(sentence, return_inverse=True)
    sums = np.zeros((which.max() + 1, 4))  # of each sentence: Δℓ, words, SSE₀ − SSE₁, SST
    np.add.at(sums, which, np.stack([
        found.log_likelihood, np.ones(len(which)), found.baseline - found.full, found.total], 1))  # fmt: skip
    also = " and frequency" if "log_frequency" in rows[0] else " (no frequencies were given)"
    beyond = f"beyond length, place{also}, of the word and of {suite.spillover} before, on held-out sentences"

    def ratio(top: int, bottom: int, scale: float) -> tuple[float, float, float]:
        return bootstrap(len(sums), lambda drawn: scale * float(sums[drawn, top].sum() / sums[drawn, bottom].sum()))

    made = [
        (LIKELIHOOD, 1000 * found.delta_log_likelihood, ratio(0, 1, 1000.0), "mnat a word",
         f"what surprisal adds to the log-likelihood of the time ({measure}) of a word, {beyond}",
         lambda some: 1000 * gain(some, suite, measure)[0].delta_log_likelihood),
        (VARIANCE, 100 * found.delta_r2, ratio(2, 3, 100.0), "%",
         f"of the variance of times ({measure}), the share that surprisal explains {beyond}; "
         f"the baselines alone explain {100 * found.r2:.1f} %",
         lambda some: 100 * gain(some, suite, measure)[0].delta_r2),
    ]  # fmt: skip
    return [
        Figure(name, value, len(which), se, meaning, group, None, HIGHER, unit, OF_SENTENCES, low, high, 0.0,
               statistic=statistic)
        for name, value, (se, low, high), unit, meaning, statistic in made
    ]  # fmt: skip


def plain(word: str) -> str:
    """As words are counted: small letters, without the signs around it (itself where it is nothing else)."""
    found = word.lower().strip(SIGNS)
    return found or word


def frequencies(path: str) -> dict[str, float]:
    """ln((count + 1) / (all + types + 1)) of each word; under "" that of a word that is not there."""
    counts: Counter[str] = Counter()
    if format_of(path) in ("tsv", "csv"):
        for row in read(path, header=numbered):
            assert not isinstance(row.values, str)
            word, count = [str(one) for one in (*row.values.values(), "", "")][:2]
            if row.place == 1 and not count.replace(".", "").isdecimal():
                continue  # names of columns
            number = _number(count, "the second column", row.where)
            if number < 0:
                raise BesagError(f"{row.where}: a count is 0 or more, and {count!r} is not")
            counts[plain(word)] += int(number)
    else:
        for _, line in lines_of(path):
            counts.update(plain(word) for word in line.split())
    if not counts:
        raise BesagError(f"{quoted(path)} holds no words to count")
    every = math.log(sum(counts.values()) + len(counts) + 1)
    return {word: math.log(count + 1) - every for word, count in counts.items()} | {"": -every}


def _number(said: str, name: str, where: str) -> float:
    try:
        number = float(said)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BesagError(f"{where}: {name} is {quoted(said)}, which is no number")
    return number
