"""The two families of conditionals of a pair of places, a and b, given the rest: all that a construction may look at.

    A[x, y] = p(a = x | b = y)   each column sums to 1 over the m outcomes of a
    B[x, y] = p(b = y | a = x)   each row sums to 1 over the k outcomes of b

Both are held once, as logarithms, indexed [x, y]; nothing else here is of size m × k. Outcomes that are left out
(special tokens, tokens outside the candidate sets) are renormalised away in the same manner for everybody, and `lost`
says how much mass that was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from besag.errors import BesagError


class Lost(NamedTuple):
    """Probability mass outside the outcomes, before renormalisation."""

    hidden_a: float  # of a, with both places hidden
    hidden_b: float
    given_b: float  # of a given b, averaged over b's two-mask marginal
    given_a: float  # of b given a, averaged over a's two-mask marginal


NOTHING_LOST = Lost(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Unaries:
    log_a: Tensor  # (m, k) log A
    log_b: Tensor  # (m, k) log B
    energy_a: Tensor  # (k,) log Σ_x exp logit_a(x | y): log A + energy_a are the raw logits
    energy_b: Tensor  # (m,) log Σ_y exp logit_b(y | x)
    hidden_a: Tensor  # (m,) log p(a = x) with both places hidden
    hidden_b: Tensor  # (k,)
    ids_a: NDArray[np.int64]  # (m,) the tokens that may stand at a
    ids_b: NDArray[np.int64]  # (k,)
    gold: tuple[int, int] | None = None  # indices (not ids) of the text's own tokens
    lost: Lost = NOTHING_LOST
    forced: tuple[bool, bool] = (False, False)  # was the text's own token added to a candidate set from outside it?

    @property
    def shape(self) -> tuple[int, int]:
        return self.log_a.shape[0], self.log_a.shape[1]

    @classmethod
    def of(
        cls, a: Tensor, b: Tensor, hidden_a: Tensor | None = None, hidden_b: Tensor | None = None, **more: object
    ) -> Unaries:
        """From two tables of non-negative weights; columns of `a` and rows of `b` are normalised here.

        The weights count as exp(logits), so that they also say what the logit MRF needs. Hidden marginals are uniform
        unless given.
        """
        log_a, log_b = a.log(), b.log()
        if log_a.shape != log_b.shape or log_a.ndim != 2:
            raise BesagError(f"A and B must be two tables of one shape, not {tuple(a.shape)} and {tuple(b.shape)}")
        m, k = log_a.shape
        energy_a, energy_b = torch.logsumexp(log_a, 0), torch.logsumexp(log_b, 1)
        hidden_a = torch.ones(m, dtype=a.dtype) if hidden_a is None else hidden_a
        hidden_b = torch.ones(k, dtype=a.dtype) if hidden_b is None else hidden_b
        return cls(
            log_a - energy_a,
            log_b - energy_b[:, None],
            energy_a,
            energy_b,
            torch.log_softmax(hidden_a.log(), 0),
            torch.log_softmax(hidden_b.log(), 0),
            np.arange(m),
            np.arange(k),
            **more,  # type: ignore[arg-type]
        )
