"""How many steps until a chain is where it should be, from wherever it began.

    d(t) = max_x ½ Σ_y |P^t(x, y) − μ(y)|        t(ε) = min { t : d(t) ≤ ε }

d never grows, so t(ε) is found by halving. In detailed balance every power of P is a product of its eigenvectors; else
it is squared. Where a matrix of all states is too large, what is certain is said:

    from below   t(ε) from stated starts alone, each start's law pushed step by step; and (1/gap* − 1) log(1/2ε)
    from above   ½ √(1/π(x) − 1) (1 − gap*)^t ≤ ε for the least π(x)                  gap* the absolute gap
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from besag.arrays import Floats
from besag.checks import array, checked, number, whole_number
from besag.errors import BesagError
from besag.lab.chains.spectrum import spectrum
from besag.lab.chains.transition import Transition, numbered

EPSILON = 0.25  # the usual one
LONGEST = 2**40  # steps after which a chain is said not to mix
MOST_STEPS = 2**20  # of a law that is pushed


class Bracket(NamedTuple):
    """What is certain of t(ε)."""

    lower: int
    upper: int
    exact: bool  # are both the same, by looking at every start?
    gap: float  # the absolute one


@checked
def worst_distance(chain: Transition, steps: int, to: ArrayLike | None = None) -> float:
    """d(t): the total variation from a law after so many steps, from the worst start.

    Args:
        chain: any, up to 2^12 states.
        steps: t.
        to: (S,) the law to compare with; the chain's own if left out.

    Returns:
        The distance, between 0 and 1.

    Examples:
        >>> from besag.lab.chains import gibbs, worst_distance
        >>> round(worst_distance(gibbs([[0.4, 0.1], [0.1, 0.4]]), 5), 3)
        0.164
    """
    law = chain.law if to is None else np.ravel(array(to, "to"))
    if law.shape != (chain.size,):
        raise BesagError(f"to has {law.size:,} entries: give a law of the {chain.size:,} states of {chain.name}")
    whole_number(steps, "steps", least=0, most=LONGEST)
    return _far(np.linalg.matrix_power(chain.matrix, steps), law)


@checked
def mixing_time(chain: Transition, epsilon: float = EPSILON) -> int:
    """t(ε), exactly, over every start.

    Args:
        chain: any, up to 2^12 states; 2^10 take a second or two.
        epsilon: the total variation to reach.

    Returns:
        Steps.

    Examples:
        >>> from besag.lab.chains import gibbs, mixing_time
        >>> mixing_time(gibbs([[0.4, 0.1], [0.1, 0.4]]))
        4
    """
    number(epsilon, "epsilon", least=1e-9, most=1)
    law = chain.law
    if chain.reversible:
        root = np.sqrt(law)
        symmetric = root[:, None] * chain.matrix / root
        values, vectors = np.linalg.eigh(0.5 * (symmetric + symmetric.T))
        spectrum_gap = 1 - float(np.abs(values[:-1]).max(initial=0.0))
        if spectrum_gap < 1e-12:
            spectrum(chain)  # says why, in words
        left, right = vectors / root[:, None], vectors * root[:, None]

        def far(steps: int) -> bool:
            return _far((left * np.sign(values) ** steps * np.abs(values) ** steps) @ right.T, law) > epsilon

        return _least(far, _spectral_lower(spectrum_gap, epsilon))
    return _by_squaring(chain, law, epsilon)


def _by_squaring(chain: Transition, law: Floats, epsilon: float) -> int:
    if _far(np.eye(len(law)), law) <= epsilon:
        return 0
    powers = [chain.matrix]
    while _far(powers[-1], law) > epsilon:
        if 2 ** len(powers) > LONGEST:
            raise BesagError(f"{chain.name} does not come within {epsilon:g} of its law in {LONGEST:,} steps")
        powers.append(powers[-1] @ powers[-1])
    reached, steps = np.eye(len(law)), 0
    for k in range(len(powers) - 1, -1, -1):  # the largest number of steps after which it is still far
        if _far(reached @ powers[k], law) > epsilon:
            reached, steps = reached @ powers[k], steps + 2**k
    return steps + 1


def _far(power: Floats, law: Floats) -> float:
    return float(0.5 * np.abs(power - law).sum(1).max())


def _least(far: Callable[[int], bool], guess: int) -> int:
    """The least number of steps that is not far, which is at least the guess."""
    low, high = guess - 1, max(guess, 1)
    while far(high):
        low, high = high, 2 * high
        if high > LONGEST:
            raise BesagError(f"it does not come there in {LONGEST:,} steps")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if far(middle) else (low, middle)
    return high if high > 1 or far(0) else 0


# ---- beyond matrices


@checked
def mixing_bracket(
    chain: Transition, epsilon: float = EPSILON, starts: Sequence[int] | None = None, exact: bool | None = None
) -> Bracket:
    """t(ε) exactly where a matrix of all states can be made, and else from below and above.

    Args:
        chain: reversible.
        epsilon: the total variation to reach.
        starts: states to begin from, for the bound from below; the likeliest and the least likely one if left out.
        exact: look at every start? If left out, up to 2^10 states.

    Returns:
        The bounds.

    Examples:
        >>> from besag.lab import chain, ising
        >>> from besag.lab.chains import gibbs, mixing_bracket
        >>> bracket = mixing_bracket(gibbs(ising(chain(11), 0.3)))
        >>> bracket.lower <= bracket.upper
        True
    """
    number(epsilon, "epsilon", least=1e-9, most=0.5)
    gap = spectrum(chain).absolute_gap
    if exact or (exact is None and chain.size <= 2**10):
        time = mixing_time(chain, epsilon)
        return Bracket(time, time, True, gap)
    law = chain.law
    chosen = numbered([law.argmax(), law.argmin()] if starts is None else starts, chain.size, "starts")
    least = float(law.min())
    upper = math.log(math.sqrt((1 - least) / least) / (2 * epsilon)) / -math.log1p(-gap)
    lower = max(_spectral_lower(gap, epsilon), *(_from(chain, int(start), epsilon) for start in chosen))
    return Bracket(lower, max(lower, math.ceil(upper)), False, gap)


def _spectral_lower(gap: float, epsilon: float) -> int:
    return max(0, math.ceil((1 / gap - 1) * math.log(1 / (2 * epsilon)) - 1e-9))


def _from(chain: Transition, start: int, epsilon: float) -> int:
    """Steps until the law of one start is near; a bound from below, also where it was given up."""
    now = np.zeros(chain.size)
    now[start] = 1
    for steps in range(MOST_STEPS):
        if 0.5 * np.abs(now - chain.law).sum() <= epsilon:
            return steps
        now = chain.push(now)
    return MOST_STEPS
