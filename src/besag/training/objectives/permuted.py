"""Permuted prediction (MPNet): hidden tokens are predicted one after the other, and every place is always known of.

The law hides K; the noise of (seed, draw) orders it, π₁ … π_m. What is learned is a chain,

    log p(x_K | x_∖K) = Σ_i log p(x_{π_i} | x_∖K, x_{π_1} … x_{π_{i−1}}, the places of all of K),

all m factors in one pass. Each passage becomes one sequence of n + 2m tokens in four parts, every token with the number
of its own place, and who sees whom is this (i, j count along the order):

    reads →        shown   blank j      content j     query j
    shown            ×       ×             ·             ·
    blank i          ×       ×             ·             ·        [MASK] at place π_i; knows no hidden token
    content i        ×     j > i         j ≤ i           ·        the token x_{π_i} itself
    query i          ×     j > i         j < i         j = i      [MASK] at place π_i; predicts x_{π_i}

So content and query see one token at each place of the passage: the true one where it is known, a blank where it is
not (position compensation). Blanks cannot serve as queries: query j has read x_{π_i} for i < j, so if query i saw it as
the blank of a later place, its own answer would come back to it in the second layer.

The first query of a passage does what a masked model does with K hidden, number for number. So the network that comes
out is an ordinary masked model and can be scored. Hidden tokens that are not asked stay as the replacement policy shows
them, in the first part; the policy does not touch asked ones.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from besag.noise import Training
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.network.places import require_numbered_places
from besag.training.objectives import draws
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, predict

SHOWN, BLANK, CONTENT, QUERY = range(4)


class Unrolled(NamedTuple):
    """The longer sequences, U = T + 2A tokens for A asked ones."""

    ids: Tensor  # (U,) what is read
    truth: Tensor  # (U,) what stands there
    layout: Layout
    seen: Tensor  # (R, L, L)
    queries: Tensor  # (A,) where the query of each asked token stands in ids


@OBJECTIVES.register
class Permuted(Objective):
    name = "permuted"
    title = "hidden tokens one after the other, all places known of (MPNet)"
    cite = ("song2020",)

    def __init__(self, encoder: Encoder, *, seed: int = 0) -> None:
        super().__init__(encoder, seed=seed)
        require_numbered_places(encoder, self.name)

    def forward(self, batch: Batch) -> Loss:
        real = batch.weight > 0  # the rest only fills up, and may name any token
        asked = batch.asked[real]
        rank = self.order(batch, asked)
        unrolled = unroll(batch, asked, rank, self.encoder.mask_id)
        states = self.encoder.states(unrolled.ids, unrolled.layout, seen=unrolled.seen)  # (U, H)
        queries = torch.zeros_like(batch.asked).masked_scatter(real, unrolled.queries)  # (M,)
        losses, guesses = predict(self.encoder, states, batch._replace(ids=unrolled.truth, asked=queries))
        first = losses.detach()[real][rank == 0]
        logs = {"first": first.mean()} if len(first) else {}
        return Loss((losses * batch.weight).sum(), logs, guesses)

    def order(self, batch: Batch, asked: Tensor) -> Tensor:  # (A,)
        """The turn of each asked token among those of its passage, from 0."""
        row = batch.layout.row[asked]
        chance = draws.uniform(self.seed, Training.PERMUTED_ORDER, batch.draw[row], batch.layout.position[asked])
        drawn = chance.argsort(stable=True)
        turn = drawn[row[drawn].argsort(stable=True)]  # by passage, and in each by chance
        begin = torch.searchsorted(row[turn], row[turn])
        return torch.empty_like(turn).index_put((turn,), torch.arange(len(turn), device=turn.device) - begin)


def unroll(batch: Batch, asked: Tensor, rank: Tensor, mask_id: int) -> Unrolled:
    """The four parts of each passage, one after the other, and who sees whom in them."""
    layout, count = batch.layout, len(asked)
    shown = torch.ones_like(batch.free)
    shown[asked] = False
    others = shown.nonzero()[:, 0]  # (T − A,)
    source = torch.cat([others, asked, asked, asked])  # (U,) which token of the batch
    part = torch.repeat_interleave(
        torch.arange(4, device=asked.device), torch.tensor([len(others), count, count, count], device=asked.device)
    )
    turn = torch.cat([torch.full_like(others, -1), rank, rank, rank])
    ids = torch.where(part == CONTENT, batch.ids[source], torch.where(part == SHOWN, batch.inputs[source], mask_id))
    line = torch.sort(layout.row[source] * 4 + part, stable=True).indices  # passages, and in each its parts, in turn
    row = layout.row[source][line]
    lengths = torch.bincount(row, minlength=layout.rows)
    bounds = torch.zeros_like(layout.bounds)
    bounds[1:] = lengths.cumsum(0)
    longer = Layout(bounds, row, layout.position[source][line], int(lengths.max()))
    seen = who_sees_whom(_table(part[line], longer), _table(turn[line], longer))
    back = torch.empty_like(line).index_put((line,), torch.arange(len(line), device=line.device))
    return Unrolled(ids[line], batch.ids[source][line], longer, seen, back[len(line) - count :])


def who_sees_whom(part: Tensor, turn: Tensor) -> Tensor:  # (R, L), (R, L) -> (R, L, L)
    """The table at the head of this file; −1 in `part` is padding, which nobody sees."""
    read = torch.where(part == CONTENT, turn + 1, torch.where(part == QUERY, turn, 0))  # how much of the order it knows
    known = turn[:, None, :] < read[:, :, None]  # of each reader, each thing read
    own = (part == QUERY)[:, :, None] & (turn[:, :, None] == turn[:, None, :])  # the place that a query stands on
    blank, content, query = ((part == kind)[:, None, :] for kind in (BLANK, CONTENT, QUERY))
    return (part == SHOWN)[:, None, :] | (content & known) | (blank & ~known & ~own) | (query & own)


def _table(values: Tensor, layout: Layout) -> Tensor:  # (U,) -> (R, L)
    return values.new_full((layout.rows, layout.longest), -1).index_put((layout.row, layout.column), values)
