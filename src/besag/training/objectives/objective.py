"""What a network is trained to do, as a module that turns a batch into a loss.

An objective holds the encoder, and whatever is trained beside it and thrown away afterwards (a decoder, a generator, a
second head). Losses are sums over the asked tokens: the run divides by the count over all processes and accumulated
batches, so that neither changes the gradient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F

from besag.registry import Named, Registry
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder


class Predicted(NamedTuple):
    """How each asked token was predicted, for laws that adapt and for the log; never differentiated."""

    ids: Tensor  # (M,)
    losses: Tensor  # (M,) nats
    correct: Tensor  # (M,) bool


class Loss(NamedTuple):
    total: Tensor  # () weighted sum over the asked tokens, per unit of Σ batch.weight: what is minimised
    logs: dict[str, Tensor]  # name → () a mean, or any number worth a curve; "loss" itself is added by the run
    predicted: Predicted | None = None


class Objective(Named, nn.Module, ABC):
    """Subclasses take their options as keyword arguments after the encoder; `forward` must use batch.draw, batch.step
    and `seed` for all its randomness (besag.noise), except dropout."""

    masks: ClassVar[bool] = True  # does it learn from the law's masks? If not, it makes its own corruption
    least_hidden: ClassVar[int] = 1  # places of a passage, for it to be more than `mlm`
    translates: ClassVar[bool] = False  # can it be asked of a decoder beside a source, with smoothed labels?
    attends: ClassVar[bool] = False  # does it ask where the network looks, which compiled layers do not say?
    configures: ClassVar[bool] = False  # does it change how the network must be asked, which its config.json says?
    mask_shown: ClassVar[bool] = False  # is it more than `mlm` only where the mask itself is shown?

    def __init__(self, encoder: Encoder, *, seed: int = 0) -> None:
        super().__init__()
        self.encoder = encoder
        self.seed = seed

    @property
    def purpose(self) -> str:
        """What the trained network is good for. "score": it answers about masked places, so it can be scored.
        "blocks": so it does, from its own block and those before it. "encode": it was not trained to; its hidden states
        are what it gives."""
        return "score"

    @abstractmethod
    def forward(self, batch: Batch) -> Loss: ...

    def save_extras(self, folder: str | Path) -> None:
        """What belongs beside the finished model: nothing, usually."""


OBJECTIVES: Registry[Any] = Registry("objective")


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:  # (M, V), (M,) -> (M,)
    """−log p(target), in float32."""
    return F.cross_entropy(logits.float(), target, reduction="none")


def predict(encoder: Encoder, states: Tensor, batch: Batch) -> tuple[Tensor, Predicted | None]:
    """The loss of each asked token (M,) from the hidden states (T, H), and how it was predicted, if that is wanted."""
    target, rows = batch.ids[batch.asked], states[batch.asked]
    if not encoder.watched:
        return encoder.losses(rows, target), None
    logits = encoder.logits(rows)  # (M, V)
    losses = encoder.nll(logits, target)
    return losses, Predicted(target, losses.detach(), logits.detach().argmax(-1) == target)
