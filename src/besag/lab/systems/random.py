"""Random laws, with a dial for dependence: log p(x) = Σ_i a_i(x_i) + c · g(x) − log Z, all a and g standard normal.

c = 0 is a product of its marginals; the larger c, the less a place knows of itself alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from besag.arrays import Floats
from besag.checks import checked, number, whole_number
from besag.lab.systems.system import Exponential, Given, System, refuse_large


@checked
def random_table(shape: Sequence[int], dependence: float = 1.0, seed: int = 0) -> System:
    """A positive law drawn at random.

    Args:
        shape: (V_1, …, V_N), symbols of each place.
        dependence: c; 0 makes the places independent.
        seed: of the draw.

    Returns:
        The system.

    Examples:
        >>> from besag.lab import random_table
        >>> random_table((2, 3), dependence=0.5).law.shape
        (2, 3)
    """
    log_law = _log_law(shape, dependence, np.random.default_rng(seed))
    weight = np.exp(log_law - log_law.max())
    return Given(weight / weight.sum(), "random table")


@checked
def random_family(shape: Sequence[int], parameters: int = 3, dependence: float = 1.0, seed: int = 0) -> Exponential:
    """An exponential family of standard normal statistics around a random law.

    Args:
        shape: (V_1, …, V_N), symbols of each place.
        parameters: d.
        dependence: c, of the law and so of its conditionals.
        seed: of the draw.

    Returns:
        The family, at θ = 0.

    Examples:
        >>> from besag.lab import random_family
        >>> random_family((2, 2, 2), parameters=2).information.shape
        (2, 2)
    """
    whole_number(parameters, "parameters", most=4096)
    generator = np.random.default_rng(seed)
    base = _log_law(shape, dependence, generator)
    return Exponential(generator.normal(size=(*base.shape, parameters)), base=base, name="random family")


def _log_law(shape: Sequence[int], dependence: float, generator: np.random.Generator) -> Floats:
    widths = [whole_number(width, "shape", most=4096) for width in shape]
    refuse_large(widths, "a random table")
    strength = number(dependence, "dependence", least=0, most=1e3)
    log_law = strength * generator.normal(size=widths)
    for place, width in enumerate(widths):
        along = [1] * len(widths)
        along[place] = width
        log_law = log_law + generator.normal(size=width).reshape(along)
    return np.asarray(log_law)
