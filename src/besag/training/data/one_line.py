"""Pairs on one line, for a network without a decoder: a source that stays shown, and a target whose places are hidden.

    data.template = "{source} It was {target}."      the line; all of it but the target is shown, always

A line is a document whose given span is the target, so tokens are marked where they stand in the text, and not joined
afterwards. What is outside the span may not be hidden: to a law of masks and to an objective it is as special tokens
are. So every objective that hides what is free, a diffusion's among them, learns p(target | source). Knows pairs as
`parallel` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from besag.masks import Masking
from besag.masks.passages import Passages
from besag.training.data import parallel
from besag.training.data.assembly import Template
from besag.training.data.cache import Cache, prepared
from besag.training.data.clock import Clock
from besag.training.data.loader import BatchDataset
from besag.training.data.pair_batches import WholePlan
from besag.training.data.sources import Document, Which
from besag.training.recipe import Data
from besag.vocabulary import Vocabulary

SOURCE, TARGET = "{source}", "{target}"


def documents(data: Data, which: Which = "train") -> Iterator[Document]:
    """The line of each pair, its target as a span."""
    for pair in parallel.pairs(data, which):
        text, span = line(data.template, pair.source.text, pair.target.text)
        yield Document(text, [span], pair.source.origin)


def line(template: str, source: str, target: str) -> tuple[str, tuple[int, int]]:
    """The template with both written in, and where in it the target stands.

    >>> line("{source} It was {target}.", "A long film.", "dull")
    ('A long film. It was dull.', (20, 24))
    """
    before, after = (part.replace(SOURCE, source) for part in template.split(TARGET))
    return before + target + after, (len(before), len(before) + len(target))


def prepare(data: Data, vocabulary: Vocabulary, folder: str | Path, which: Which = "train") -> Cache:
    """The cache of these lines: the one that is there, verified, or a new one."""
    made_of = {**parallel.fingerprint(data, which), "template": data.template}
    return prepared(documents(data, which), vocabulary, folder, f"{which}-lines", made_of)


class LineBatches(BatchDataset):
    """Batch `index` of the run; only tokens of the target are free."""

    def clean(self, index: int) -> Passages:
        passages = super().clean(index)
        return passages._replace(free=passages.free & (passages.span >= 0))


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
) -> LineBatches:
    plan = WholePlan(cache, data, special=Template(vocabulary).size, seed=seed, unpadded=unpadded)
    return LineBatches(plan, vocabulary, masking, clock, seed=seed, static=static)
