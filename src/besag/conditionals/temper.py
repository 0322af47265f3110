"""The same conditionals at a temperature: every logit divided by τ before the softmax.

    p_τ(v | shown) = p(v | shown)^(1/τ) / Σ_u p(u | shown)^(1/τ)

τ > 1 makes every law flatter, τ < 1 sharper; sums of log-probabilities may change their order with it. Knows logits
alone.
"""

from __future__ import annotations

from torch import Tensor

from besag.checks import number
from besag.conditionals.contract import Conditionals
from besag.conditionals.wrapping import Wrapping

LEAST = 1e-3  # below, all is given to the likeliest token


class Tempered(Wrapping):
    """Conditionals whose logits are divided by τ."""

    def __init__(self, conditionals: Conditionals, temperature: float) -> None:
        self.temperature = number(temperature, "temperature", least=LEAST)
        super().__init__(conditionals, f"{conditionals.name} (temperature {self.temperature:g})")

    def head(self, rows: Tensor) -> Tensor:
        return self.inner.head(rows) / self.temperature
