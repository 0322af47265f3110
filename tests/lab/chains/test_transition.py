"""Chains as operators and as matrices: both say the same; what is no chain is refused."""

import numpy as np
import pytest
from tests.lab.chains.examples import random_law

from besag.errors import BesagError
from besag.lab.chains import blocks, gibbs
from besag.lab.chains.transition import Dense, Product, stationary

LAW = random_law((2, 3, 2), 1)


@pytest.mark.parametrize("chain", [gibbs(LAW), gibbs(LAW, "systematic"), blocks(LAW, 2)], ids=lambda one: one.name)
def test_functions_and_laws_move_as_the_matrix_says(chain):
    generator = np.random.default_rng(0)
    f, law = generator.normal(size=(12, 3)), generator.dirichlet(np.ones(12))
    np.testing.assert_allclose(chain.matrix.sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(chain.forward(f), chain.matrix @ f, atol=1e-12)
    np.testing.assert_allclose(chain.push(law), law @ chain.matrix, atol=1e-12)
    np.testing.assert_allclose(chain.push(chain.law), chain.law, atol=1e-12)


def test_a_product_is_its_parts_in_turn():
    one, other = blocks(LAW, 1), blocks(LAW, 2)
    both = Product([one, other], "both")
    np.testing.assert_allclose(both.matrix, one.matrix @ other.matrix, atol=1e-12)
    assert both.passes == pytest.approx(3)


def test_the_law_of_a_matrix_is_found():
    matrix = np.array([[0.9, 0.1], [0.3, 0.7]])
    np.testing.assert_allclose(stationary(matrix), [0.75, 0.25])
    np.testing.assert_allclose(Dense(matrix, np.array([0.5, 0.5]), "two").law, [0.75, 0.25])


def test_states_that_are_left_for_good_have_probability_0():
    np.testing.assert_allclose(stationary(np.array([[0.5, 0.5], [0.0, 1.0]])), [0, 1], atol=1e-12)


def test_a_reducible_chain_is_refused():
    with pytest.raises(BesagError, match=r"two is reducible: 2 sets of states are never left, .* states 0 and 1"):
        stationary(np.eye(2), "two")


@pytest.mark.parametrize(
    ("matrix", "said"),
    [([[0.5, 0.6], [0, 1]], "summing to 1"), ([[1.0, 0.0]], "square"), ([[1.5, -0.5], [0, 1]], "none negative")],
)
def test_what_is_no_matrix_of_a_chain_is_refused(matrix, said):
    with pytest.raises(BesagError, match=said):
        Dense(np.array(matrix), np.ones(2) / 2, "two")


def test_a_matrix_too_large_is_refused_and_the_largest_named():
    chain = gibbs(np.full((2,) * 13, 2.0**-13))
    with pytest.raises(BesagError, match="up to 4,096: 12 places of two symbols"):
        _ = chain.matrix
