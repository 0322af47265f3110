"""An optimiser whose arithmetic is in float32, whatever precision the weights are run in.

A weight in bfloat16 has 8 bits: a step of a thousandth of it would be lost in rounding. So such a weight has a float32
master, which moves, and is rounded from it after every step. A float32 weight is its own master.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


class Masters(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if not weights:
                continue
            for weight in weights:
                self._begin(weight)
            masters = [self.state[weight].get("master", weight) for weight in weights]
            grads = [weight.grad.float() for weight in weights]
            group["step"] = group.get("step", 0) + 1
            self.move(group, weights, masters, grads)
            rounded = [(w, m) for w, m in zip(weights, masters, strict=True) if w is not m]
            if rounded:
                torch._foreach_copy_([w for w, _ in rounded], [m for _, m in rounded])
        return loss

    def _begin(self, weight: Tensor) -> None:
        state = self.state[weight]
        if not state:
            if weight.dtype != torch.float32:
                state["master"] = weight.detach().float().clone()
            state.update(self.begin(weight))

    def exact(self, weight: Tensor) -> Tensor:
        """The master of a weight; the weight itself where it has none."""
        master: Tensor = self.state.get(weight, {}).get("master", weight)
        return master

    def remembered(self) -> dict[str, Any]:
        """What `load_state_dict` takes, without the masters: whoever saves those needs no rounded weights."""
        said = self.state_dict()
        held = {
            number: {name: value for name, value in of_one.items() if name != "master"}
            for number, of_one in said["state"].items()
        }
        return {**said, "state": held}

    def put_masters(self, exact: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Give rounded weights that have begun to move the masters they had, as (weight, master)."""
        for weight, master in exact:
            state = self.state.get(weight)
            if state and weight.dtype != torch.float32 and "master" not in state:
                state["master"] = master.to(weight.device, torch.float32, copy=True)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As saved: torch would round what belongs to a bfloat16 weight to bfloat16. Numbers may be written as text."""
        state_dict = {**state_dict, "state": {int(number): held for number, held in state_dict["state"].items()}}
        groups = self.param_groups
        super().load_state_dict(state_dict)
        order = [weight for group in groups for weight in group["params"]]
        saved = [number for group in state_dict["param_groups"] for number in group["params"]]
        for number, weight in zip(saved, order, strict=True):
            for name, value in state_dict["state"].get(number, {}).items():
                if isinstance(value, Tensor):
                    self.state[weight][name] = value.to(weight.device, copy=True)

    @abstractmethod
    def begin(self, weight: Tensor) -> dict[str, Tensor]:
        """What is remembered of a weight, all in float32, before its first step."""

    @abstractmethod
    def move(self, group: dict[str, Any], weights: list[Tensor], masters: list[Tensor], grads: list[Tensor]) -> None:
        """One step of the masters."""


def adam_moments(weight: Tensor) -> dict[str, Tensor]:
    zeros = torch.zeros_like(weight, dtype=torch.float32)
    return {"mean": zeros, "square": zeros.clone()}


def adam_direction(
    group: dict[str, Any], means: list[Tensor], squares: list[Tensor], grads: list[Tensor]
) -> list[Tensor]:
    """m̂ / (√v̂ + ε): the moments are updated in place."""
    first, second = group["betas"]
    torch._foreach_lerp_(means, grads, 1 - first)
    torch._foreach_mul_(squares, second)
    torch._foreach_addcmul_(squares, grads, grads, 1 - second)
    scale = torch._foreach_sqrt(squares)
    torch._foreach_div_(scale, (1 - second ** group["step"]) ** 0.5)
    torch._foreach_add_(scale, group["eps"])
    direction = list(torch._foreach_div(means, scale))
    torch._foreach_div_(direction, 1 - first ** group["step"])
    return direction
