"""The Ising model: spins x_i ∈ {−1, +1}, p(x) ∝ exp(Σ_{i<j} J_ij x_i x_j + Σ_i h_i x_i). Besag's first auto-model.

Exact for any set of hidden spins, by summing over them; unlike a table it needs no memory of 2^n, only of 2^hidden.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from besag.checks import array, checked, whole_number
from besag.conditionals.table import Exact, Table
from besag.errors import BesagError

MOST_HIDDEN = 20  # 2^20 states a question
MOST_PLACES = 8192  # a matrix of couplings of half a gibibyte


class Ising(Exact):
    name = "ising"

    @checked
    def __init__(self, couplings: ArrayLike, fields: ArrayLike | None = None) -> None:
        self.couplings = torch.as_tensor(array(couplings, "couplings"))  # (n, n)
        places = len(self.couplings) if self.couplings.ndim else 0
        if not places or self.couplings.shape != (places, places) or not torch.equal(self.couplings, self.couplings.T):
            raise BesagError(f"couplings must be a symmetric n × n matrix; got the shape {tuple(self.couplings.shape)}")
        if bool(self.couplings.diagonal().any()):
            raise BesagError("couplings must have a zero diagonal: a spin does not couple to itself")
        self.fields = torch.as_tensor(np.zeros(places) if fields is None else array(fields, "fields"))  # (n,)
        if self.fields.shape != (places,):
            raise BesagError(f"fields must be {places} numbers, one a spin; got the shape {tuple(self.fields.shape)}")
        if not bool(self.couplings.isfinite().all() and self.fields.isfinite().all()):
            raise BesagError("couplings and fields must be finite")
        super().__init__(places, ["-", "+"])

    @classmethod
    @checked
    def chain(cls, places: int, coupling: float) -> Ising:
        """Neighbours on a line, all with one coupling."""
        whole_number(places, "places", most=MOST_PLACES)
        return cls(coupling * (np.eye(places, k=1) + np.eye(places, k=-1)))

    def log_joint(self, hidden: list[int], shown: list[int], values: Tensor) -> Tensor:
        if len(hidden) > MOST_HIDDEN:
            raise BesagError(
                f"{len(hidden)} hidden spins would need 2^{len(hidden)} terms; at most {MOST_HIDDEN} are summed"
            )
        spins = _all_spins(len(hidden))  # (2^k, k)
        given = 2.0 * values.double() - 1  # (G, |shown|)
        local = self.fields[hidden] + given @ self.couplings[shown][:, hidden]  # (G, k)
        inner = 0.5 * ((spins @ self.couplings[hidden][:, hidden]) * spins).sum(1)  # (2^k,)
        outer = given @ self.fields[shown] + 0.5 * ((given @ self.couplings[shown][:, shown]) * given).sum(1)  # (G,)
        return (local @ spins.T + inner + outer[:, None]).reshape(-1, *[2] * len(hidden))

    def table(self) -> Table:
        """The same law as an exact table."""
        energies = self.log_joint(list(range(self.places)), [], torch.empty(1, 0, dtype=torch.long))[0]
        return Table((energies - energies.max()).exp(), ["-", "+"], name="ising")


def _all_spins(count: int) -> Tensor:
    """Every state of `count` spins, in the order of a V × … × V table."""
    bits = torch.arange(2**count)[:, None] >> torch.arange(count - 1, -1, -1)
    return 2.0 * (bits & 1).double() - 1
