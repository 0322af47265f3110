"""Arnold-Gokhale: the joint whose conditionals are nearest to the model's, over all contexts.

    minimise  F(q) = Σ_y w(y) KL(A(·|y) ‖ q(·|y)) + Σ_x w'(x) KL(B(·|x) ‖ q(·|x))

With r = w(y) A + w'(x) B the minimum is where  q = r / (w(y)/v(y) + w'(x)/u(x)),  u and v the marginals of q. F is
convex in log q, so there is one such q, whatever the start. Only u and v are iterated: with ũ = u/w', ṽ = v/w the
joint is q = r·ũṽ/(ũ+ṽ)/Z, one reading of A and B gives the marginals of that, and they are the next u and v. This step
never raises F; the accelerated one falls back to it where it would.

`weights`: "uniform" weighs every context alike, as the paper does, so that most of the fit is spent on contexts that
never occur; "marginal" weighs a context by its probability when both places are hidden. `paper=True` takes 40 plain
steps from the uniform joint. The residual is the total variation between q and its own update.

Not to be confused with a maximum-likelihood fit (no data is seen) or with the law of a Gibbs sampler (see
`stationary`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from besag.joints import passes
from besag.joints.acceleration import MEMORY, TOLERANCE, Found, Step, convergence, fixed_point, refuse_nonsense
from besag.joints.law import JointLaw
from besag.joints.registry import CONSTRUCTIONS, Built, Construction, construction
from besag.joints.small_tables import arnold_gokhale
from besag.joints.unaries import Unaries

SMALL = 2048  # tokens of both places together up to which Newton's method is no dearer than iterating, and exact
NEWTON_STEPS = 100  # some ten are usual; a step of the largest tables takes half a second
PAPER_STEPS = 40
LEAST_WEIGHT = -60.0  # log of the smallest context weight: below it, single precision loses the context altogether
ROUNDING = {"double": 1e-13, "mixed": 1e-13, "single": 1e-7}  # of a sum over all cells, relative to its size


@CONSTRUCTIONS.register
@dataclass(frozen=True)
class ArnoldGokhale(Construction):
    name = "ag"
    title = "nearest conditionals (Arnold-Gokhale)"
    formula = "q = (w_y A + w'_x B) / (w_y/v_y + w'_x/u_x)"
    exact = True
    cite = ("torroba2023", "arnold1998")

    weights: Annotated[Literal["uniform", "marginal"], "of contexts: all alike, or by their probability"] = "uniform"
    tolerance: Annotated[float | None, "on the residual; if none, what the precision allows"] = None
    limit: Annotated[int, "readings of the tables"] = 1000
    accelerate: Annotated[bool, "extrapolate the steps"] = True
    newton: Annotated[bool, "begin small tables at the answer of Newton's method"] = True
    paper: Annotated[bool, "40 plain steps from the uniform joint, as in the paper"] = False

    def __post_init__(self) -> None:
        refuse_nonsense(self.tolerance, self.limit)

    def build(self, unaries: Unaries) -> Built:
        tolerance = self.tolerance or TOLERANCE[passes.precision(unaries)]
        solver = _Solver(unaries, *self._log_weights(unaries))
        if self.paper:
            start = solver.uniform()
            found = fixed_point(solver.step, start, enough=lambda theta, step: False, limit=PAPER_STEPS, memory=0)
            residual, wanted = solver.residual(found.theta, found.step), math.inf  # so many steps, whatever they reach
        else:
            residuals = [math.inf]

            def enough(theta: Tensor, step: Step) -> bool:
                """The change of the marginals bounds the residual from below and is free; so it is asked first."""
                if step.change <= tolerance:
                    residuals.append(solver.residual(theta, step))
                return residuals[-1] <= tolerance

            memory = MEMORY if self.accelerate else 0
            start = solver.start(newton=self.newton)
            found = fixed_point(solver.step, start, enough=enough, limit=self.limit, memory=memory)
            residual = residuals[-1] if residuals[-1] <= tolerance else solver.residual(found.theta, found.step)
            wanted = tolerance
        return solver.built(found, residual, wanted)

    def _log_weights(self, unaries: Unaries) -> tuple[Tensor, Tensor]:
        if self.weights == "uniform":
            return torch.zeros_like(unaries.hidden_a), torch.zeros_like(unaries.hidden_b)
        return unaries.hidden_a.clamp_min(LEAST_WEIGHT), unaries.hidden_b.clamp_min(LEAST_WEIGHT)


class _Solver:
    """θ = (log ũ, log ṽ), and the step from it.

    θ and the weights are kept in double precision whatever the tables are in, and so are all cells where no kernel
    reads them: where blocks of tokens hardly communicate, what passes between them is less than float32 rounds away.
    """

    def __init__(self, unaries: Unaries, row: Tensor, column: Tensor) -> None:
        self.unaries, self.rounding = unaries, ROUNDING[passes.precision(unaries)]
        self.row, self.column = row.double(), column.double()  # log w' of a's tokens, log w of b's
        self.log_weights = torch.cat([self.row, self.column])
        self.last = self.log_weights, torch.zeros(())  # where the last step began, and log Z there

    def uniform(self) -> Tensor:
        """From the uniform joint."""
        m, k = self.unaries.shape
        marginals = torch.full_like(self.log_weights, -math.log(m))
        marginals[m:] = -math.log(k)
        return marginals - self.log_weights

    def start(self, newton: bool) -> Tensor:
        """From the chain rule in both orders: the answer is the same from anywhere, and near from there.

        Where a linear system of size m + k costs little, from the answer itself; the iteration then confirms it.
        """
        found = construction("order").build(self.unaries)
        marginals = torch.cat([found.log_u, found.log_v]).double()
        tables = self.unaries.log_a, self.unaries.log_b
        if newton and len(marginals) <= SMALL and tables[0].dtype == torch.float64:
            log_a, log_b, log_u, log_v, row, column = (
                part[None] for part in (*tables, found.log_u, found.log_v, self.row, self.column)
            )
            [log_q] = arnold_gokhale(log_a, log_b, log_u, log_v, (row, column), limit=NEWTON_STEPS)
            if not bool(log_q.isnan().any()):
                marginals = torch.cat([log_q.logsumexp(1), log_q.logsumexp(0)])
        return marginals - self.log_weights

    def law(self, theta: Tensor) -> JointLaw:
        m = len(self.row)
        return JointLaw("sum", self.row, self.column, theta[:m], theta[m:])

    def step(self, theta: Tensor) -> Step:
        swept = passes.sweep(self.unaries, self.law(theta))
        marginals = theta + torch.cat([swept.rows, swept.columns])  # times Z
        log_z = torch.logsumexp(marginals[: len(self.row)], 0)
        self.last = theta, log_z
        image = marginals - log_z - self.log_weights
        before, after = ((part + self.log_weights).exp() for part in (theta, image))
        variation = (after - before).abs().sum() / 4  # mean of both marginals'
        entropy = (self.log_weights.exp() * marginals).sum()
        potential = torch.as_tensor(swept.potential, dtype=theta.dtype, device=theta.device)
        numbers = torch.stack([potential, potential + entropy, variation]).tolist()  # the device is waited for once
        return Step(image, numbers[1], self.rounding * abs(numbers[0]), after.sqrt().sqrt(), numbers[2])

    def residual(self, theta: Tensor, step: Step) -> float:
        """Total variation between q and its own update."""
        first, second = (self.normalised(part) for part in (theta, step.image))
        return passes.total_variation(self.unaries, first, second)

    def normalised(self, theta: Tensor) -> JointLaw:
        if theta is not self.last[0]:
            self.step(theta)
        return self.law(theta - self.last[1])

    def built(self, found: Found, residual: float, wanted: float) -> Built:
        m, dtype = len(self.row), self.unaries.log_a.dtype
        marginals = (found.step.image + self.log_weights).to(dtype)
        ended = convergence(found.iterations, residual, wanted)
        return Built(self.normalised(found.theta).to(dtype), marginals[:m], marginals[m:], *ended)
