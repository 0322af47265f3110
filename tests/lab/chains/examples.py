"""Random laws and closed forms that tests of chains share. Import it as `tests.lab.chains.examples`."""

from math import comb

import numpy as np


def random_law(shape, seed=0, scale=1.0):
    weights = np.exp(scale * np.random.default_rng(seed).normal(size=shape))
    return weights / weights.sum()


def spins(n):
    """(2^n, n) in ±1, in the order of a law's states."""
    return 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)[::-1]) & 1) - 1


def magnetisation_matrix(n, coupling):
    """The number of plus spins of the complete graph under heat bath: a birth and death chain on 0 … n."""
    matrix = np.zeros((n + 1, n + 1))
    for up in range(n + 1):
        for sign, share, to in ((1, n - up, up + 1), (-1, up, up - 1)):
            if share:
                # the spin that is drawn, and turns, sees the sum of the others
                others = (2 * up - n) + sign
                chance = share / n / (1 + np.exp(-2 * coupling * sign * others))
                matrix[up, to] = chance
        matrix[up, up] = 1 - matrix[up].sum()
    return matrix


def magnetisation_law(n, coupling):
    sums = 2 * np.arange(n + 1) - n
    weights = np.array([comb(n, up) for up in range(n + 1)]) * np.exp(coupling * (sums**2 - n) / 2)
    return weights / weights.sum()
