"""Averages of weights: over all steps, a ← d a + (1 − d) w after every one; or over the last checkpoints, their mean;
or of the finished weights and those that a run began from.

Averages are float32 whatever the weights are. Early on, d is at most (1 + t) / (10 + t) at step t, so that the random
weights of the beginning are soon forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from besag.errors import BesagError


class Averaging:
    """Averages of the trainable weights of a module, on their own device."""

    def __init__(self, module: nn.Module, decay: float) -> None:
        if not 0 < decay < 1:
            raise BesagError(f"[run] ema = {decay} is no decay of an average: it is between 0 and 1, and 0 is none")
        self.decay = decay
        self.names = [name for name, weight in module.named_parameters() if weight.requires_grad]
        self.weights = [weight for weight in module.parameters() if weight.requires_grad]
        self.averages = [weight.detach().float().clone() for weight in self.weights]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """After optimiser step `step`, counted from 1."""
        decay = min(self.decay, (1 + step) / (10 + step))
        now = [weight.detach() if weight.dtype == torch.float32 else weight.float() for weight in self.weights]
        torch._foreach_lerp_(self.averages, now, 1 - decay)

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """In here the module's weights are the averages, rounded to its precision."""
        before = [weight.detach().clone() for weight in self.weights]
        self._put(self.averages)
        try:
            yield
        finally:
            self._put(before)

    @torch.no_grad()
    def _put(self, values: list[Tensor]) -> None:
        for weight, value in zip(self.weights, values, strict=True):
            weight.copy_(value)

    def state(self) -> dict[str, Tensor]:
        return dict(zip(self.names, self.averages, strict=True))

    def restore(self, state: dict[str, Tensor]) -> None:
        if set(state) != set(self.names):
            raise BesagError("the checkpoint's averaged weights are not those of this network")
        for name, average in zip(self.names, self.averages, strict=True):
            average.copy_(state[name])


@contextmanager
def blended(module: nn.Module, other: Mapping[str, Tensor], share: float) -> Iterator[None]:
    """In here the module's weights are 1 − share of its own and share of another's of the same shape."""
    own = {name: part for name, part in module.state_dict().items() if part.is_floating_point()}
    between = {name: torch.lerp(part.float(), other[name].to(part.device).float(), share) for name, part in own.items()}
    with _holding(module, between):
        yield


@contextmanager
def mean_of(module: nn.Module, states: Iterable[Mapping[str, Tensor]]) -> Iterator[None]:
    """In here the module's weights are the mean of these states of it; what is frozen, or no float, stays as it is."""
    frozen = {name for name, part in module.named_parameters(remove_duplicate=False) if not part.requires_grad}
    own = {name: part for name, part in module.state_dict().items() if part.is_floating_point() and name not in frozen}
    sums, count = {name: torch.zeros_like(part, dtype=torch.float32) for name, part in own.items()}, 0
    for state in states:
        count += 1
        for name, total in sums.items():
            total += state[name].to(total)
    with _holding(module, {name: total / count for name, total in sums.items()} if count else {}):
        yield


@contextmanager
def _holding(module: nn.Module, weights: Mapping[str, Tensor]) -> Iterator[None]:
    before = {name: module.state_dict()[name].detach().clone() for name in weights}
    module.load_state_dict(weights, strict=False)
    try:
        yield
    finally:
        module.load_state_dict(before, strict=False)
