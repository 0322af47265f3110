"""Batches and networks that are small enough to compute by hand. Import it as `tests.training.objectives.examples`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from tests import networks
from torch import Tensor, nn

from besag.conditionals.contract import Questions
from besag.conditionals.table import Table
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder

FAMILY = "modernbert"
LENGTHS = (7, 4, 9)


def encoder(family: str = FAMILY, *, ragged: bool = False, seed: int = 0, model: Any = None, **changes: Any) -> Encoder:
    """A tiny network of this family, without dropout."""
    words = networks.vocabulary(family)
    if model is None:
        model = networks.tiny(family, seed=seed, **changes).eval()
    assert words.mask_id is not None
    assert words.pad_id is not None
    return Encoder(model, mask_id=words.mask_id, pad_id=words.pad_id, special_ids=words.special_ids, ragged=ragged)


def ordinary(family: str = FAMILY) -> list[int]:
    words = networks.vocabulary(family)
    return [id for id in range(words.size) if id not in words.special_ids]


def batch(
    lengths: tuple[int, ...] = LENGTHS, *, family: str = FAMILY, seed: int = 0, step: int = 0, progress: float = 0.0
) -> Batch:
    """Random tokens between two special ones; about a third of them asked, masked but for one that is kept as it was.

    The last asked index is filler of weight 0, as in a batch of static size.
    """
    words = networks.vocabulary(family)
    generator = np.random.default_rng(seed)
    known = words.tokenizer
    first = known.bos_token_id if known.cls_token_id is None else known.cls_token_id
    last = known.eos_token_id if known.sep_token_id is None else known.sep_token_id
    layout = Layout.of_lengths(torch.tensor(lengths))
    ids = torch.from_numpy(generator.choice(ordinary(family), len(layout.row)))
    ids[layout.bounds[:-1].long()], ids[layout.bounds[1:].long() - 1] = first, last
    free = (ids != first) & (ids != last)
    asked = torch.from_numpy(generator.permutation(free.nonzero()[:, 0].numpy()))[: max(2, len(ids) // 3)].sort()[0]
    inputs = ids.clone()
    inputs[asked[1:]] = words.mask_id
    weight = torch.from_numpy(generator.uniform(0.5, 2.0, len(asked))).float()
    asked, weight = torch.cat([asked, asked[:1]]), torch.cat([weight, torch.zeros(1)])
    rate = torch.full((len(lengths),), 1 / 3)
    draw = torch.arange(len(lengths)) + 10
    return Batch(ids, inputs, free, layout, asked, weight, rate, draw, step, progress)


@torch.no_grad()
def plain(network: Encoder, ids: Tensor, layout: Layout) -> Tensor:  # (T, V)
    """Log-probabilities by transformers' own forward, one sequence at a time."""
    rows = []
    for start, end in zip(layout.bounds[:-1].tolist(), layout.bounds[1:].tolist(), strict=True):
        if end > start:
            rows.append(network.model(input_ids=ids[None, start:end]).logits[0])
    return torch.cat(rows).log_softmax(-1)


def gradient(loss: Tensor, network: Encoder) -> Tensor:
    """(P,) of all weights of the network; zeros where a weight has none."""
    network.zero_grad()
    loss.backward()
    parts = [torch.zeros_like(w) if w.grad is None else w.grad for w in network.model.parameters()]
    return torch.cat([part.flatten() for part in parts])


class Exact(nn.Module):
    """An encoder that answers from a table of all sequences. `tilt` (V,) weighs the tokens of *other* hidden places."""

    def __init__(self, table: Table, tilt: Tensor | None = None) -> None:
        super().__init__()
        self.table, self.tilt = table, tilt
        self.watched = False
        self.width = table.width + 1  # the mask has a logit, too
        self.mask_id, self.special_ids = table.width, frozenset({table.width})

    def states(self, ids: Tensor, layout: Layout) -> Tensor:  # (T, V + 1)
        table = ids.view(layout.rows, self.table.places)
        answers = torch.full((len(ids), self.width), 3.0, dtype=torch.float64)  # a mask logit that SUBS must remove
        row, place = (table == self.mask_id).nonzero(as_tuple=True)
        answers[row * self.table.places + place, :-1] = self.answers(table, row, place)
        return answers

    def answers(self, table: Tensor, row: Tensor, place: Tensor) -> Tensor:
        """Each distinct question is asked once."""
        distinct, which = torch.unique(torch.cat([table[row], place[:, None]], 1), dim=0, return_inverse=True)
        texts, number = torch.unique(distinct[:, :-1], dim=0, return_inverse=True)
        if self.tilt is None:
            return self.table.rows(Questions(texts, number, distinct[:, -1]))[which]
        return torch.stack([self._tilted(line[:-1].tolist(), int(line[-1])) for line in distinct])[which]

    def _tilted(self, text: list[int], asked: int) -> Tensor:
        """(V,) log Σ over the other hidden places of p · Π tilt there."""
        assert self.tilt is not None
        weights = self.table.log_probs.exp()
        for place, value in enumerate(text):
            shape = [-1 if axis == place else 1 for axis in range(len(text))]
            if value != self.mask_id:
                weights = weights * torch.nn.functional.one_hot(torch.tensor(value), self.table.width).view(shape)
            elif place != asked:
                weights = weights * self.tilt.view(shape)
        return weights.sum([axis for axis in range(len(text)) if axis != asked]).log()

    def logits(self, rows: Tensor) -> Tensor:
        return rows


def sequences(table: Table) -> tuple[Tensor, Layout]:
    """Every sequence of the table, one after the other."""
    ids = torch.cartesian_prod(*[torch.arange(table.width)] * table.places).reshape(-1)
    return ids, Layout.of_lengths(torch.full((table.width**table.places,), table.places))
