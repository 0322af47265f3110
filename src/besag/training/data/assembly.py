"""From runs of tokens to a batch: special tokens around them, word and span numbers, masks, tensors.

Knows what stands around a passage and how a batch is filled up to a static shape; knows no files and no order. A batch
that is unpadded has no padding at all, unless its shape is to be static.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from besag.arrays import Bools, Ints
from besag.errors import BesagError
from besag.masks import Masking
from besag.masks.law import Adaptive
from besag.masks.passages import NO_TAGS, Passages
from besag.training.data.tokens import IN_SPAN, SPAN, TAG, WORD, width
from besag.training.network.batch import Batch, Layout, Source
from besag.training.network.tiles import TILE, cut
from besag.vocabulary import Vocabulary

MULTIPLE = 256  # how many tokens are asked is rounded up to this, so that shapes are few


class Parts(NamedTuple):
    """A batch that is not masked yet."""

    passages: Passages
    step: int
    progress: float
    source: Passages | None = None  # the texts that the passages translate, row by row
    shown: Ints | None = None  # (T,) what stands there where nothing is hidden, if not the passages themselves
    relation: Ints | None = None  # (R,) how two pieces in a passage belong together, −1: no word of it


class Template:
    """What stands around a passage, and which tokens may be hidden."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        if vocabulary.mask_id is None or vocabulary.mask_token is None or vocabulary.pad_id is None:
            missing = "mask" if vocabulary.mask_id is None else "padding"
            raise BesagError(f"this tokenizer has no {missing} token, which training needs.")
        [example] = vocabulary.encode([vocabulary.mask_token])
        inside = np.flatnonzero(~example.special)
        self.head: Ints = example.ids[: inside[0]]
        self.tail: Ints = example.ids[inside[-1] + 1 :]
        self.pad_id = vocabulary.pad_id
        self.special: Bools = np.zeros(width(vocabulary), np.bool_)  # (V,)
        self.special[[id for id in vocabulary.special_ids if id != vocabulary.unknown_id]] = True

    @property
    def size(self) -> int:
        return len(self.head) + len(self.tail)

    def passages(self, tokens: np.ndarray, marks: np.ndarray, start: Ints, length: Ints, draw: Ints) -> Passages:
        """The runs (start, length) of tokens, each between head and tail."""
        head, tail = len(self.head), len(self.tail)
        size = length + head + tail  # (R,)
        end = np.cumsum(size)
        first = end - size
        row = np.repeat(np.arange(len(size)), size)  # (T,)
        number = np.arange(len(row))
        inner = np.flatnonzero((number >= (first + head)[row]) & (number < (end - tail)[row]))
        place = (start - first - head)[row[inner]] + inner  # of each inner token in the text

        ids = np.empty(len(row), np.int64)
        for offset, id in enumerate(self.head):
            ids[first + offset] = id
        for offset, id in enumerate(self.tail):
            ids[end - tail + offset] = id
        ids[inner] = tokens[place]
        free = np.zeros(len(row), np.bool_)
        free[inner] = ~self.special[ids[inner]]
        mark = np.zeros(len(row), marks.dtype)
        mark[inner] = marks[place]
        opening = first + head  # (R,) the first inner token of each row: whatever it stands in begins anew
        opening = opening[length > 0]
        mark[opening] |= WORD
        mark[opening] |= (mark[opening] & IN_SPAN) * (SPAN // IN_SPAN)
        return Passages(
            ids,
            row,
            free,
            np.where(free, _numbers(mark & WORD, row, first), -1),
            np.where(mark & IN_SPAN, _numbers(mark & SPAN, row, first), -1),
            draw,
            (mark >> TAG).astype(np.int64) - 1 if mark.itemsize > 1 else NO_TAGS,
        )


def _numbers(begins: np.ndarray, row: Ints, first: Ints) -> Ints:  # (T,)
    """How many have begun in the row before or at each token, from 0."""
    count = np.cumsum(begins != 0)
    before = count[first] - (begins[first] != 0)  # (R,)
    number: Ints = count - before[row] - 1
    return number


class Maker:
    """From passages to a batch. `static`: every batch has the same number of tokens and of rows."""

    def __init__(
        self, template: Template, masking: Masking, *, seed: int, unpadded: bool, longest: int, copies: int = 1
    ) -> None:
        self.template, self.masking, self.seed, self.copies = template, masking, seed, copies
        self.unpadded, self.longest = unpadded, longest
        self.shape: tuple[int, int] | None = None  # (tokens, rows) of a static batch
        self.adaptive = isinstance(masking.law, Adaptive)
        self.tiled = unpadded and longest <= TILE

    def fix(self, tokens: int, rows: int) -> None:
        """From now on every batch has this many tokens, and room for this many passages."""
        filling = -(-tokens // self.longest) + 1  # rows of padding, were there nothing else
        self.shape = tokens, rows * self.copies + filling

    def mask(self, parts: Parts) -> Batch:
        passages = parts.passages
        if self.copies > 1:
            passages = self.masking.copies(passages, self.copies)
        corrupted = self.masking(passages, parts.progress, self.seed)
        if parts.shown is not None:  # whatever stands there, hidden or in sight, is asked what should
            inputs = np.where(corrupted.hidden, corrupted.inputs, parts.shown)
            corrupted = corrupted._replace(inputs=inputs, asked=passages.free)
        asked = np.flatnonzero(corrupted.asked)
        weight = np.ones(len(asked), np.float32)
        if self.unpadded:  # ask the last one again, for nothing: no token is touched that would not be
            more = -len(asked) % MULTIPLE if len(asked) else MULTIPLE
            last = asked[-1] if len(asked) else int(np.argmax(passages.free))
            asked, weight = np.append(asked, np.full(more, last)), np.append(weight, np.zeros(more, np.float32))
        length = np.bincount(passages.row, minlength=len(passages.draw))  # (R,)
        ids, inputs, free, rate, draw = passages.ids, corrupted.inputs, passages.free, corrupted.rate, passages.draw
        tag = passages.tag
        if self.shape is not None:
            tokens, rows = self.shape
            extra = self._filling(tokens - len(ids), rows - len(length))
            pads = np.full(tokens - len(ids), self.template.pad_id)
            ids, inputs = np.append(ids, pads), np.append(inputs, pads)
            free = np.append(free, np.zeros(len(pads), np.bool_))
            tag = np.append(tag, np.full(len(pads), -1)) if len(tag) else tag
            rate, draw = np.append(rate, np.ones(len(extra))), np.append(draw, np.zeros(len(extra), np.int64))
            length = np.append(length, extra)
        draw = np.ascontiguousarray(draw, np.int64)
        longest = self.longest if self.unpadded else int(length.max())
        layout = Layout.of_lengths(torch.from_numpy(length.astype(np.int64)), longest)
        if self.tiled:
            layout = layout._replace(tiles=torch.from_numpy(self._tiles(length)))
        if parts.source is not None:
            layout = layout._replace(source=_source(parts.source))
        return Batch(
            torch.from_numpy(np.ascontiguousarray(ids, np.int64)),
            torch.from_numpy(np.ascontiguousarray(inputs, np.int64)),
            torch.from_numpy(np.ascontiguousarray(free)),
            layout,
            torch.from_numpy(asked.astype(np.int64)),
            torch.from_numpy(weight),
            torch.from_numpy(rate.astype(np.float32)),
            torch.from_numpy(draw),
            parts.step,
            parts.progress,
            torch.from_numpy(tag.astype(np.int64)) if len(tag) else None,
            None if parts.relation is None else self._relation(parts.relation, len(length)),
            draw.tobytes(),
        )

    def _relation(self, of_passages: Ints, rows: int) -> torch.Tensor:  # (rows,)
        """How pieces belong together in every copy; nothing is said of rows of padding."""
        every = np.tile(of_passages, self.copies)
        return torch.from_numpy(np.append(every, np.full(rows - len(every), -1)).astype(np.int64))

    def _tiles(self, length: Ints) -> np.ndarray:  # (G + 1,) int32
        tiles = cut(length)
        if self.shape is not None:  # two neighbouring tiles hold more than one is wide, so there are no more than these
            tiles = np.append(tiles, np.full(2 * (self.shape[0] // TILE) + 3 - len(tiles), tiles[-1]))
        return tiles.astype(np.int32)

    def _filling(self, tokens: int, rows: int) -> Ints:  # (rows,)
        """Lengths of the rows of padding: as few as hold it, none longer than a passage may be, then empty ones."""
        if tokens < 0 or rows * self.longest < tokens:
            raise BesagError(f"a batch does not fit its static shape of {self.shape} tokens and rows.")
        return np.clip(tokens - np.arange(rows) * self.longest, 0, self.longest)


def _source(passages: Passages) -> Source:
    length = np.bincount(passages.row, minlength=len(passages.draw))  # (R,)
    return Source(torch.from_numpy(passages.ids), Layout.of_lengths(torch.from_numpy(length)))
