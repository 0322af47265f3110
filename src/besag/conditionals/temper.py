"""The same conditionals at a temperature: every logit divided by τ before the softmax.

    p_τ(v | shown) = p(v | shown)^(1/τ) / Σ_u p(u | shown)^(1/τ)

τ > 1 makes every law flatter, τ < 1 sharper; sums of log-probabilities may change their order with it. Knows logits
alone.
"""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor

from besag.checks import number
from besag.conditionals.contract import Conditionals, Questions

LEAST = 1e-3  # below, all is given to the likeliest token


class Tempered:
    """Conditionals whose logits are divided by τ."""

    def __init__(self, conditionals: Conditionals, temperature: float) -> None:
        self.inner = conditionals
        self.temperature = number(temperature, "temperature", least=LEAST)
        self.name = f"{conditionals.name} (temperature {self.temperature:g})"
        self.vocabulary = conditionals.vocabulary
        self.sees: Literal["both", "left"] = conditionals.sees
        self.width, self.max_length = conditionals.width, conditionals.max_length
        self.device, self.dtype, self.pads = conditionals.device, conditionals.dtype, conditionals.pads

    def __getattr__(self, name: str) -> Any:  # what only some have: the network, the token before a text …
        if name == "inner":  # not there yet: a copy being made
            raise AttributeError(name)
        return getattr(self.inner, name)

    def rows(self, questions: Questions) -> Tensor:
        return self.inner.rows(questions)

    def head(self, rows: Tensor) -> Tensor:
        return self.inner.head(rows) / self.temperature
