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
from besag.evaluation.metrics import Metric, Statistic
from besag.evaluation.regression import Gained, gained
from besag.evaluation.suite import Ask, Item, Row, Score, Source, Suite, register
from besag.files.lines import lines_of
from besag.files.rows import format_of, numbered, read

LIKELIHOOD, VARIANCE = "delta log-likelihood", "delta R2"
SIGNS = "\"'\u2018\u2019\u201c\u201d.,;:!?()[]-\u2013\u2014"  # around words
SUMS = ("log_likelihood", "n_words", "explained", "total")
OF_SENTENCES = "sentences (the regressions stay as they are)"


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

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        return [
            *_metrics(rows, self, self.names[0], ""),
            *(one for name in self.names for one in _metrics(rows, self, name, name)),
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
    for number, row in enumerate(rows):
        places = row["positions"]
        known = [[len(plain(word)) for word in row["words"]]]
        known += [row["log_frequency"]] if "log_frequency" in row else []
        for i in predicted(places, spillover):
            near = range(i, i - spillover - 1, -1)
            times.append(row[f"time:{measure}"][i])
            base.append([places[i], *(values[j] for values in known for j in near)])
            surprisal.append([row["surprisal"][j] for j in near])
            sentence.append(number)
    if not times:
        raise BesagError(f"no word has {spillover} words before it: there is nothing to predict times from")
    return Design(np.array(times, float), np.array(base, float), np.array(surprisal, float), np.array(sentence))


def predicted(positions: Sequence[int], spillover: int) -> list[int]:
    """Return which words of a sentence have all their `spillover` words before them."""
    return [i for i in range(spillover, len(positions)) if positions[i] - positions[i - spillover] == spillover]


def gain(rows: Sequence[Row], suite: ReadingTimes, measure: str) -> tuple[Gained, Ints]:
    """What surprisal adds, and of which sentence each number is."""
    given = design(rows, measure, suite.spillover)
    return gained(given.times, given.baselines, given.surprisal, given.sentence, suite.folds), given.sentence


def _metrics(rows: Sequence[Row], suite: ReadingTimes, measure: str, group: str) -> list[Metric]:
    also = " and frequency" if "log_frequency" in rows[0] else " (no frequencies were given)"
    beyond = f"beyond length, place{also}, of the word and of {suite.spillover} before, on held-out sentences"
    alone = 100 * gain(rows, suite, measure)[0].r2
    told = f"what surprisal adds to the log-likelihood of the time ({measure}) of a word, {beyond}"
    share = (
        f"of the variance of times ({measure}), the share that surprisal explains {beyond}; the baselines alone "
        f"explain {alone:.1f} %"
    )

    def words(row: Row) -> int:
        return len(predicted(row["positions"], suite.spillover))

    def fit(some: Sequence[Row]) -> list[Row]:
        """Of each sentence, sums over its words."""
        found, sentence = gain(some, suite, measure)
        sums = np.zeros((len(some), 4))
        parts = (found.log_likelihood, np.ones(len(sentence)), found.baseline - found.full, found.total)
        np.add.at(sums, sentence, np.stack(parts, 1))
        return [dict(zip(SUMS, one, strict=True)) for one in sums.tolist()]

    def metric(name: str, meaning: str, top: str, bottom: str, scale: float, unit: str) -> Metric:
        ratio = Statistic(lambda x, y: scale * float(x.sum() / y.sum()), (top, bottom), of_units=OF_SENTENCES)
        return Metric(
            name, ratio, meaning, group, where=lambda row: words(row) > 0, fit=fit, size=words, unit=unit, chance=0.0
        )  # fmt: skip

    return [
        metric(LIKELIHOOD, told, "log_likelihood", "n_words", 1000.0, "mnat a word"),
        metric(VARIANCE, share, "explained", "total", 100.0, "%"),
    ]


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
