"""The reading task of the BabyLM pipeline (2025): how much of reading times does a masked model's surprise explain?

A word is guessed from what stands before it: the context, then three masks, of which the first is asked. A word of
several tokens is asked token after token, each written behind the context when it has been asked:

    surprisal = −Σ_t log p(first mask = w_t | context, w_<t, [MASK][MASK][MASK])

So, unlike by `chain`, the model is not told how many tokens are to come. A score is the published one, in per cent

    100 · (R² − R²₀) / (1 − R²₀)                the share of what the baselines leave open that surprisal explains

of two least-squares regressions on all words. Eye tracking: the mean of it over the columns RT…; baselines are log
frequency, length, length of the context, and their products in pairs. Self-paced reading: also the length and the
surprisal of the word before, with all products in pairs. Nothing is held out: more predictors never explain less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from besag.arrays import Floats
from besag.errors import BesagError, quoted
from besag.evaluation.metrics import Metric, Statistic
from besag.evaluation.suite import Answer, Item, Model, Row, Source, Suite, register
from besag.places.reading import MASK
from besag.results.status import Status

MASKS = 3  # that stand behind a context
MISSING = {"", "na", "nan", "none", "null", "n/a"}  # how a table says that there is no value
NO_CONTEXT = "None"  # what the pipeline shows before the first word of a sentence
PLAIN = ("Subtlex_log10", "length", "context_length")
SPILLING = (*PLAIN, "prev_length", "prev_pred")
EYES = ("RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound")
SELF_PACED = "self_paced_reading_time"
TINY = 1e-12  # of the variance: as much as rounding leaves
TEXTS = ("item", "word", "prev_item", "prev_word")
LEFT_OPEN = "of the variance of {} that the baselines leave open, the share that surprisal explains (not held out)"


@register
@dataclass(frozen=True)
class BabyLMReading(Suite):
    name = "babylm_reading"
    title = "BabyLM's reading task: does surprisal at three masks explain reading times?"
    cite = ("charpentier2025",)
    folder = "babylm/reading"
    files = f"reading_data.csv of the pipeline ({', '.join((*TEXTS, *PLAIN, 'prev_length', *EYES, SELF_PACED))})"
    origin = "https://github.com/babylm/evaluation-pipeline-2025 (the data: https://osf.io/ryjfm)"
    licence = "that of the task"
    asked = "tokens at masks"
    methods = ()
    causal_methods = ()
    ties = "there are no ties"

    def read(self, source: Source) -> Iterator[Item]:
        for table in source.tables("*.csv", "reading/*.csv"):
            for row in table.rows:
                words = dict(zip(TEXTS, source.texts(row, *TEXTS), strict=True))
                if _missing(words["word"]):
                    raise BesagError(f"{row.where} has no 'word'")
                if _missing(words["item"]):
                    words["item"] = NO_CONTEXT
                names = (*PLAIN, "prev_length", *EYES, SELF_PACED)
                said = zip(names, source.texts(row, *names), strict=True)
                numbers = {name: _number(text, name, row.where) for name, text in said if not _missing(text)}
                yield Item(f"{table.name}/{row.place}", table.name, (), words | numbers, row.where)

    def answers(self, lm: Model, items: Sequence[Item], method: Any, block: int | None = None) -> Iterator[Answer]:
        if lm.conditionals.sees != "both":
            raise BesagError(f"{lm.name!r} reads from the left and has no masks: `reading_times` asks causal models")
        for start in range(0, len(items), block or len(items)):
            some = items[start : start + (block or len(items))]
            asked = [pair for item in some for pair in _asked(item)]
            known = iter(surprisals(lm, [pair for pair in asked if pair is not None]))
            for item in some:
                found = [math.nan if pair is None else next(known) for pair in _asked(item)]
                yield Answer(item, found, Status.OK)

    def judge(self, item: Item, given: Sequence[float]) -> Row:
        pred, before = given
        return {**item.about, "pred": pred, **({} if math.isnan(before) else {"prev_pred": before})}

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        eyes = [name for name in EYES if any(name in row for row in rows)]
        paced = any({SELF_PACED, "prev_pred"} <= row.keys() for row in rows)
        if not eyes and not paced:
            raise BesagError(f"no word has a time: give {', '.join(EYES)} or {SELF_PACED}")
        return [
            *([_metric(rows, eyes, PLAIN, "eye tracking", "")] if eyes else []),
            *([_metric(rows, [SELF_PACED], SPILLING, "self-paced reading", "")] if paced else []),
            *(_metric(rows, [name], PLAIN, "eye tracking", name) for name in eyes),
        ]

    def documents(self, rows: Sequence[Row]) -> dict[str, Any]:
        """`predictions.json`, as the pipeline collates it."""
        each = [{"id": number, "pred": row["pred"], "prev_pred": row.get("prev_pred", math.nan)}
                for number, row in enumerate(rows)]  # fmt: skip
        return {"predictions": {"reading": {"predictions": each}}}


def surprisals(lm: Model, words: Sequence[tuple[str, str]]) -> list[float]:
    """−log p of each word after its context, a token after the other, at the first of three masks."""
    tokenizer = lm.vocabulary.tokenizer
    before, wanted, of = [], [], []
    for number, (context, word) in enumerate(words):
        shown = context
        for place, token in enumerate(tokenizer(word, add_special_tokens=False)["input_ids"]):
            piece = tokenizer.decode(token)  # what is written behind the context, and read again as text
            again = tokenizer(piece, add_special_tokens=False)["input_ids"]
            before.append(shown)
            wanted.append(token if place == 0 or not again else again[0])
            of.append(number)
            shown += piece
    rows = lm.marginals([MASK] * len(before), prefix=before, suffix=MASK * (MASKS - 1), separator="")
    total = np.zeros(len(words))
    for number, token, row in zip(of, wanted, rows, strict=True):
        if row.status != "ok":
            context, word = words[number]
            raise BesagError(f"{quoted(word)} after {quoted(context)} cannot be asked: {row.status}")
        total[number] -= float(row.log_probs[0, token])
    return [float(value) for value in total]


def explained(y: Floats, baselines: Floats, predictor: Floats) -> float:
    """(R² − R²₀) / (1 − R²₀) in per cent, nan where nothing is left open; of (n,), (n, p) before products, (n,)."""
    pairs = [baselines[:, [a]] * baselines[:, [b]] for a, b in combinations(range(baselines.shape[1]), 2)]
    small = np.concatenate([np.ones((len(y), 1)), baselines, *pairs], 1)
    large = np.concatenate([small, predictor[:, None]], 1)
    left, less = (float(((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2).sum()) for x in (small, large))
    nothing = TINY * float(((y - y.mean()) ** 2).sum())
    return 100 * (left - less) / left if left > nothing else math.nan


def score(table: Floats, measures: int = 1) -> float:
    """Return the mean over measures of what is explained, of (n, m + 1 + p): times, surprisal, baselines; nan: missing.

    Of each measure the words are used that have it.
    """
    tables = [np.delete(table, [one for one in range(measures) if one != kept], 1) for kept in range(measures)]
    whole = [one[~np.isnan(one).any(1)] for one in tables]
    return float(np.mean([explained(one[:, 0], one[:, 2:], one[:, 1]) for one in whole]))


def _metric(rows: Sequence[Row], measures: Sequence[str], baselines: Sequence[str], name: str, group: str) -> Metric:
    known = ("pred", *baselines)
    meaning = LEFT_OPEN.format(measures[0] if len(measures) == 1 else f"times (mean over {', '.join(measures)})")

    def where(row: Row) -> bool:
        return all(_has(row, one) for one in known) and any(_has(row, one) for one in measures)

    predictors = 2 + len(baselines) * (len(baselines) + 1) // 2
    for measure in measures:
        words = sum(where(row) and _has(row, measure) for row in rows)
        if words <= predictors:
            raise BesagError(f"{words} words with {measure} are too few to fit {predictors} coefficients to")
    vector = lambda row: [row.get(one, math.nan) for one in (*measures, *known)]  # noqa: E731
    function = lambda table: score(table, len(measures))  # noqa: E731
    return Metric(name, Statistic(function, (vector,)), meaning, group, where=where, chance=0.0)


def _has(row: Row, name: str) -> bool:
    return name in row and not math.isnan(row[name])


def _asked(item: Item) -> tuple[tuple[str, str], tuple[str, str] | None]:
    """The word after its context, and the word before after its own, where there is one."""
    about = item.about
    before = None if _missing(about["prev_item"]) else (about["prev_item"], about["prev_word"])
    return (about["item"], about["word"]), before


def _missing(said: str) -> bool:
    return said.strip().lower() in MISSING


def _number(said: str, name: str, where: str) -> float:
    try:
        return float(said)
    except ValueError:
        raise BesagError(f"{where}: {name} is {quoted(said)}, which is no number") from None
