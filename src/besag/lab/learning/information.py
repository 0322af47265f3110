"""What n sequences, masked m times each, say of θ: information, asymptotic covariance, efficiency.

With g_K(x) the gradient of −loss for the set K, and its parts u (`gradients.py`), at the true θ:

    H = E_K E[Σ_parts u uᵀ]     the Hessian of the expected loss (Bartlett: a part is a conditional score)
    G = E_K E[g_K g_Kᵀ]         the covariance of one gradient, one fresh mask
    B = Cov_x(E_{K|x} g_K(x))   what is left of it when all masks of a sequence are averaged
    √n (θ̂ − θ) → N(0, Γ_m),     Γ_m = H⁻¹ (G/m + (1 − 1/m) B) H⁻¹

For the block loss G = H, so Γ_1 = H⁻¹, and hiding more says more: I_{k+1} ⪰ I_k. For the token loss the parts of one
mask are correlated, G ≠ H, and neither holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from besag.arrays import Floats
from besag.checks import checked, is_number
from besag.errors import BesagError, quoted
from besag.lab.learning.gradients import gradients
from besag.lab.learning.masks import Loss, Masks
from besag.lab.systems.system import Family

RANK = 1e-10  # an eigenvalue below this share of Fisher's largest is none


@dataclass(frozen=True, eq=False)
class Information:
    """What a masked loss says of θ. Made by `information`.

    Attributes:
        loss: "block" or "token".
        fisher: (d, d) I, of a whole sequence: what maximum likelihood has.
        hessian: (d, d) H.
        spread: (d, d) G, of the gradient of one mask.
        shared: (d, d) B, of the gradient averaged over all masks.
        parameters: what the d parameters are called.
    """

    loss: Loss
    fisher: Floats
    hessian: Floats
    spread: Floats
    shared: Floats
    parameters: tuple[str, ...]

    @property
    def rank(self) -> int:
        """Of H: how many directions of θ the loss can see."""
        return int((np.linalg.eigvalsh(self.hessian) > RANK * np.linalg.eigvalsh(self.fisher)[-1]).sum())

    @property
    def singular(self) -> bool:
        """Is there a direction of θ that the loss says nothing about?"""
        return self.rank < len(self.hessian)

    def covariance(self, masks: float = 1) -> Floats:
        """(d, d) Γ_m of √n (θ̂ − θ), for m masks a sequence; `math.inf`: all of them, averaged exactly."""
        if not is_number(masks) or not masks >= 1:
            raise BesagError(f"masks={quoted(masks)}: give how many masks a sequence has, at least 1, or math.inf")
        if self.singular:
            raise BesagError(
                f"the {self.loss} loss cannot see θ here: its information has rank {self.rank} of {len(self.hessian)} "
                f"({', '.join(self.parameters)}), so there is no finite covariance; hide fewer places, or mix sizes"
            )
        inverse = np.linalg.inv(self.hessian)
        spread = self.spread / masks + (1 - 1 / masks) * self.shared if math.isfinite(masks) else self.shared
        return np.asarray(inverse @ spread @ inverse)

    def inflation(self, masks: float = 1) -> float:
        """tr(I Γ)/d: how many sequences are needed for each that maximum likelihood needs, on average over θ."""
        return float(np.trace(self.fisher @ self.covariance(masks))) / len(self.fisher)

    def worst(self, masks: float = 1) -> float:
        """λ_max(I Γ): the same for the direction of θ that is learnt worst."""
        root = np.linalg.cholesky(self.fisher)
        return float(np.linalg.eigvalsh(root.T @ self.covariance(masks) @ root)[-1])


@checked
def information(family: Family, masks: Masks, loss: Loss = "block") -> Information:
    """What a masked loss says of θ, exactly.

    Args:
        family: the law, at the true θ.
        masks: of each set of places its chance, as `uniform_masks(4, 2)`, or p(K | x) as an array.
        loss: "block", −log p(x_K | x_−K), or "token", −Σ_{i ∈ K} log p(x_i | x_−K).

    Returns:
        Its information; `.inflation()` compares it with maximum likelihood.

    Examples:
        >>> from besag.lab import chain, information, ising, uniform_masks
        >>> spins = ising(chain(4), 0.3)
        >>> [round(information(spins, uniform_masks(4, k), "block").inflation(), 2) for k in (1, 2, 3, 4)]
        [2.12, 1.23, 1.0, 1.0]
        >>> [round(information(spins, uniform_masks(4, k), "token").inflation(), 2) for k in (1, 2, 3)]
        [2.12, 1.54, 1.98]
    """
    count = len(family.theta)
    hessian, spread = np.zeros((count, count)), np.zeros((count, count))
    averaged = np.zeros_like(family.scores)
    law = family.law.ravel()
    for one in gradients(family, masks, loss):
        whole = sum(one.parts, np.zeros_like(averaged))
        hessian += sum(part.T @ (one.weight[:, None] * part) for part in one.parts)
        spread += whole.T @ (one.weight[:, None] * whole)
        averaged += np.divide(one.weight, law, out=np.zeros_like(law), where=law > 0)[:, None] * whole
    shared = averaged.T @ (law[:, None] * averaged)
    return Information(loss, family.information, hessian, spread, shared, family.parameters)
