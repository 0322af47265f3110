"""The best product: in KL the marginals, in total variation another one, against grids."""

import numpy as np
import pytest
from scipy.optimize import differential_evolution
from tests.lab.chains.examples import random_law

from besag.lab import chain, ising
from besag.lab.chains import nearest_product, total_correlation
from besag.lab.chains.products import marginals, outer
from besag.lab.systems.system import all_states


def test_total_correlation_is_the_sum_of_entropies_less_the_joint_one():
    law = random_law((2, 3, 2), 1)
    entropy = lambda p: -(p * np.log(p)).sum()  # noqa: E731
    assert total_correlation(law) == pytest.approx(sum(map(entropy, marginals(law))) - entropy(law))
    assert total_correlation(outer(marginals(law))) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("law", [random_law((2, 2), 1, 2.0), random_law((2, 2), 5), np.diag([0.7, 0.3])])
def test_no_product_on_a_grid_is_nearer(law):
    found, factors = nearest_product(law)
    steps = np.linspace(0, 1, 401)
    one, other = np.stack([steps, 1 - steps]), np.stack([steps, 1 - steps])
    every = 0.5 * np.abs(law[:, :, None, None] - one[:, None, :, None] * other[None, :, None, :]).sum((0, 1))
    assert found <= every.min() + 1e-6
    assert found >= every.min() - 0.01
    assert found == pytest.approx(0.5 * np.abs(law - outer(factors)).sum())
    assert all(factor.sum() == pytest.approx(1) for factor in factors)


@pytest.mark.parametrize(("coupling", "least"), [(0.25, 0.176224), (0.5, 0.319016), (1.0, 0.434728)])
def test_the_search_finds_what_another_global_search_finds(coupling, least):
    law = ising(chain(4), coupling).law
    states, p = all_states(law.shape), law.ravel()

    def apart(ups):  # (4, M) P(x_i = 1) → (M,)
        return 0.5 * np.abs(p[:, None] - np.where(states[:, :, None] == 1, ups, 1 - ups).prod(1)).sum(0)

    other = differential_evolution(
        apart,
        [(0, 1)] * 4,
        seed=1,
        popsize=25,
        maxiter=400,
        tol=1e-12,
        vectorized=True,
        updating="deferred",
        polish=False,
    )
    assert other.fun == pytest.approx(least, abs=2e-6)
    assert nearest_product(law, 16, seed=1)[0] == pytest.approx(least, abs=2e-6)


def test_it_is_never_farther_than_the_marginals_and_0_for_a_product():
    for seed in range(5):
        law = random_law((2, 2, 2), seed)
        assert nearest_product(law, starts=1)[0] <= 0.5 * np.abs(law - outer(marginals(law))).sum() + 1e-12
    assert nearest_product(outer(marginals(random_law((2, 3), 1))))[0] == pytest.approx(0, abs=1e-6)


def test_of_products_equally_near_it_is_that_of_the_first_of_the_likeliest_states():
    for law, likeliest in ((np.diag([0.5, 0.5]), (0, 0)), (np.diag([0.5, 0.5])[::-1], (0, 1))):
        found = outer(nearest_product(law)[1])
        assert np.unravel_index(found.argmax(), found.shape) == likeliest
