"""What an asker keeps of a row of logits. Each reduction runs where the logits are, so V-wide rows stay on the device.

The engine has already cut the vocabulary rows into affordable chunks and computed the normaliser; a reduction only says
what to keep. Adding one: a frozen dataclass with `__call__(chunk) -> {key: tensor over the chunk's asks}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from besag.errors import BesagError
from besag.hardware import send


class Chunk(NamedTuple):
    """Some rows of logits and the asks that look at them (several asks may look at one row)."""

    logits: Tensor  # (h, V) float32 at least
    normaliser: Tensor  # (h,) logsumexp of the row
    which: Tensor  # (m,) the row each ask looks at
    target: Tensor | None  # (m,), or (m, t) where each ask names t tokens
    uniform: Tensor | None  # (m,) float64 in (0, 1)
    rows: Tensor | None = None  # (h, H) what the network's body says, of which its head made the logits
    asks: slice = slice(None)  # which of the questions' asks these are: for reductions that hold something for each

    def target_logits(self) -> Tensor:  # (m,) or (m, t)
        if self.target is None:
            raise BesagError("this reduction looks at a target token, but the questions name none")
        return self.logits[_beside(self.which, self.target), self.target]

    def per_ask(self, per_row: Tensor) -> Tensor:  # (h, …) -> (m, …)
        """What each ask gets of what its row has. Every row is looked at, so h asks in order look at one each."""
        return per_row if len(self.which) == len(self.logits) else per_row[self.which]


def _beside(per_ask: Tensor, target: Tensor) -> Tensor:
    """(m,) as it goes with (m,) or (m, t) targets."""
    return per_ask.view(-1, *[1] * (target.ndim - 1))


class Reduction(Protocol):
    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]: ...


@dataclass(frozen=True)
class Target:
    """log p(target)."""

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        logits = chunk.target_logits()
        return {"target": logits - _beside(chunk.normaliser[chunk.which], logits)}


@dataclass(frozen=True)
class Logit:
    """The target's raw logit (for a table: its log joint with what is shown)."""

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        return {"logit": chunk.target_logits()}


@dataclass(frozen=True)
class Energy:
    """log Σ exp of the raw logits: what normalises the row (for a table: the log probability of what is shown)."""

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        return {"energy": chunk.normaliser[chunk.which]}


@dataclass(frozen=True)
class Row:
    """The whole row of log-probabilities, (m, V)."""

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        return {"row": (chunk.logits - chunk.normaliser[:, None])[chunk.which]}


@dataclass(frozen=True, eq=False)  # holds a tensor, so it is only the same as itself
class Outcomes:
    """The row of some tokens alone, renormalised over them, (m, |ids|).

    With it their energy, log Σ exp of their raw logits, and their share, the log of the probability that they hold.
    """

    ids: Tensor | None  # (|ids|,) on the device of the logits; None: all of them

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        if self.ids is None:
            log_probs, energy = chunk.logits - chunk.normaliser[:, None], chunk.normaliser
        else:
            logits = chunk.logits.index_select(-1, self.ids)  # (h, |ids|)
            energy = torch.logsumexp(logits, -1)
            log_probs = logits.sub_(energy.where(energy > -torch.inf, 0)[:, None])  # all impossible, not all NaN
        kept = {"outcomes": log_probs, "outcome_energy": energy, "share": energy - chunk.normaliser}
        return {key: chunk.per_ask(value) for key, value in kept.items()}


@dataclass(frozen=True)
class Top:
    """The k likeliest tokens, likeliest first, and their log-probabilities, (m, k) each."""

    k: int

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        values, ids = chunk.logits.topk(min(self.k, chunk.logits.shape[-1]))
        return {"top_log_probs": (values - chunk.normaliser[:, None])[chunk.which], "top_ids": ids[chunk.which]}


@dataclass(frozen=True)
class Rank:
    """The target's rank: 1 is the model's first choice; equals share the better rank."""

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        if chunk.target is not None and chunk.target.ndim > 1:
            raise BesagError(f"a rank is one target's; {chunk.target.shape[1]} are named here for each ask")
        return {"rank": 1 + (chunk.logits[chunk.which] > chunk.target_logits()[:, None]).sum(-1)}


@dataclass(frozen=True)
class Entropy:
    """The entropy of the row, in nats."""

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        probabilities = (chunk.logits - chunk.normaliser[:, None]).exp()
        return {"entropy": torch.special.entr(probabilities).sum(-1)[chunk.which]}


@dataclass(frozen=True)
class Sample:
    """One token drawn from the row by inverting its distribution function, in float64, at the ask's own uniform."""

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        if chunk.uniform is None:
            raise BesagError(
                "a draw needs noise: questions.uniform, from besag.noise.uniform(seed, chain, step, place)"
            )
        probabilities = (chunk.logits - chunk.normaliser[:, None]).exp()
        return {"sample": invert(chunk.per_ask(probabilities), chunk.uniform)}


BLOCK = 256  # tokens: one running sum over a whole vocabulary would keep a GPU waiting for its own last addition


def invert(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """(m,) the token at which the running sum of each row (m, V) exceeds its share `uniform` (m,), in float64.

    Sums over blocks of tokens first, then within the block that is found. A token of probability 0 is never taken.
    A row of NaN has no such token: the first is taken, which every network knows, and whoever asked is told of the NaN
    by the engine's check.
    """
    if probabilities.device.type == "mps":  # has no float64
        return invert(probabilities.cpu(), uniform).to(probabilities.device)
    rows, width = probabilities.shape
    blocks = -(-width // BLOCK)
    padded = torch.nn.functional.pad(probabilities.double(), (0, blocks * BLOCK - width)).view(rows, blocks, BLOCK)
    ends = padded.sum(-1).cumsum(-1)  # (m, blocks)
    height = _below(send(uniform, ends.device).double() * ends[:, -1], ends[:, -1])
    block = torch.searchsorted(ends, height[:, None], right=True).clamp(max=blocks - 1)  # (m, 1) the first ending above
    before = torch.where(block > 0, ends.gather(1, (block - 1).clamp(min=0)), 0)[:, 0]
    inside = padded.gather(1, block[:, :, None].expand(-1, -1, BLOCK))[:, 0].cumsum(-1)  # (m, BLOCK)
    rest = _below(height - before, inside[:, -1])
    token = block[:, 0] * BLOCK + torch.searchsorted(inside, rest[:, None], right=True)[:, 0]
    return token.clamp(max=width - 1).where(ends[:, -1] > 0, 0)


def _below(height: Tensor, total: Tensor) -> Tensor:
    """The height, or the number next below the total where rounding took it there."""
    return torch.minimum(height, torch.nextafter(total, torch.zeros_like(total)))
