"""How far the learnt law can be from the truth after n sequences: a bound with everything it assumes said.

Assumed: Θ is finite, of M laws, and the truth is one of them; θ̂ has the least block loss of them; every block
conditional of every law of Θ is at least β; each of them tensorises entropy over the masks with a constant of at most
C: KL(q‖p_θ) ≤ C · E_K E_{x_−K ~ q} KL(q(x_K | x_−K) ‖ p_θ(x_K | x_−K)) for all q. Then, with chance at least 1 − δ over
n sequences with any number m ≥ 1 of masks each, TV(p_θ̂, p) ≤ √(C·D/2), where D bounds the excess block loss:

    slow    D = ln(1/β) √(2 ln(2M/δ)/n)         Hoeffding for each law: the loss lies between 0 and ln(1/β)
    fast    D = 2 (2 + ln(1/β)) ln(M/δ)/n       Chernoff for √(p_θ/p), then KL ≤ (2 + ln(1/β)) Σ(√p − √q)²

Both hold; the smaller is the bound. m does not enter: for one x, E_K ∏_j Y_{K_j}^{1/m} ≤ E_K Y_K, so more masks do no
harm, and nothing here says that they help.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from besag.arrays import Floats
from besag.checks import checked, number, whole_number
from besag.errors import BesagError
from besag.lab.learning.masks import Masks, checked_masks
from besag.lab.systems.system import System, law_of


@dataclass(frozen=True)
class Bound:
    """TV(p_θ̂, p), at most, with chance 1 − δ. Made by `finite_sample_bound`.

    Attributes:
        slow: by Hoeffding, of order n^−1/4.
        fast: by Chernoff, of order n^−1/2.
    """

    slow: float
    fast: float

    @property
    def value(self) -> float:
        """The smaller of the two, and of 1, which bounds every total variation."""
        return min(self.slow, self.fast, 1.0)


@checked
def finite_sample_bound(sequences: int, laws: int, floor: float, tensorisation: float, chance: float = 0.05) -> Bound:
    """How far the best fit of finitely many can be from the truth.

    Args:
        sequences: n.
        laws: M, how many laws are compared, the truth among them.
        floor: β, the least that any of them gives to a block it is asked for.
        tensorisation: C, the worst constant of entropy tensorisation among them; at least 1.
        chance: δ, that the bound fails.

    Returns:
        The bound, in two forms.

    Examples:
        >>> from besag.lab import finite_sample_bound
        >>> round(finite_sample_bound(10_000, laws=8, floor=0.05, tensorisation=4).value, 3)
        0.101
    """
    count = whole_number(sequences, "sequences", most=10**18)
    size = whole_number(laws, "laws", most=10**18)
    least = -math.log(number(floor, "floor", least=1e-300, most=1))
    constant = number(tensorisation, "tensorisation", least=1)
    fails = number(chance, "chance", least=1e-300, most=1)
    slow = least * math.sqrt(2 * math.log(2 * size / fails) / count)
    fast = 2 * (2 + least) * math.log(size / fails) / count
    return Bound(math.sqrt(constant * slow / 2), math.sqrt(constant * fast / 2))


def least_conditional(laws: Sequence[System], masks: Masks) -> float:
    """β: the least block conditional of all of these laws over all sets that are hidden."""
    return min(
        float(one.conditional(hidden).min()) for one in laws for hidden, _ in checked_masks(masks, laws[0].shape)
    )


def tensorisation_bound(law: System | Floats, masks: Masks) -> float:
    """An upper bound of C: the Poincaré constant of block dynamics times log(1/p* − 1)/(1 − 2 p*), p* the least chance.

    Var(√f) ≤ Ent(f), and Ent(f) is at most that factor times Var(√f): entropy is tensorised as variance is.
    """
    given = law_of(law, positive=True)
    flat, size = given.ravel(), given.size
    root = np.sqrt(flat)
    projection = np.zeros((size, size))  # of functions of x to those of x_−K, averaged over K, in L²(p)
    contexts = np.arange(size).reshape(given.shape)
    for hidden, chances in checked_masks(masks, given.shape):
        if chances.size > 1:
            raise BesagError("this bound is about masks that do not look at x")
        rest = [place for place in range(given.ndim) if place not in hidden]
        groups = contexts.transpose(*rest, *hidden).reshape(-1, math.prod(given.shape[place] for place in hidden))
        for group in groups:
            part = root[group]
            projection[np.ix_(group, group)] += float(chances.ravel()[0]) * np.outer(part, part) / (part @ part)
    second = float(np.linalg.eigvalsh(projection)[-2])
    if second >= 1 - 1e-12:
        raise BesagError("block dynamics with these masks cannot reach every state: no constant bounds it")
    least = float(flat.min())
    factor = 2.0 if least >= 0.5 else math.log(1 / least - 1) / (1 - 2 * least)
    return max(1.0, factor / (1 - second))
