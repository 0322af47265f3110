"""A joint written with vectors only: log q(x, y) from log A, log B and one number a row and a column.

| kind | log q(x, y) | who has this form |
|---|---|---|
| independent | row(x) + column(y) | mlm |
| a | log A + column(y) | order b→a, hcb |
| b | log B + row(x) | order a→b |
| product | log A + log B + row(x) + column(y) | mrf, mrf_local |
| mean | ½ (log A + log B) + row(x) + column(y) | loglinear |
| sum | log(A·e^column + B·e^row) + h(left(x), right(y)) | order (both), ag, stationary |

h(s, t) = s + t − log(eˢ + eᵗ) = −log(e⁻ˢ + e⁻ᵗ), half the harmonic mean in logs. So a joint over V² cells costs two or
four vectors beyond A and B, and every pass over the cells knows six forms and no construction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from besag.joints.unaries import Unaries

Kind: TypeAlias = Literal["independent", "a", "b", "product", "mean", "sum"]
Index: TypeAlias = slice | Tensor

EVERYTHING = slice(None)


@dataclass(frozen=True, eq=False)
class JointLaw:
    kind: Kind
    row: Tensor  # (m,)
    column: Tensor  # (k,)
    left: Tensor | None = None  # (m,) of "sum" only, where None means 0
    right: Tensor | None = None  # (k,)

    def cells(self, unaries: Unaries, x: Index = EVERYTHING, y: Index = EVERYTHING) -> Tensor:
        """log q of the rows x and the columns y, (|x|, |y|). Not for all rows of a large vocabulary at once."""
        row, column = self.row[x][:, None], self.column[y]
        if self.kind == "independent":
            return row + column
        if self.kind == "a":
            return unaries.log_a[x][:, y] + column
        if self.kind == "b":
            return unaries.log_b[x][:, y] + row
        if self.kind == "mean":
            return (unaries.log_a[x][:, y] + unaries.log_b[x][:, y]) / 2 + row + column
        a, b = unaries.log_a[x][:, y] + column, unaries.log_b[x][:, y] + row
        if self.kind == "product":
            return a + b
        left = torch.zeros_like(row) if self.left is None else self.left[x][:, None]
        right = torch.zeros_like(column) if self.right is None else self.right[y]
        return torch.logaddexp(a, b) + harmonic(left, right)

    def to(self, dtype: torch.dtype) -> JointLaw:
        ends = (None if end is None else end.to(dtype) for end in (self.left, self.right))
        return JointLaw(self.kind, self.row.to(dtype), self.column.to(dtype), *ends)

    def scaled(self, shift: float | Tensor) -> JointLaw:
        """The same law with `shift` added to every log q."""
        if self.kind in ("a", "independent"):
            return JointLaw(self.kind, self.row, self.column + shift)
        if self.kind in ("b", "product", "mean"):
            return JointLaw(self.kind, self.row + shift, self.column)
        left = torch.zeros_like(self.row) if self.left is None else self.left
        right = torch.zeros_like(self.column) if self.right is None else self.right
        return JointLaw(self.kind, self.row, self.column, left + shift, right + shift)


def harmonic(s: Tensor, t: Tensor) -> Tensor:
    return torch.minimum(s, t) - torch.log1p(torch.exp(-(s - t).abs()))
