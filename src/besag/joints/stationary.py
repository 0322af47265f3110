"""The law of Gibbs sampling on the two places: what the model's own conditionals lead to when they are followed.

    u = A v,  v = Bᵀ u  (power iteration),      q(x, y) = ½ (A(x|y) v(y) + B(y|x) u(x))

q is the stationary law of the chain that resamples a or b, chosen by a coin, and the time average of the one that
alternates. It also minimises the Arnold-Gokhale objective when each context is weighted by its own probability under q:
`ag` with weights u and v has this fixed point. So it links the joint of the first paper to the sampler of the second.

The residual is the total variation between q and its own update by one step of the sampler. Steps are extrapolated
(`acceleration.py`); slow convergence means a slowly mixing sampler.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from besag.joints import passes
from besag.joints.acceleration import MEMORY, TOLERANCE, Step, convergence, fixed_point, refuse_nonsense
from besag.joints.law import JointLaw
from besag.joints.registry import CONSTRUCTIONS, Built, Construction
from besag.joints.unaries import Unaries


@CONSTRUCTIONS.register
@dataclass(frozen=True)
class Stationary(Construction):
    name = "stationary"
    title = "the law of Gibbs sampling on the two places"
    formula = "½ (A(x|y) v(y) + B(y|x) u(x)), u = A v, v = Bᵀ u"
    exact = True
    cite = ("torroba2023", "li2024")

    tolerance: Annotated[float | None, "on the residual; if none, what the precision allows"] = None
    limit: Annotated[int, "readings of the tables"] = 1000
    accelerate: Annotated[bool, "extrapolate the steps"] = True

    def __post_init__(self) -> None:
        refuse_nonsense(self.tolerance, self.limit)

    def build(self, unaries: Unaries) -> Built:
        tolerance = self.tolerance or TOLERANCE[passes.precision(unaries)]
        found = fixed_point(
            lambda log_v: self._step(unaries, log_v),
            unaries.hidden_b.double(),  # and so the cells, where no kernel reads them
            enough=lambda _, step: step.change <= tolerance,
            limit=self.limit,
            memory=MEMORY if self.accelerate else 0,
        )
        residual, log_v = found.step.change, torch.log_softmax(found.theta, 0)
        log_u = _given_b(unaries, log_v)
        ended = convergence(found.iterations, residual, tolerance)
        mean_v, dtype = torch.logaddexp(log_v, found.step.image) - math.log(2), unaries.log_a.dtype
        return Built(JointLaw("sum", log_u, log_v).to(dtype), log_u.to(dtype), mean_v.to(dtype), *ended)

    def _step(self, unaries: Unaries, theta: Tensor) -> Step:
        log_v = torch.log_softmax(theta, 0)
        forth = JointLaw("b", _given_b(unaries, log_v), torch.zeros_like(log_v))
        image = torch.log_softmax(passes.marginal_b(unaries, forth), 0)
        after = image.exp()
        residual = float((after - log_v.exp()).abs().sum(dtype=torch.float64)) / 8
        return Step(image, residual, residual, after.sqrt().sqrt(), residual)  # may rise, but not twofold


def _given_b(unaries: Unaries, log_v: Tensor) -> Tensor:
    """(m,) log A v."""
    return passes.marginal_a(unaries, JointLaw("a", torch.zeros_like(unaries.hidden_a), log_v))
