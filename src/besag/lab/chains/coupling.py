"""Mixing where enumeration ends: two chains that share every draw, and what can be seen of one.

Monotone coupling. A ferromagnet (J ≥ 0) under Gibbs keeps the order x ≤ y, if both chains draw the same place by
the same uniform number; so once the chain from all minus has met the one from all plus, every start has met. With T
that time,

    d(t) ≤ P(T > t)

an upper bound at any size, estimated by independent pairs; its own uncertainty is that of a share of pairs.

Seen. For a reversible chain in its law and any function, the autocorrelation at lag t is at most λ₂^t when the chain is
positive, so 1/(1 − ρ(t)^{1/t}) is at most the relaxation time: a bound from below, here of the magnetisation, which is
what is slow in a ferromagnet.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from besag.arrays import Bools, Floats, Ints
from besag.checks import checked, number, whole_number
from besag.conditionals.ising import Ising
from besag.errors import BesagError
from besag.lab.seeds import binomial, student
from besag.lab.systems.pairwise import Pairwise

MOST_STEPS = 10**8


class Coalescence(NamedTuple):
    """When pairs of chains met."""

    times: Ints  # (C,) steps; `steps` where they had not met by then
    met: Bools  # (C,)
    steps: int  # seen

    def upper(self, epsilon: float = 0.25, tail: float = 0.025) -> float:
        """Return steps t with d(t) ≤ ε, wrong with probability `tail` at most; infinite where too few pairs met.

        The k-th of the ordered times lies below the 1 − ε quantile of a pair's time with probability
        P(Bin(pairs, 1 − ε) ≥ k) at most, whatever the distribution: the result is that of the least k that makes this
        at most `tail`.
        """
        number(epsilon, "epsilon", least=1e-9, most=1)
        number(tail, "tail", least=1e-12, most=0.5)
        most = binomial(len(self.times), 1 - epsilon, tail)[1]  # P(at least this many) exceeds `tail`
        ordered = np.sort(np.where(self.met, self.times, np.inf))
        return float(ordered[most]) if most < len(ordered) else math.inf


class Seen(NamedTuple):
    """An estimate of the relaxation time from below."""

    relaxation: float  # steps
    low: float  # by Student over chains, 95 % unless another tail is given
    high: float
    lag: int  # at which the autocorrelation was taken


@checked
def coalescence(system: Pairwise, pairs: int = 200, steps: int = 100_000, seed: int = 0) -> Coalescence:
    """Pairs of chains of single-site Gibbs, from all minus and from all plus, until they meet.

    Args:
        system: Ising on any graph, no coupling below 0; any size.
        pairs: how many, independent of one another.
        steps: at most, of one place each.
        seed: of all draws.

    Returns:
        When they met.

    Examples:
        >>> from besag.lab import chain, ising
        >>> from besag.lab.chains import coalescence
        >>> found = coalescence(ising(chain(32), 0.2), pairs=50)
        >>> bool(found.met.all())
        True
    """
    whole_number(pairs, "pairs", least=2, most=10**6)
    whole_number(steps, "steps", most=MOST_STEPS)
    couplings, fields = _spins(system)
    if (couplings < 0).any():
        raise BesagError(f"{system.name}: a coupling of {couplings.min():g} is below 0; only ferromagnets keep order")
    generator = np.random.default_rng(seed)
    low, high = -np.ones((pairs, len(fields))), np.ones((pairs, len(fields)))
    times, open_ = np.full(pairs, steps), np.arange(pairs)
    for step in range(1, steps + 1):
        place, uniform = generator.integers(len(fields), size=len(open_)), generator.random(len(open_))
        for spins in (low, high):
            spins[open_, place] = _drawn(spins[open_], place, uniform, couplings, fields)
        if step % 8 and step < steps:  # to look every few steps is enough: they never part again
            continue
        apart = (low[open_] != high[open_]).any(1)
        times[open_[~apart]] = step
        open_ = open_[apart]
        if not len(open_):
            break
    return Coalescence(times, ~np.isin(np.arange(pairs), open_), steps)


@checked
def relaxation_seen(
    system: Pairwise, chains: int = 64, burn: int = 2_000, steps: int = 20_000, seed: int = 0, tail: float = 0.025
) -> Seen:
    """The relaxation time of single-site Gibbs, from below, by the autocorrelation of the magnetisation.

    Args:
        system: Ising on any graph; any size.
        chains: how many, independent; half begin at all plus.
        burn: steps before anything is counted.
        steps: that are.
        seed: of all draws.
        tail: probability beyond each end of the interval.

    Returns:
        The estimate at the lag where ρ first falls to ½, with an interval over chains.

    Examples:
        >>> from besag.lab import chain, ising
        >>> from besag.lab.chains import relaxation_seen
        >>> relaxation_seen(ising(chain(16), 0.1), chains=8, steps=2000).relaxation > 1
        True
    """
    whole_number(chains, "chains", least=4, most=10**5)
    whole_number(burn, "burn", least=0, most=MOST_STEPS)
    whole_number(steps, "steps", least=10, most=10**7)
    number(tail, "tail", least=1e-12, most=0.5)
    couplings, fields = _spins(system)
    generator = np.random.default_rng(seed)
    spins = np.where(np.arange(chains)[:, None] % 2, 1.0, -1.0) * np.ones(len(fields))
    seen = np.empty((chains, steps))
    for step in range(burn + steps):
        place, uniform = generator.integers(len(fields), size=chains), generator.random(chains)
        spins[np.arange(chains), place] = _drawn(spins, place, uniform, couplings, fields)
        if step >= burn:
            seen[:, step - burn] = spins.sum(1)
    centred = seen - seen.mean()
    at = _correlations(centred)  # (C, T) sums of products, chain by chain
    mean = at.mean(0) / at[:, 0].mean()
    low = np.flatnonzero(mean <= 0.5)
    lag = int(low[0]) if len(low) else steps // 4
    rest = at[:, lag] - mean[lag] * at[:, 0]  # of a ratio of means, linearised
    half = student(tail, chains - 1) * float(rest.std(ddof=1)) / math.sqrt(chains) / float(at[:, 0].mean())
    relax = [_time(float(mean[lag]) + one, lag) for one in (0.0, -half, half)]
    return Seen(relax[0], relax[1], relax[2], lag)


def _time(rho: float, lag: int) -> float:
    """1 / (1 − ρ^{1/t})."""
    return 1 / (1 - math.exp(math.log(min(max(rho, 1e-12), 1 - 1e-12)) / max(lag, 1)))


def _correlations(centred: Floats) -> Floats:
    """(C, T) mean products at every lag, by the transform of Fourier."""
    steps = centred.shape[1]
    transformed = np.fft.rfft(centred, 2 * steps)
    products = np.fft.irfft(transformed * transformed.conj(), 2 * steps)[:, : steps // 2]
    return np.asarray(products / (steps - np.arange(steps // 2)))


def _drawn(spins: Floats, place: Ints, uniform: Floats, couplings: Floats, fields: Floats) -> Floats:
    """(C,) the spin of each chain at its place, drawn given the others: it grows with each of them."""
    field = fields[place] + (couplings[place] * spins).sum(1)
    return np.where(uniform < 1 / (1 + np.exp(np.clip(2 * field, -700, 700))), -1.0, 1.0)


def _spins(system: Pairwise) -> tuple[Floats, Floats]:
    """(N, N) couplings and (N,) fields."""
    if system.symbols != ["-", "+"]:
        raise BesagError(f"{system.name} has no spins: give an Ising system")
    found = system.conditionals()
    assert isinstance(found, Ising)
    return found.couplings.numpy(), found.fields.numpy()
