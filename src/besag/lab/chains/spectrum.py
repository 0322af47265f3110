"""How fast a chain forgets, by its spectrum.

In detailed balance with π, A = D^½ P D^−½ is symmetric (D = diag π), with eigenvalues 1 = λ₁ ≥ λ₂ ≥ … ≥ λ_S ≥ −1:

    gap                1 − λ₂
    Poincaré constant  C = 1 / (1 − λ₂), the least with Var(f) ≤ C · E(f, f); for blocks E(f, f) = Σ p_K E Var(f | x_−K)
    absolute gap       1 − max(λ₂, |λ_S|), which bounds mixing; the same as the gap for blocks, where no λ is negative

Up to 1,024 states all eigenvalues are found; beyond, λ₂ alone, by Lanczos on what a step does to a function, with √π,
the eigenvector of 1, taken out.

A chain without detailed balance has eigenvalues anywhere in the disc, and |λ₂| says how fast it forgets in the end, but
not how fast at first. Singular values of D_μ^½ P D_μ^−½ do: σ₂ is how much one step shrinks, at least, any function
with mean 0 in L²(μ), μ its own law. Seen from another law π, which it does not keep, the same matrix with D_π may
stretch: σ₁ > 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from besag.arrays import Floats
from besag.checks import checked
from besag.errors import BesagError, require
from besag.lab.chains.kernels import Blocks
from besag.lab.chains.transition import Transition, refuse_reducible, stationary

WHOLE = 2**10  # states up to which all eigenvalues are found
LEAST = 1e-12  # the smallest gap that float64 tells from none
TOLERANCE = 1e-12  # of Lanczos


class Spectrum(NamedTuple):
    """Of a chain in detailed balance."""

    gap: float  # 1 − λ₂
    absolute_gap: float  # 1 − max |λ|, λ₁ left out; nan where it was not looked for
    poincare: float  # 1 / gap
    slow: Floats  # (S,) the eigenfunction of λ₂, with mean 0 and variance 1
    values: Floats  # all eigenvalues, descending; λ₂ alone where Lanczos was used

    @property
    def second(self) -> float:
        """λ₂."""
        return 1 - self.gap


class Oneway(NamedTuple):
    """Of a chain that need not meet detailed balance."""

    law: Floats  # (S,) μ, its own
    eigenvalue_gap: float  # 1 − |λ₂|
    singular_gap: float  # 1 − σ₂ in L²(μ)
    singular_aim: Floats  # the two largest σ in L²(π), π the law that its steps are made of; (1, σ₂) where it keeps π
    bias: float  # total variation of μ and π; nan where they are not over the same states
    divergence: float  # KL(π ‖ μ)


@checked
def spectrum(chain: Transition) -> Spectrum:
    """Gap, Poincaré constant and slowest function of a reversible chain.

    Args:
        chain: from `gibbs`, `blocks` or `metropolis`; up to 2^16 states for the first two, 2^12 for the third.

    Returns:
        The numbers.

    Examples:
        >>> from besag.lab.chains import blocks, spectrum
        >>> import numpy as np
        >>> round(spectrum(blocks(np.full((2, 2, 2), 1 / 8), 1)).poincare, 6)  # of a product measure N / k
        3.0
    """
    if not chain.reversible:
        raise BesagError(f"{chain.name} meets no detailed balance: `one_way` says what its eigenvalues are")
    return _whole(chain) if chain.size <= WHOLE or not isinstance(chain, Blocks) else _lanczos(chain)


def _whole(chain: Transition) -> Spectrum:
    root = np.sqrt(chain.law)
    symmetric = root[:, None] * chain.matrix / root
    if np.abs(symmetric - symmetric.T).max() > 1e-8:
        raise BesagError(f"{chain.name} was said to be reversible, and meets no detailed balance with its law")
    values, vectors = np.linalg.eigh(0.5 * (symmetric + symmetric.T))
    values, vectors = values[::-1], vectors[:, ::-1]
    if len(values) == 1:
        return Spectrum(1.0, 1.0, 1.0, np.zeros(1), values)
    gap = float(1 - values[1])
    if gap < LEAST:
        refuse_reducible(chain.matrix, chain.name)
        raise BesagError(f"{chain.name}: the gap is {max(gap, 0):.1g}, too small for float64 to tell from none")
    largest = float(np.abs(values[1:]).max())
    return Spectrum(gap, 1 - largest, 1 / gap, _signed(vectors[:, 1] / root), values)


def _lanczos(chain: Blocks) -> Spectrum:
    root = np.sqrt(chain.law)

    def step(g: Floats) -> Floats:
        flat = np.ravel(g)
        return np.asarray(root * chain.forward(flat / root) - root * (root @ flat))

    sparse = require("scipy.sparse.linalg", extra="eval")
    operator = sparse.LinearOperator((chain.size, chain.size), matvec=step, dtype=np.float64)
    start = np.random.default_rng(0).normal(size=chain.size)
    values, vectors = sparse.eigsh(operator, k=1, which="LA", ncv=24, tol=TOLERANCE, v0=start - root * (root @ start))
    gap = float(1 - values[0])
    if gap < LEAST:
        raise BesagError(f"{chain.name}: the gap is {max(gap, 0):.1g}, too small for float64 to tell from none")
    return Spectrum(gap, gap, 1 / gap, _signed(vectors[:, 0] / root), values)


def _signed(mode: Floats) -> Floats:
    """An eigenvector has no sign of its own: its last entry that counts is positive."""
    counts = np.flatnonzero(np.abs(mode) > 1e-8 * np.abs(mode).max())
    return np.asarray(mode * np.sign(mode[counts[-1]]))


@checked
def one_way(chain: Transition) -> Oneway:
    """What is to be said of a chain that meets no detailed balance: sweeps, tempering, parallel products.

    Args:
        chain: any, up to 2^12 states; 2^10 take a few seconds.

    Returns:
        The numbers.

    Examples:
        >>> from besag.lab.chains import gibbs, one_way
        >>> round(one_way(gibbs([[0.4, 0.1], [0.1, 0.4]], "systematic")).eigenvalue_gap, 3)
        0.64
    """
    matrix = chain.matrix
    refuse_reducible(matrix, chain.name)
    law = stationary(matrix, chain.name)
    if (law <= 0).any():
        raise BesagError(f"{chain.name}: {int((law <= 0).sum()):,} states are never visited in the long run")
    sizes = np.sort(np.abs(np.linalg.eigvals(matrix)))[::-1]
    second = float(sizes[1]) if len(sizes) > 1 else 0.0
    aim = np.ravel(chain.aim)
    same = aim.size == law.size  # a ladder lives on more states than its law
    against = _singular(matrix, aim)[:2] if same else np.full(2, np.nan)
    bias = float(0.5 * np.abs(law - aim).sum()) if same else np.nan
    divergence = float(aim @ np.log(aim / law)) if same else np.nan
    own = _singular(matrix, law)
    return Oneway(law, 1 - second, 1 - float(own[1]) if len(own) > 1 else 1.0, against, bias, divergence)


def _singular(matrix: Floats, law: Floats) -> Floats:
    root = np.sqrt(law)
    return np.asarray(np.linalg.svd(root[:, None] * matrix / root, compute_uv=False))
