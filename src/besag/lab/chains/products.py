"""How near a product can come to a law: what one parallel pass can do at best.

    in KL(p ‖ q)         q = Π_i p_i, the marginals; what is left is the total correlation TC = Σ_i H(X_i) − H(X)
    in total variation   another product, in general: looked for downhill from several starts, so that what is found is
                         never below the best, and may be above it

Knows tables; a conditional of a block is one.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from besag.arrays import Floats
from besag.checks import checked, whole_number
from besag.errors import require
from besag.lab.systems.system import law_of

SMOOTH = (1e-1, 1e-2, 1e-3, 1e-5)  # how round the corners of |·| are, in turn
FLOOR = 1e-9  # of a factor where a search begins
POLISHED, ROUNDS, CLOSE = 2, 20, 1e-6  # how many of what is found are polished, for how long, and what counts as better
ALIKE = 5  # decimals of a distance by which two products are told apart


@checked
def marginals(law: object) -> list[Floats]:
    """The law of each place by itself, (V_i,) each."""
    table = law_of(law)
    return [table.sum(tuple(other for other in range(table.ndim) if other != place)) for place in range(table.ndim)]


@checked
def total_correlation(law: object) -> float:
    """KL(p ‖ Π_i p_i), in nats: the least that any product loses.

    Args:
        law: a system, or an array (V_1, …, V_N).

    Returns:
        Nats, 0 for a product.

    Examples:
        >>> from besag.lab.chains import total_correlation
        >>> round(total_correlation([[0.5, 0.0], [0.0, 0.5]]), 4)  # log 2
        0.6931
    """
    table = law_of(law)
    product = outer(marginals(table))
    there = table > 0
    return max(0.0, float((table[there] * np.log(table[there] / product[there])).sum()))


@checked
def nearest_product(law: object, starts: int = 4, seed: int = 0) -> tuple[float, list[Floats]]:
    """The product nearest in total variation, as far as a search finds it.

    Args:
        law: a system, or an array (V_1, …, V_N) of some hundred states at most.
        starts: random ones, beside the marginals and the likeliest states.
        seed: of those.

    Returns:
        The distance, and the factors.

    Examples:
        >>> from besag.lab.chains import nearest_product
        >>> round(nearest_product([[0.5, 0.0], [0.0, 0.5]])[0], 3)  # √2 − 1; the marginals are ½ away
        0.414
    """
    table = law_of(law)
    whole_number(starts, "starts", least=0, most=1000)
    generator = np.random.default_rng(seed)
    alone = marginals(table)
    likely = [np.unravel_index(state, table.shape) for state in np.argsort(-table.ravel(), kind="stable")[:2]]
    peaks = [[0.4 * one + 0.6 * np.eye(len(one))[symbol] for one, symbol in zip(alone, state, strict=True)]
             for state in likely]  # fmt: skip
    drawn = [[generator.dirichlet(np.ones(width)) for width in table.shape] for _ in range(starts)]
    begins = [alone, *peaks, *drawn]
    apart = lambda one: round(_apart(table, one), ALIKE)  # noqa: E731 (of equals the first: rounding does not choose)
    found = sorted((_descend(table, begin) for begin in begins), key=apart)
    nearest = min((_polish(table, factors) for factors in (*begins, *found[:POLISHED])), key=apart)
    return _apart(table, nearest), nearest


def outer(factors: list[Floats]) -> Floats:
    """The product as a table."""
    return np.asarray(reduce(np.multiply.outer, factors))


def _descend(table: Floats, factors: list[Floats]) -> list[Floats]:
    """Downhill on Σ √((p − q)² + δ²), δ falling, over the logits of the factors."""
    minimize = require("scipy.optimize", extra="eval").minimize
    logits = np.log(np.concatenate(factors) + FLOOR)
    for rounding in SMOOTH:
        logits = minimize(_loss, logits, args=(table, rounding), jac=True, method="L-BFGS-B").x
    return _factors(logits, table.shape)


def _polish(table: Floats, factors: list[Floats]) -> list[Floats]:
    """One factor at a time, each as good as it can be beside the others, until none improves."""
    best = _apart(table, factors)
    for _ in range(ROUNDS):
        moved = [*factors]
        for place in range(table.ndim):
            moved[place] = _best_factor(table, moved, place)
        now = _apart(table, moved)
        if now > best - CLOSE:
            return factors
        best, factors = now, moved
    return factors


def _best_factor(table: Floats, factors: list[Floats], place: int) -> Floats:
    """min_b Σ |p(x) − b(x_i) r(x_−i)| over laws b: a linear program in b and one slack a state."""
    rest = outer([np.ones(1), *(factor for other, factor in enumerate(factors) if other != place)]).ravel()  # (R,)
    rows = np.moveaxis(table, place, 0).reshape(table.shape[place], -1)  # (V, R)
    width, count = rows.shape
    slack = np.eye(width * count)
    product = np.kron(np.eye(width), rest[:, None])  # (V R, V)
    limits = np.block([[product, -slack], [-product, -slack]])
    cost = np.concatenate([np.zeros(width), np.ones(width * count)])
    equal = np.concatenate([np.ones(width), np.zeros(width * count)])[None]
    solved = require("scipy.optimize", extra="eval").linprog(
        cost, A_ub=limits, b_ub=np.concatenate([rows.ravel(), -rows.ravel()]), A_eq=equal, b_eq=[1.0], bounds=(0, None)
    )
    factor = np.clip(solved.x[:width], 0, None)
    return np.asarray(factor / factor.sum())


def _apart(table: Floats, factors: list[Floats]) -> float:
    return float(0.5 * np.abs(table - outer(factors)).sum())


def _factors(logits: Floats, shape: tuple[int, ...]) -> list[Floats]:
    parts = np.split(logits, np.cumsum(shape)[:-1])
    weights = [np.exp(part - part.max()) for part in parts]
    return [weight / weight.sum() for weight in weights]


def _loss(logits: Floats, table: Floats, rounding: float) -> tuple[float, Floats]:
    factors = _factors(logits, table.shape)
    product = outer(factors)
    size = np.sqrt((product - table) ** 2 + rounding**2)
    pull = (product - table) / size * product  # ∂/∂log q
    total = pull.sum()
    gradient = [pull.sum(tuple(other for other in range(table.ndim) if other != place)) - factor * total
                for place, factor in enumerate(factors)]  # fmt: skip
    return float(size.sum()), np.concatenate(gradient)
