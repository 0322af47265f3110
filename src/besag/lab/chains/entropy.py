"""Approximate tensorisation of entropy: how much of the entropy of a function is seen by looking at blocks alone.

    Ent(f) ≤ C_AT · Σ_K p_K E Ent(f | x_−K)        for every f > 0;  Ent(f) = E[f log f] − E f · log E f

With f = q/p this is KL(q ‖ p) ≤ C_AT · (what a pseudo-likelihood measures): the constant of the finite-sample bound. It
is not found in closed form, but held from both sides:

    C_P ≤ C_AT ≤ C_P · log(1/π* − 1) / (1 − 2π*)        π* the least probability of a state

From below: near f = 1 the ratio is that of variances, so C_P is one; a search over log f from many starts may find
more.
Above: Ent(f) ≤ κ(π*) Var(√f) on any finite space, Poincaré for √f, and Var(√f | ·) ≤ Ent(f | ·). On a product measure
both ends meet: C_AT = C_P = 1 / min_i P(i ∈ K), N/k for uniform k-sets.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import NamedTuple

import numpy as np

from besag.arrays import Floats
from besag.checks import checked, whole_number
from besag.errors import require
from besag.lab.chains.kernels import Blocks, blocks
from besag.lab.chains.spectrum import spectrum
from besag.lab.learning.masks import Masks

SCALES = (0.1, 1.0, 4.0)  # of log f, where a search begins
LOWEST = -500.0  # of log f, so that no density underflows
PEAK = 8.0  # log f at the one state of a point start


class Tensorisation(NamedTuple):
    """What is certain of C_AT."""

    lower: float  # the largest ratio that was found, C_P at least
    upper: float
    poincare: float
    witness: Floats  # (V_1, …, V_N) a density f whose ratio is `lower`, mean 1; f = 1 where that is C_P
    product: bool  # is the law a product, so that both ends meet?


@checked
def tensorisation(law: object, masks: int | Masks = 1, starts: int = 8, seed: int = 0) -> Tensorisation:
    """Bounds on the constant of entropy tensorisation.

    Args:
        law: a system, or an array (V_1, …, V_N); some hundreds of states take seconds.
        masks: k for uniform sets of k places; or sets with their probabilities.
        starts: random places to search from, beside the slow mode and the least likely states.
        seed: of those places.

    Returns:
        The bounds.

    Examples:
        >>> from besag.lab.chains import tensorisation
        >>> import numpy as np
        >>> found = tensorisation(np.full((2, 2, 2), 1 / 8), 2)
        >>> round(found.lower, 6), round(found.upper, 6)  # N / k
        (1.5, 1.5)
    """
    whole_number(starts, "starts", least=0, most=10_000)
    chain = blocks(law, masks)
    found = spectrum(chain)
    pi = chain.aim
    product = _is_product(pi)
    upper = found.poincare * _kappa(float(pi.min()))
    if product:
        upper = 1 / min(_coverage(chain))
    best, witness = found.poincare, np.ones_like(pi)
    if not product:
        for start in _starts(chain, found.slow, starts, seed):
            ratio, f = _climb(chain, start)
            if ratio > best:
                best, witness = ratio, f
    return Tensorisation(min(best, upper), upper, found.poincare, witness, product)


def entropy_ratio(chain: Blocks, f: Floats) -> float:
    """Ent(f) / Σ_K p_K E Ent(f | x_−K): never above C_AT."""
    return math.exp(-_loss(np.log(np.ravel(f)), chain)[0])


def _kappa(least: float) -> float:
    """log(1/π* − 1)/(1 − 2π*), 2 in the limit of two even states."""
    return 2.0 if least > 0.5 - 1e-6 else math.log(1 / least - 1) / (1 - 2 * least)


def _is_product(pi: Floats) -> bool:
    axes = range(pi.ndim)
    marginals = [pi.sum(tuple(other for other in axes if other != place)) for place in axes]
    return bool(np.abs(reduce(np.multiply.outer, marginals) - pi).max() < 1e-12)


def _coverage(chain: Blocks) -> list[float]:
    """How often each place is hidden, at least."""
    often = [
        sum(np.broadcast_to(weight, chain.aim.shape) for places, weight in chain.masks.items() if place in places)
        for place in range(chain.aim.ndim)
    ]
    return [float(np.min(one)) for one in often]


def _starts(chain: Blocks, slow: Floats, count: int, seed: int) -> list[Floats]:
    generator = np.random.default_rng(seed)
    rare = np.argsort(chain.law)[:2]
    points = [PEAK * np.eye(chain.size)[state] for state in (*rare, int(chain.law.argmax()))]
    modes = [sign * scale * slow for scale in SCALES for sign in (1, -1)]
    drawn = [generator.normal(scale=SCALES[at % len(SCALES)], size=chain.size) for at in range(count)]
    return [*modes, *points, *drawn]


def _climb(chain: Blocks, start: Floats) -> tuple[float, Floats]:
    minimize = require("scipy.optimize", extra="eval").minimize
    found = minimize(_loss, start, args=(chain,), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    f = np.exp(found.x - found.x.max())
    ratio = math.exp(-found.fun) if math.isfinite(found.fun) else 0.0
    return ratio, (f / (chain.law @ f)).reshape(chain.aim.shape)


def _loss(g: Floats, chain: Blocks) -> tuple[float, Floats]:
    """log of (Σ_K p_K E Ent(f | x_−K)) / Ent(f) at f = exp(g), and its gradient."""
    pi, g = chain.aim, np.maximum(g - g.max(), LOWEST)
    f = np.exp(g).reshape(pi.shape)
    level = g.reshape(pi.shape)
    whole = pi * (level - math.log(float((pi * f).sum())))  # ∂Ent/∂f
    seen = pi * level  # ∂/∂f of what blocks see
    for places, weight in chain.masks.items():
        mass = pi * weight
        total = mass.sum(places, keepdims=True)
        mean = np.divide((mass * f).sum(places, keepdims=True), total, out=np.ones_like(total), where=total > 0)
        seen = seen - mass * np.log(mean)
    entropy, local = float((whole * f).sum()), float((seen * f).sum())
    if entropy < 1e-13 or local < 1e-15:  # f is constant to rounding: nothing to be said there
        return 50.0, np.zeros_like(g)
    gradient = (seen / local - whole / entropy) * f
    return math.log(local / entropy), np.asarray(gradient.ravel())
