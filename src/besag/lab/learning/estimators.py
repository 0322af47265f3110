"""θ̂ from data: n sequences, m masks each, the loss made as small as it gets; and how θ̂ scatters over many data sets.

Fisher scoring: θ ← θ + t H(θ)⁻¹ g(θ), with g the gradient and H = Σ Var(parts | x_−K) over the contexts that were seen,
t halved until the loss falls. For the block loss of an exponential family H is the Hessian itself, and this is Newton.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from besag.arrays import Floats, Ints
from besag.checks import checked, whole_number
from besag.errors import BesagError
from besag.lab.learning.gradients import Gradients, check_loss, gradients
from besag.lab.learning.information import Information, information
from besag.lab.learning.masks import Loss, Masks, Sets, checked_masks
from besag.lab.seeds import chi_square
from besag.lab.systems.system import Family

ROUNDS, STILL, BLIND = 200, 1e-6, 1e-10  # of scoring; a step this small ends it; curvature, of a draw, that is none
MOST_DRAWS = 10**8


class Fit(NamedTuple):
    """What a fit came to."""

    theta: Floats  # (d,)
    converged: bool  # else the loss has no minimum in reach: the data are all alike in some direction of θ
    rounds: int


@dataclass(frozen=True, eq=False)
class Estimates:
    """Many fits, each to data of its own, beside what theory says of them. Made by `simulate`.

    Attributes:
        theta: (d,) the truth.
        estimates: (R, d) θ̂ of each data set that had one.
        failed: how many had none: its loss falls for ever in some direction.
        sequences: n, of each data set.
        masks: m, drawn for each sequence.
        theory: the exact information.
    """

    theta: Floats
    estimates: Floats
    failed: int
    sequences: int
    masks: int
    theory: Information

    @property
    def covariance(self) -> Floats:
        """(d, d) n · mean of (θ̂ − θ)(θ̂ − θ)ᵀ, which tends to Γ_m."""
        off = self.estimates - self.theta
        return np.asarray(self.sequences * off.T @ off / len(off))

    @property
    def inflation(self) -> float:
        """tr(I Γ̂)/d, simulated."""
        return float(np.trace(self.theory.fisher @ self.covariance)) / len(self.theta)

    @property
    def band(self) -> tuple[float, float]:
        """Where 99 % of such simulations lie if theory is right."""
        return self.band_of(0.01)

    def band_of(self, outside: float) -> tuple[float, float]:
        """Return where all but a share `outside` of such simulations lie if theory is right, half of it on each side.

        As n grows, n (θ̂ − θ)ᵀ I (θ̂ − θ)/d tends to Σ λ_i χ²_1/d, λ the eigenvalues of IΓ, of mean tr(IΓ)/d and variance
        2 tr((IΓ)²)/d². The mean over R data sets is taken as a multiple of χ² of R tr(IΓ)²/tr((IΓ)²) degrees, which has
        the same mean and variance (Satterthwaite) and, unlike a normal distribution, is skewed as the mean is.
        """
        product = self.theory.fisher @ self.theory.covariance(self.masks)
        trace = float(np.trace(product))
        freedom = len(self.estimates) * trace**2 / float(np.trace(product @ product))
        low, high = (chi_square(freedom, tail) / freedom * trace for tail in (1 - outside / 2, outside / 2))
        return low / len(self.theta), high / len(self.theta)


@checked
def fit(family: Family, masks: Masks | Sets, counts: Floats, loss: Loss = "block") -> Fit:
    """θ̂, from how often each state was seen with each mask.

    Args:
        family: where the fit begins.
        masks: the law of masks, whose sets are those of the counts, in order.
        counts: (sets, S) how often each state was masked so.
        loss: "block" or "token".

    Returns:
        The fit; `.converged` is false where the loss has no minimum in reach.

    Examples:
        >>> import numpy as np
        >>> from besag.lab import chain, fit, ising, uniform_masks
        >>> seen = np.array([[40.0, 10.0, 10.0, 40.0]] * 2)  # of two spins, each hidden in turn
        >>> fit(ising(chain(2), 0.0), uniform_masks(2, 1), seen).theta.round(3)  # ½ log 2
        array([0.693])
    """
    check_loss(loss)
    sets, total = checked_masks(masks, family.shape), counts.sum()
    if counts.shape != (len(sets), family.size) or not total > 0:
        raise BesagError(f"counts have the shape {counts.shape}: give one row a set of masks, one column a state")
    now, height = family, _height(family, sets, counts, loss)
    for done in range(ROUNDS):
        slope, curve = _slope(now, sets, counts, loss)
        if np.linalg.eigvalsh(curve)[0] <= BLIND * total:  # θ ran away, or never was seen
            return Fit(now.theta, False, done)
        step = np.linalg.solve(curve, slope)
        if np.abs(step).max() <= STILL * (1 + np.abs(now.theta).max()):
            return Fit(now.theta, True, done)
        for halving in range(40):
            moved = now.at(now.theta + step / 2**halving)
            lower = _height(moved, sets, counts, loss)
            if lower <= height + 1e-12 * abs(height):
                break
        else:
            return Fit(now.theta, False, done)
        now, height = moved, lower
    return Fit(now.theta, False, ROUNDS)


def _slope(family: Family, sets: Sets, counts: Floats, loss: Loss) -> tuple[Floats, Floats]:
    """The gradient of the log-likelihood and the information of the contexts seen."""
    size = len(family.theta)
    slope, curve = np.zeros(size), np.zeros((size, size))
    for one, seen in zip(gradients(family, sets, loss), counts, strict=True):
        slope += seen @ sum(one.parts)
        expected = _expected(family, one, seen)
        curve += sum(part.T @ (expected[:, None] * part) for part in one.parts)
    return slope, curve


def _expected(family: Family, one: Gradients, seen: Floats) -> Floats:
    """(S,) how often each state would be seen, given how often its context was."""
    weight, shape = one.weight.reshape(family.shape), family.shape
    mass = weight.sum(one.hidden, keepdims=True)
    contexts = seen.reshape(shape).sum(one.hidden, keepdims=True)
    return np.asarray(np.divide(weight * contexts, mass, out=np.zeros(shape), where=mass > 0)).ravel()


def _height(family: Family, sets: Sets, counts: Floats, loss: Loss) -> float:
    """The loss, summed."""
    total = 0.0
    for (hidden, chances), row in zip(sets, counts, strict=True):
        weight = np.broadcast_to(family.law * chances, family.shape)
        seen = row.reshape(family.shape)
        context = weight.sum(hidden, keepdims=True)
        asked = [()] if loss == "block" else [tuple(p for p in hidden if p != place) for place in hidden]
        for others in asked:
            inner = weight.sum(others, keepdims=True) if others else weight
            ratio = np.broadcast_to(inner / np.where(context > 0, context, 1.0), family.shape)[seen > 0]
            with np.errstate(divide="ignore"):  # a step too far makes what was seen impossible: an infinite loss
                total -= float(seen[seen > 0] @ np.log(ratio))
    return total


@checked
def simulate(
    family: Family,
    masks: Masks,
    loss: Loss = "block",
    sequences: int = 2000,
    draws: int = 1,
    repeats: int = 200,
    seed: int = 0,
) -> Estimates:
    """Data drawn, masked and fitted, many times over.

    Args:
        family: the truth.
        masks: the law of masks.
        loss: "block" or "token".
        sequences: n, of each data set.
        draws: m, masks drawn for each sequence.
        repeats: how many data sets.
        seed: of all of it.

    Returns:
        The estimates, with the exact information to hold them against.

    Examples:
        >>> from besag.lab import chain, ising, simulate, uniform_masks
        >>> seen = simulate(ising(chain(3), 0.5), uniform_masks(3, 2), sequences=1000, repeats=50)
        >>> seen.band[0] < seen.inflation < seen.band[1]
        True
    """
    whole_number(sequences, "sequences", most=MOST_DRAWS // max(1, int(draws)))
    whole_number(draws, "draws", most=MOST_DRAWS)
    whole_number(repeats, "repeats", least=2, most=10**6)
    theory = information(family, masks, loss)
    theory.covariance(draws)  # refuses what has none, before any work
    generator = np.random.default_rng(seed)
    sets = checked_masks(masks, family.shape)
    chances = np.stack([np.broadcast_to(chance, family.shape).ravel() for _, chance in sets])  # (sets, S)
    fits = []
    for _ in range(repeats):
        drawn: Ints = generator.multinomial(sequences, family.law.ravel())
        fits.append(fit(family, sets, _masked(drawn * draws, chances, generator), loss))
    kept = np.array([one.theta for one in fits if one.converged]).reshape(-1, len(family.theta))
    if len(kept) < 2:
        raise BesagError(f"{len(fits) - len(kept)} of {repeats} data sets have no estimate: draw more sequences")
    return Estimates(family.theta, kept, repeats - len(kept), sequences, draws, theory)


def _masked(drawn: Ints, chances: Floats, generator: np.random.Generator) -> Floats:
    """(sets, S) how many of the draws of each state were given which mask."""
    split = generator.multinomial(drawn, chances.T / chances.sum(0)[:, None])  # (S, sets)
    return split.T.astype(np.float64)
