"""Minimal pairs of any origin: does the model prefer the sentence that people accept?

Rows of TSV, CSV, JSON Lines or Parquet with two sentences, and perhaps a paradigm and a phenomenon; `good` and `bad`
name the columns where they are not called good and bad. Counted as BLiMP is: see `blimp`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from besag.evaluation.metrics import Metric
from besag.evaluation.pair_files import read_pairs
from besag.evaluation.suite import Item, Row, Score, Source, Suite, register
from besag.evaluation.suites.blimp import Blimp, Reduction, by_paradigm, item_of


@register
@dataclass(frozen=True)
class MinimalPairsSuite(Suite):
    name = "minimal_pairs"
    title = "your own minimal pairs, with column names of your own"
    cite = ("warstadt2020", "salazar2020")
    folder = "minimal_pairs"
    files = "TSV, CSV, JSON Lines or Parquet files with the columns good and bad, perhaps paradigm and phenomenon"
    origin = "whoever made the pairs"
    licence = "theirs"

    reduction: Reduction = "sum"
    good: Annotated[str | None, "column of the acceptable sentence: a name, a number from 1, or a path"] = None
    bad: Annotated[str | None, "column of the other sentence"] = None
    header: Annotated[bool | None, "does a TSV or CSV begin with names of columns?"] = None

    def read(self, source: Source) -> Iterator[Item]:
        for file in source.files("*.jsonl", "*.ndjson", "*.json", "*.tsv", "*.csv", "*.parquet"):
            for pair in read_pairs(file, good=self.good, bad=self.bad, header=self.header):
                yield item_of(pair)

    def judge(self, item: Item, given: Sequence[Score]) -> Row:
        return Blimp(self.reduction).judge(item, given)

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        return by_paradigm(rows)
