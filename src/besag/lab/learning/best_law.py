"""The best law of masks at a fixed number of passes.

Block loss. To hide K costs c_K = |K| passes (a block is drawn token by token, so its probability takes as many). Among
laws of one pass on average, w ≥ 0 with Σ_K c_K w_K = 1, find the least

    φ(w) = tr(I M(w)⁻¹)/d,     M(w) = Σ_K w_K J_K,     J_K = E Var(s | x_−K)

φ is convex (an L-optimal design), so it has a certificate: with d_K = tr(I M⁻¹ (J_K/c_K) M⁻¹)/d, w is best if and only
if d_K ≤ φ(w) for all K, with equality where w_K > 0; and whatever w is, φ(w) − min φ ≤ max_K d_K − φ(w).

Token loss. A pass answers for all hidden places at once, so c_K = 1. φ(w) = tr(I H⁻¹ G H⁻¹)/d with H = Σ w_K H_K and
G = Σ w_K G_K is not convex: descents from many starts, and the best that any of them found. No claim beyond that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from besag.arrays import Bools, Floats
from besag.checks import checked, whole_number
from besag.errors import BesagError, quoted
from besag.lab.learning.gradients import check_loss, gradients
from besag.lab.learning.information import RANK
from besag.lab.learning.masks import Loss
from besag.lab.systems.system import Family, subset

NONE = 1e-9  # a weight below this is none
CERTAIN = 1e-6  # of φ: a certificate that closes to this share is one
MOST_SETS = 4096


@dataclass(frozen=True, eq=False)
class BestLaw:
    """A law of masks that learns most from a pass. Made by `best_law`.

    Attributes:
        loss: "block" or "token".
        masks: the chance of each set that is hidden at all, summing to one.
        value: φ: sequences needed for each that maximum likelihood needs, times passes for each of them.
        gap: block: φ is at most this far above the least there is. Token: none (nan), for φ is not convex.
        derivatives: d_K of every set; the certificate is that none exceeds `value`.
        starts: descents made.
        reached: how many of them came to the same value.
    """

    loss: Loss
    masks: dict[tuple[int, ...], float]
    value: float
    gap: float
    derivatives: dict[tuple[int, ...], float]
    starts: int
    reached: int

    @property
    def certified(self) -> bool:
        """Is it the best of all laws, proved by its certificate? Never for tokens."""
        return bool(self.gap <= CERTAIN * self.value)


@checked
def best_law(
    family: Family,
    loss: Loss = "block",
    sets: Iterable[Iterable[int]] | None = None,
    starts: int = 20,
    seed: int = 0,
) -> BestLaw:
    """The law of masks that learns most from a pass.

    Args:
        family: the law, at the true θ.
        loss: "block" (hiding K costs |K| passes; convex, certified) or "token" (one pass; many starts, no certificate).
        sets: the sets of places that may be hidden; all of them, if left out.
        starts: descents from random laws, for tokens.
        seed: of these.

    Returns:
        The law, its value and its certificate.

    Examples:
        >>> from besag.lab import best_law, chain, ising
        >>> best = best_law(ising(chain(4), 0.3))
        >>> {places: round(chance, 3) for places, chance in best.masks.items()}, round(best.value, 2), best.certified
        ({(1,): 0.5, (2,): 0.5}, 1.82, True)
    """
    check_loss(loss)
    whole_number(starts, "starts", most=10**5)
    places = _sets(family, sets)
    hessians, spreads = _matrices(family, places, loss)
    if loss == "block":
        cost = np.array([float(len(hidden)) for hidden in places])
        parts = hessians / cost[:, None, None]
        share = _sparse(family.information, parts, _least(family.information, parts))
        value, derivatives = _design(family.information, parts, share)
        gap, tries, reached, chance = float(derivatives.max()) - value, 1, 1, share / cost
    else:
        chance, value, derivatives, reached = _descents(family.information, hessians, spreads, starts, seed)
        gap, tries = math.nan, starts
    chance = np.where(chance > NONE * chance.max(), chance, 0.0)
    masks = {hidden: float(part / chance.sum()) for hidden, part in zip(places, chance, strict=True) if part}
    found = {hidden: float(one) for hidden, one in zip(places, derivatives, strict=True)}
    return BestLaw(loss, masks, value, gap, found, tries, reached)


def _sets(family: Family, sets: Iterable[Iterable[int]] | None) -> list[tuple[int, ...]]:
    count = family.places
    if sets is None:
        if 2**count - 1 > MOST_SETS:
            raise BesagError(
                f"{count} places have {2**count - 1:,} sets, and at most {MOST_SETS:,} are weighed: "
                f"give at most {MOST_SETS.bit_length() - 1} places, or name the sets"
            )
        return [hidden for size in range(1, count + 1) for hidden in combinations(range(count), size)]
    named = [tuple(subset(hidden, count, "sets")) for hidden in sets]
    if not named or not all(named) or len(set(named)) < len(named) or len(named) > MOST_SETS:
        raise BesagError(f"sets={quoted(named)}: give from 1 to {MOST_SETS:,} different sets, none of them empty")
    return named


def _matrices(family: Family, sets: list[tuple[int, ...]], loss: Loss) -> tuple[Floats, Floats]:
    """(sets, d, d) the Hessian of each set, and the covariance of its gradient."""
    hessians, spreads = [], []
    for hidden in sets:
        [one] = gradients(family, {hidden: 1.0}, loss)
        weight, whole = one.weight[:, None], sum(one.parts, np.zeros_like(family.scores))
        hessians.append(sum(part.T @ (weight * part) for part in one.parts))
        spreads.append(whole.T @ (weight * whole))
    most = np.linalg.eigvalsh(sum(hessians, np.zeros_like(family.information)))
    if most[0] <= RANK * np.linalg.eigvalsh(family.information)[-1]:
        raise BesagError(
            f"no law over these sets can see all of θ with the {loss} loss: the information of all of them together "
            "is singular; name more sets, or fewer parameters"
        )
    return np.array(hessians), np.array(spreads)


# ---- block: convex


def _design(fisher: Floats, parts: Floats, share: Floats) -> tuple[float, Floats]:
    """φ, and d_K = −∂φ/∂v_K for every set."""
    inverse = np.linalg.inv(np.tensordot(share, parts, 1))
    sandwich = inverse @ fisher @ inverse / len(fisher)
    return float(np.trace(fisher @ inverse)) / len(fisher), np.einsum("ij,kji->k", sandwich, parts)


def _least(fisher: Floats, parts: Floats) -> Floats:
    """The shares v_K = c_K w_K: a multiplicative descent, which never fails, then Newton's on the sets that matter."""
    share = np.full(len(parts), 1 / len(parts))
    for _ in range(2000):
        value, slope = _design(fisher, parts, share)
        if slope.max() - value <= 1e-3 * CERTAIN * value:
            return share
        share = share * np.sqrt(slope / value)  # rises where d_K > φ
        share /= share.sum()
    for _ in range(200):
        value, slope = _design(fisher, parts, share)
        if slope.max() - value <= 1e-3 * CERTAIN * value:
            break
        active = share > 1e-12
        active[slope.argmax()] = True
        moved = _newton(fisher, parts, share, slope, active)
        lower, _ = _design(fisher, parts, moved)
        if lower >= value:
            break
        share = moved
    return share


def _sparse(fisher: Floats, parts: Floats, share: Floats) -> Floats:
    """Without the sets that hardly count, as long as the certificate closes all the same."""
    for least in (1e-2, 1e-3, 1e-4, 1e-6):
        fewer = np.where(share >= least, share, 0.0)
        if not fewer.any() or np.linalg.matrix_rank(np.tensordot(fewer, parts, 1), hermitian=True) < len(fisher):
            continue
        value, slope = _design(fisher, parts, fewer / fewer.sum())
        if slope.max() - value <= 0.1 * CERTAIN * value:
            return np.asarray(fewer / fewer.sum())
    return share


def _newton(fisher: Floats, parts: Floats, share: Floats, slope: Floats, active: Bools) -> Floats:
    """One step on the active sets that keeps Σ v = 1, cut where a share would fall below zero."""
    at = np.flatnonzero(active)
    inverse = np.linalg.inv(np.tensordot(share, parts, 1))
    near = inverse @ parts[at]  # (a, d, d) M⁻¹ A_K
    curve = 2 / len(fisher) * np.einsum("kij,ljm,mi->kl", near, near, inverse @ fisher)
    system = np.block([[(curve + curve.T) / 2, np.ones((len(at), 1))], [np.ones((1, len(at))), np.zeros((1, 1))]])
    step = np.linalg.lstsq(system, np.append(slope[at], 0.0), rcond=1e-12)[0][:-1]
    falls = step < 0
    reach = min(1.0, float((share[at][falls] / -step[falls]).min(initial=1.0)))
    value, _ = _design(fisher, parts, share)
    for halving in range(40):
        moved = share.copy()
        moved[at] = np.maximum(share[at] + reach / 2**halving * step, 0.0)
        moved /= moved.sum()
        if _design(fisher, parts, moved)[0] < value:
            return moved
    return share


# ---- token: not convex


def _token(fisher: Floats, hessians: Floats, spreads: Floats, chance: Floats) -> tuple[float, Floats]:
    """φ = tr(I H⁻¹ G H⁻¹)/d, infinite where H is singular, and −∂φ/∂w_K."""
    hessian = np.tensordot(chance, hessians, 1)
    if np.linalg.eigvalsh(hessian)[0] <= RANK * np.linalg.eigvalsh(fisher)[-1]:
        return math.inf, np.zeros(len(chance))
    inverse = np.linalg.inv(hessian)
    spread = np.tensordot(chance, spreads, 1)
    outer = inverse @ fisher @ inverse / len(fisher)
    middle = outer @ spread @ inverse
    slope = np.einsum("ij,kji->k", middle + middle.T, hessians) - np.einsum("ij,kji->k", outer, spreads)
    return float(np.sum(outer * spread)), slope


def _descents(
    fisher: Floats, hessians: Floats, spreads: Floats, starts: int, seed: int
) -> tuple[Floats, float, Floats, int]:
    """The best of many descents: its law, value, derivatives, and how many came to it."""
    generator = np.random.default_rng(seed)
    ends = []
    for start in range(starts):
        begin = np.full(len(hessians), 1.0) if start == 0 else generator.gamma(0.3, size=len(hessians)) + 1e-6
        ends.append(_descend(fisher, hessians, spreads, begin / begin.sum()))
    values = np.array([value for value, _ in ends])
    chance = ends[int(values.argmin())][1]
    value, slope = _token(fisher, hessians, spreads, chance)
    return chance, value, slope, int((values <= values.min() * (1 + 1e-4)).sum())


def _descend(fisher: Floats, hessians: Floats, spreads: Floats, chance: Floats) -> tuple[float, Floats]:
    """Exponentiated gradient, w ← w e^{η d}/Z, η doubled while φ falls and halved where it does not."""
    value, slope = _token(fisher, hessians, spreads, chance)
    rate = 1.0
    for _ in range(3000):
        moved = chance * np.exp(np.clip(rate * (slope - slope @ chance) / value, -50, 50))
        moved /= moved.sum()
        lower, tilt = _token(fisher, hessians, spreads, moved)
        if lower < value:
            settled = value - lower <= 1e-12 * value
            chance, value, slope, rate = moved, lower, tilt, rate * 2
            if settled:
                break
        else:
            rate /= 4
            if rate < 1e-9:
                break
    return value, chance
