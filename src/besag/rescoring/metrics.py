"""What a ranking is judged by: word and character errors as jiwer aligns them, BLEU, chrF and TER as sacrebleu counts.

Each metric is a function of sums over utterances, so a hypothesis is looked at once, as a row of statistics, and any
choice among hypotheses is judged by adding rows:

    WER, CER    100 · Σ errors / Σ words (characters) of the references
    TER         100 · Σ edits / Σ words of the references
    BLEU, chrF  sacrebleu's formula of the summed counts of n-grams

Knows texts and references; refuses to know scores.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from besag.arrays import Floats
from besag.errors import require

MetricName = Literal["wer", "cer", "bleu", "chrf", "ter"]


class Metric(ABC):
    name: MetricName
    higher: bool  # is more better?
    errors: bool  # is the first statistic a number of errors, over a second that the reference alone says?

    @abstractmethod
    def statistics(self, references: Sequence[str], hypotheses: Sequence[str]) -> Floats:
        """(n, k), one row for each hypothesis beside its own reference."""

    @abstractmethod
    def value(self, sums: Floats) -> float:
        """Of (k,) summed statistics, in per cent; nan where all references are empty."""

    def loss(self, sums: Floats) -> float:
        return -self.value(sums) if self.higher else self.value(sums)

    def losses(self, sums: Floats) -> Floats:
        """(n,) the loss of each row of (n, k) sums."""
        return np.array([self.loss(row) for row in sums])


class Errors(Metric):
    """jiwer's alignment of words or characters."""

    higher, errors = False, True

    def __init__(self, name: Literal["wer", "cer"]) -> None:
        self.name = name
        jiwer = require("jiwer", extra="rescore")
        self._align = jiwer.process_words if name == "wer" else jiwer.process_characters

    def statistics(self, references: Sequence[str], hypotheses: Sequence[str]) -> Floats:
        found = self._align(list(references), list(hypotheses))
        rows = [
            (sum(_size(chunk) for chunk in chunks if chunk.type != "equal"), len(reference))
            for chunks, reference in zip(found.alignments, found.references, strict=True)
        ]
        return np.array(rows, np.float64)

    def value(self, sums: Floats) -> float:
        return float(100 * sums[0] / sums[1]) if sums[1] else math.nan

    def losses(self, sums: Floats) -> Floats:
        found: Floats = np.where(sums[:, 1] > 0, 100 * sums[:, 0] / np.maximum(sums[:, 1], 1), np.nan)
        return found


def _size(chunk: Any) -> int:
    """How many substitutions, deletions or insertions a chunk of an alignment is."""
    return int(max(chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx))


class Translation(Metric):
    """sacrebleu's corpus metrics with their usual settings."""

    def __init__(self, name: Literal["bleu", "chrf", "ter"]) -> None:
        self.name, self.higher, self.errors = name, name != "ter", name == "ter"
        metrics = require("sacrebleu.metrics", extra="rescore")
        self._metric = {"bleu": metrics.BLEU, "chrf": metrics.CHRF, "ter": metrics.TER}[name]()

    @property
    def signature(self) -> str:
        """What sacrebleu says of its settings, after it has looked at something."""
        return str(self._metric.get_signature())

    def statistics(self, references: Sequence[str], hypotheses: Sequence[str]) -> Floats:
        # sacrebleu offers its rows of counts to its own bootstrap only; tests hold the sums to its corpus_score
        return np.array(self._metric._extract_corpus_statistics(list(hypotheses), [list(references)]), np.float64)

    def value(self, sums: Floats) -> float:
        counts = sums.tolist() if self.name == "ter" else [round(count) for count in sums.tolist()]
        return float(self._metric._compute_score_from_stats(counts).score)


def metric_named(name: MetricName) -> Metric:
    return Errors(name) if name == "wer" or name == "cer" else Translation(name)
