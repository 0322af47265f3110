"""Pairs on one line, for a network without a decoder: a source that stays shown, and a target whose places are hidden.

    data.template = "{source} It was {target}."      the line; all of it but the target is shown, always
    data.template = "{premise} So {hypothesis} {target}."      the same, of several columns

Answer-token prediction (instruction tuning of masked models, Clavié et al. 2025) is this with masking.rate = 1: the
masked head itself learns to write the answer, and nothing else of the line is asked. Of some lines (`data.plain`, the
paper's share of ordinary masked language modelling) 30 % of all tokens, prompt and answer alike, are hidden instead.

A line is a document whose given span is the target, so tokens are marked where they stand in the text, and not joined
afterwards. What is outside the span may not be hidden: to a law of masks and to an objective it is as special tokens
are. So every objective that hides what is free, a diffusion's among them, learns p(target | source). Knows pairs as
`parallel` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from besag import noise, templates
from besag.masks import Masking
from besag.masks.passages import Passages
from besag.noise import Training
from besag.training.data import parallel
from besag.training.data.assembly import Template
from besag.training.data.cache import Cache, prepared
from besag.training.data.clock import Clock
from besag.training.data.loader import BatchDataset
from besag.training.data.pair_batches import WholePlan
from besag.training.data.sources import Document, Which
from besag.training.recipe import Data
from besag.vocabulary import Vocabulary

PLAIN = 0.3  # of the tokens of a line that is learned as plain text


def documents(data: Data, which: Which = "train") -> Iterator[Document]:
    """The line of each pair, its target as a span."""
    for pair in parallel.pairs(data, which):
        text, span = line(data.template, pair.columns or {"source": pair.source.text}, pair.target.text)
        yield Document(text, [span], pair.source.origin)


def line(template: str, columns: Mapping[str, str], target: str) -> tuple[str, tuple[int, int]]:
    """The template with all written in, and where in it the target stands.

    >>> line("{source} It was {target}.", {"source": "A long film."}, "dull")
    ('A long film. It was dull.', (20, 24))
    """
    before, after = templates.around(template, columns)
    return before + target + after, (len(before), len(before) + len(target))


def prepare(data: Data, vocabulary: Vocabulary, folder: str | Path, which: Which = "train") -> Cache:
    """The cache of these lines: the one that is there, verified, or a new one."""
    made_of = {**parallel.fingerprint(data, which), "template": data.template, "answers": dict(data.answers)}
    return prepared(documents(data, which), vocabulary, folder, f"{which}-lines", made_of)


class LineBatches(BatchDataset):
    """Batch `index` of the run; only tokens of the target are free, and of plain lines those drawn to be hidden."""

    plain = 0.0  # share of the lines

    def clean(self, index: int) -> Passages:
        passages = super().clean(index)
        answer = passages.free & (passages.span >= 0)
        if not self.plain:
            return passages._replace(free=answer)
        seed, row, draw = self.maker.seed, passages.row, passages.draw
        is_plain = noise.uniform(seed, Training.LINE_PLAIN, draw) < self.plain  # (R,)
        drawn = noise.uniform(seed, Training.LINE_HIDE, draw[row], passages.place) < PLAIN  # (T,)
        return passages._replace(free=np.where(is_plain[row], passages.free & drawn, answer))


def batches(
    cache: Cache,
    data: Data,
    vocabulary: Vocabulary,
    masking: Masking,
    clock: Clock,
    *,
    seed: int,
    unpadded: bool = False,
    static: bool = False,
    plain: float = 0.0,
) -> LineBatches:
    """`plain`: the share of lines that are learned as plain text; none where answers are judged."""
    plan = WholePlan(cache, data, special=Template(vocabulary).size, seed=seed, unpadded=unpadded)
    found = LineBatches(plan, vocabulary, masking, clock, seed=seed, static=static)
    found.plain = plain
    return found
