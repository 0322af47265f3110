"""BLiMP: does the model prefer the acceptable sentence of each minimal pair (Warstadt et al. 2020)?

A pair counts 1 where score(good) > score(bad), ½ where they are equal, 0 otherwise. The overall figure is the published
one, the mean over paradigms; that of a phenomenon is the mean over its paradigms. Guessing gives 50 %.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from besag.evaluation.metrics import Mean, Metric, credit, is_tie, per_group
from besag.evaluation.pair_files import MinimalPair, pair_of
from besag.evaluation.suite import Ask, Item, Row, Score, Source, Suite, register

Reduction = Annotated[Literal["sum", "mean"], "what is compared: the sum over tokens, or their mean"]


@register
@dataclass(frozen=True)
class Blimp(Suite):
    name = "blimp"
    title = "minimal pairs: does the acceptable sentence of two score higher?"
    cite = ("warstadt2020",)
    folder = "blimp"
    files = "one JSON Lines file a paradigm (sentence_good, sentence_bad, UID, linguistics_term, pairID)"
    origin = "https://github.com/alexwarstadt/blimp"
    licence = "CC BY 4.0"
    hub = "nyu-mll/blimp"

    reduction: Reduction = "sum"

    def read(self, source: Source) -> Iterator[Item]:
        for table in source.tables("*.jsonl"):
            for row in table.rows:
                yield item_of(pair_of(row, table.name))

    def judge(self, item: Item, given: Sequence[Score]) -> Row:
        good, bad = (one.total if self.reduction == "sum" else one.mean for one in given)
        return {**item.about, "good_score": good, "bad_score": bad, "credit": credit(good, bad)}

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        return by_paradigm(rows)


def item_of(pair: MinimalPair) -> Item:
    """A pair as an item: its paradigm is its group."""
    about = {"phenomenon": pair.group, "good": pair.good, "bad": pair.bad}
    return Item(f"{pair.paradigm}/{pair.name}", pair.paradigm, (Ask(pair.good), Ask(pair.bad)), about, pair.where)


def by_paradigm(rows: Sequence[Row]) -> list[Metric]:
    """Return the mean over paradigms, over pairs, then of each phenomenon and paradigm."""
    won = "of the pairs, the share in which the acceptable sentence scores higher (50 % is guessing)"
    macro = Metric("accuracy", Mean(over=("group",)), f"mean over paradigms {won}", chance=50.0, ties=is_tie)
    micro = Mean(over=("group",), by_size=True)
    return [
        macro,
        replace(macro, name="accuracy over pairs", estimator=micro, meaning=won),
        *per_group(rows, "phenomenon", replace(macro, meaning=f"mean over its paradigms {won}")),
        *per_group(rows, "group", replace(macro, name="accuracy of a paradigm", estimator=Mean(), meaning=won)),
    ]
