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


class Chunk(NamedTuple):
    """Some rows of logits and the asks that look at them (several asks may look at one row)."""

    logits: Tensor  # (h, V) float32 at least
    normaliser: Tensor  # (h,) logsumexp of the row
    which: Tensor  # (m,) the row each ask looks at
    target: Tensor | None  # (m,)
    uniform: Tensor | None  # (m,) float64 in (0, 1)

    def target_logits(self) -> Tensor:  # (m,)
        if self.target is None:
            raise BesagError("this reduction looks at a target token, but the questions name none")
        return self.logits[self.which, self.target]


class Reduction(Protocol):
    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]: ...


@dataclass(frozen=True)
class Target:
    """log p(target)."""

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        return {"target": chunk.target_logits() - chunk.normaliser[chunk.which]}


@dataclass(frozen=True)
class Logit:
    """The target's raw logit (for a table: its log joint with what is shown)."""

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        return {"logit": chunk.target_logits()}


@dataclass(frozen=True)
class Row:
    """The whole row of log-probabilities, (m, V)."""

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        return {"row": (chunk.logits - chunk.normaliser[:, None])[chunk.which]}


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
        if probabilities.device.type == "mps":  # has no float64
            probabilities = probabilities.cpu()
        cumulative = probabilities.double().cumsum(-1)[chunk.which.to(probabilities.device)]  # (m, V)
        total = cumulative[:, -1]
        height = torch.minimum(chunk.uniform.to(total) * total, torch.nextafter(total, torch.zeros_like(total)))
        return {"sample": torch.searchsorted(cumulative, height[:, None], right=True)[:, 0]}
