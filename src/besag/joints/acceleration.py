"""A fixed point θ = G(θ) of a map that lowers an objective, found faster and never uphill.

Anderson's scheme: of the last few steps, take the combination whose residuals cancel best, in a norm weighted by how
much each coordinate matters. A proposal that would raise the objective beyond rounding is dropped for the plain step,
and the memory with it, so the objective falls at every accepted point, as it does without acceleration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from besag.checks import number, whole_number
from besag.results.status import Status
from besag.results.words import counted

MEMORY = 20  # steps combined
TOLERANCE = {"double": 1e-9, "mixed": 1e-7, "single": 1e-6}  # of a residual, where none is asked for
LEAST_TOLERANCE = 1e-30
MOST_STEPS = 1_000_000
RIDGE = 1e-10  # of the least squares, relative: keeps a combination of nearly equal steps finite


class Step(NamedTuple):
    image: Tensor  # (d,) G(θ)
    objective: float  # at θ
    rounding: float  # of the objective
    weight: Tensor  # (d,) how much each coordinate matters
    change: float  # how far G(θ) is from θ, in the user's terms


class Found(NamedTuple):
    theta: Tensor  # (d,)
    step: Step  # taken from there
    iterations: int  # how often G was evaluated


def fixed_point(
    step: Callable[[Tensor], Step],
    start: Tensor,
    *,
    enough: Callable[[Tensor, Step], bool],
    limit: int,
    memory: int = MEMORY,
) -> Found:
    """Go on until `enough(θ, step from θ)`, or until G was evaluated `limit` times; memory=0 takes plain steps only."""
    theta, taken, iterations = start, step(start), 1
    images: deque[Tensor] = deque(maxlen=memory + 1)
    residuals: deque[Tensor] = deque(maxlen=memory + 1)
    while iterations < limit and not enough(theta, taken):
        images.append(taken.image.double())
        residuals.append(taken.image.double() - theta.double())
        proposal = taken.image
        if memory and len(images) > 1:
            proposal = _combine(images, residuals, taken.weight).to(theta.dtype)
        new, iterations = step(proposal), iterations + 1
        if not new.objective <= taken.objective + taken.rounding and proposal is not taken.image:  # uphill, or nan
            proposal = taken.image
            images.clear()
            residuals.clear()
            new, iterations = step(proposal), iterations + 1
        theta, taken = proposal, new
    return Found(theta, taken, iterations)


def _combine(images: deque[Tensor], residuals: deque[Tensor], weight: Tensor) -> Tensor:
    """The last image, less the combination of earlier differences that explains the last residual best."""
    weighted = torch.stack([*residuals]) * weight.double()  # (h + 1, d)
    weighted[:-1] = torch.diff(weighted, dim=0)
    gram = (weighted[:-1] @ weighted.T).cpu()  # (h, h + 1): a system so small is solved faster on the host
    ridge = RIDGE * gram.diagonal().sum() * torch.eye(len(gram), dtype=gram.dtype)
    share = torch.linalg.lstsq(gram[:, :-1] + ridge, gram[:, -1:]).solution[:, 0].to(weight.device)
    combined: Tensor = images[-1] - share @ torch.diff(torch.stack([*images]), dim=0)
    return combined


def refuse_nonsense(tolerance: float | None, limit: int) -> None:
    if tolerance is not None:
        number(tolerance, "tolerance", LEAST_TOLERANCE, 1.0)  # a residual is a share of all mass
    whole_number(limit, "limit", most=MOST_STEPS)


class Ended(NamedTuple):
    status: Status
    details: dict[str, float | int]


def convergence(iterations: int, residual: float, tolerance: float) -> Ended:
    """How an iteration ended; the tolerance is told where it was not reached."""
    details: dict[str, float | int] = {"iterations": iterations, "residual": residual}
    if residual <= tolerance:
        return Ended(Status.OK, details)
    return Ended(Status.NOT_CONVERGED, {**details, "tolerance": tolerance})


def warning(status: Status, details: Mapping[str, float | int | str], of: str = "") -> list[str]:
    """That the numbers (of a construction) are not final, and how far they came, so that nobody overlooks it."""
    if status == Status.OK:
        return []
    why = ""
    if "tolerance" in details:  # a construction of somebody else's may know other details
        readings = counted(int(details["iterations"]), "reading")
        why = f": residual {float(details['residual']):.1e} after {readings}, {float(details['tolerance']):.0e} wanted"
    return [f"{of} {status.upper()}{why}".strip()]
