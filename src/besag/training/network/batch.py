"""What an objective sees in one step: sequences one after the other, and what is asked about them.

Nothing is padded here. The encoder alone decides how ragged sequences are run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor


class Layout(NamedTuple):
    """How T tokens lie in R sequences."""

    bounds: Tensor  # (R + 1,) int32: sequence r is tokens bounds[r] … bounds[r+1]−1; a repeated bound is an empty one
    row: Tensor  # (T,) int64
    position: Tensor  # (T,) int64, the number each token has in its sequence (gaps: hidden places that are left out)
    longest: int  # at least the length of every sequence; the same number for many batches keeps shapes static
    tiles: Tensor | None = None  # (G + 1,) int32: first token of each group of whole sequences, at most 128 tokens each
    source: Source | None = None  # what each sequence is given with, where it is a translation

    @property
    def column(self) -> Tensor:
        """(T,) where a token stands in its sequence, gaps closed."""
        return torch.arange(len(self.row), device=self.row.device) - self.bounds[self.row].long()

    @property
    def rows(self) -> int:
        return len(self.bounds) - 1

    @classmethod
    def of_lengths(cls, lengths: Tensor, longest: int | None = None) -> Layout:
        """Sequences of these lengths (R,), each numbered 0, 1, 2, …"""
        bounds = torch.zeros(len(lengths) + 1, dtype=torch.int32, device=lengths.device)
        bounds[1:] = lengths.cumsum(0)
        row = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
        position = torch.arange(len(row), device=row.device) - bounds[row].long()
        return cls(bounds, row, position, int(lengths.max()) if longest is None else longest)

    def to(self, device: torch.device | str) -> Layout:
        moved: Layout = _moved(self, device)
        return moved

    def kept(self, keep: Tensor) -> Layout:
        """The layout of the tokens with keep (T,) alone; they stay at their positions."""
        counts = torch.bincount(self.row[keep], minlength=self.rows)
        bounds = torch.zeros_like(self.bounds)
        bounds[1:] = counts.cumsum(0)
        return Layout(bounds, self.row[keep], self.position[keep], self.longest, source=self.source)


class Source(NamedTuple):
    """The texts that R sequences translate, one for each."""

    ids: Tensor  # (S,) int64, with special tokens
    layout: Layout


class Batch(NamedTuple):
    ids: Tensor  # (T,) int64, the text with its special tokens
    inputs: Tensor  # (T,) int64, the same with hidden places masked, replaced or kept
    free: Tensor  # (T,) bool: not a special token
    layout: Layout
    asked: Tensor  # (M,) int64: the tokens that are predicted, as indices into ids
    weight: Tensor  # (M,) float32: of each predicted token in the loss; 0 fills up to a static M
    rate: Tensor  # (R,) float32: the share of each sequence that was to be hidden (a diffusion's time)
    draw: Tensor  # (R,) int64: the counter of each sequence's noise
    step: int  # of the optimiser, from 0
    progress: float  # from 0 to 1 over the whole run
    tag: Tensor | None = None  # (T,) int64: the tags that were given with the text, −1 where none was; None: nowhere
    relation: Tensor | None = None  # (R,) int64: how the second piece of each belongs to the first; −1: no word of it
    host_draw: bytes | None = None  # `draw` once more, as int64 that no device holds: reading it waits for nothing

    @property
    def draw_on_host(self) -> Tensor:
        """(R,) `draw` as a tensor of the CPU."""
        return self.draw.cpu() if self.host_draw is None else torch.tensor(np.frombuffer(self.host_draw, np.int64))

    def to(self, device: torch.device | str) -> Batch:
        moved: Batch = _moved(self, device)
        return moved


def _moved(part: Any, device: torch.device | str) -> Any:
    if isinstance(part, Tensor):
        return part.to(device, non_blocking=True)
    return type(part)(*(_moved(one, device) for one in part)) if isinstance(part, Batch | Layout | Source) else part
