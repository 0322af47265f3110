"""The log-linear joint: the mean of the log-conditionals, and what each place adds, by least squares in closed form.

    log q(x, y) = ½ (log A(x|y) + log B(y|x)) + r(x) + c(y) − log Z
    r(x) = ½ Σ_y w(y) D(x, y),    c(y) = −½ Σ_x w'(x) D(x, y),    D = log A − log B

The conditionals of a joint p differ by D(x, y) = log p(x) − log p(y), a term of x less one of y, and their mean lacks
half of both: ½ (log p(x) + log p(y)). Where A and B belong to no joint, r and c are half the least-squares fit of D by
such a difference, which for weights of the form w'(x)·w(y) is a matter of means: one reading of the tables, nothing
iterated. Two other ways to say the same:

    q minimises  Σ w'w [(log A(x|y) − log q(x|y) − α(y))² + (log B(y|x) − log q(y|x) − β(x))²]  over q, α and β
    q is the normalised geometric mean of the joints `hcb` makes from every pivot, w'(x*) at a and w(y*) at b

`ag` weighs an error of a conditional by its probability, here a factor is a factor, however rare. What the fit leaves
of D measures the disagreement: the misfit is the size, in nats, of independent noise on every log-conditional that
would leave as much; 0 iff A and B are compatible.

`weights`: "uniform" takes all contexts alike; "marginal" by their probability when both places are hidden. A
conditional of 0 has no logarithm: its cell has q = 0 and is left out of the fit, which is then a linear system of m + k
unknowns. Where zeros cut the table into parts, how much mass each has is what the two-mask answers say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from besag.errors import BesagError
from besag.joints import passes
from besag.joints.law import JointLaw
from besag.joints.mrf import normalised
from besag.joints.registry import CONSTRUCTIONS, Built, Construction
from besag.joints.unaries import Unaries

SMALL = 2048  # tokens of both places together up to which a linear system of that size is solved
LEAST = -700.0  # log of the least probability that float64 tells from 0


@CONSTRUCTIONS.register
@dataclass(frozen=True)
class LogLinear(Construction):
    name = "loglinear"
    title = "mean of the log-conditionals, fitted (log-linear)"
    formula = "√(A(x|y) · B(y|x)) · exp(r_x + c_y) / Z"
    exact = True
    cite = ("besag1974",)

    weights: Annotated[Literal["uniform", "marginal"], "of contexts: all alike, or by their probability"] = "uniform"

    def build(self, unaries: Unaries) -> Built:
        m, k = unaries.shape
        row, column = (torch.full((size,), 1 / size, dtype=torch.float64) for size in (m, k))
        row, column = row.to(unaries.log_a.device), column.to(unaries.log_a.device)
        if self.weights == "marginal":
            row, column = unaries.hidden_a.double().exp(), unaries.hidden_b.double().exp()
        of_a, of_b = passes.ratio_means(unaries, row, column)
        if not bool(of_a.isfinite().all() and of_b.isfinite().all()):
            of_a, of_b = _around_zeros(unaries, row, column)
        squares = passes.ratio_rest(unaries, of_a, of_b, row, column)
        free = 2 * float(
            (1 - row.square().sum()) * (1 - column.square().sum())
        )  # of noise of size 1, this would be left
        law = JointLaw("mean", *(half.to(unaries.log_a.dtype) for half in (of_a / 2, -of_b / 2)))
        built = normalised(unaries, law)
        return built._replace(details={"misfit": math.sqrt(squares / free) if free > 0 else 0.0})


def _around_zeros(unaries: Unaries, row: Tensor, column: Tensor) -> tuple[Tensor, Tensor]:
    """α (m,) and −β (k,) of the least Σ w'w (D − α(x) + β(y))² over cells where D is finite; nearest the hidden."""
    m, k = unaries.shape
    if m + k > SMALL:
        raise BesagError(
            f"loglinear fits logarithms, and a conditional of these {m:,} × {k:,} is 0: around zeros at most "
            f"{SMALL // 2:,} candidates of each place are fitted; ag and stationary take any number"
        )
    start_a, start_b = (part.double().clamp_min(LEAST) for part in (unaries.hidden_a, unaries.hidden_b))
    rest = (unaries.log_a - unaries.log_b).double() - start_a[:, None] + start_b  # (m, k)
    weight = torch.where(rest.isfinite(), row[:, None] * column, 0.0)
    pull = torch.where(rest.isfinite(), weight * rest, 0.0)
    degree = torch.cat([weight.sum(1), weight.sum(0)])
    scale = torch.where(degree > 0, degree.clamp_min(1e-300).rsqrt(), 0.0)  # to a unit diagonal
    system = torch.diag((degree > 0).double())
    system[:m, m:] = -weight * scale[:m, None] * scale[m:]
    system[m:, :m] = system[:m, m:].T
    found = scale * (torch.linalg.pinv(system, hermitian=True) @ (scale * torch.cat([pull.sum(1), -pull.sum(0)])))
    return start_a + found[:m], -(start_b + found[m:])
