"""A network with a head of several products: its law by hand, and what it learns."""

import numpy as np
import pytest
import torch

from besag.errors import BesagError
from besag.lab import chain, ising, random_table
from besag.lab.mixture_network import MixtureNetwork, train_mixture_network
from besag.lab.systems.system import all_states


def test_the_law_of_a_block_is_the_mixture_and_sums_to_one():
    torch.manual_seed(0)
    network = MixtureNetwork(3, 2, components=2)
    states = torch.from_numpy(all_states((2, 2, 2)))
    hidden = torch.tensor([True, False, True]).expand(8, 3)
    log_q = network.log_prob(states, hidden).detach()
    weights, factors = network(states.masked_fill(hidden, 2))
    by_hand = sum(weights[:, c].exp() * factors[:, c, 0].exp().gather(1, states[:, :1])[:, 0]
                  * factors[:, c, 2].exp().gather(1, states[:, 2:])[:, 0] for c in range(2))  # fmt: skip
    torch.testing.assert_close(log_q.exp(), by_hand)
    shown = states[:, 1]
    for value in (0, 1):
        assert float(log_q[shown == value].exp().sum()) == pytest.approx(1, abs=1e-6)


def test_two_components_learn_what_one_cannot():
    system = ising(chain(3), 1.0)
    one, two = (train_mixture_network(system, [[0, 1], [1, 2]], r, steps=150).divergence for r in (1, 2))
    assert two < one / 4
    again = train_mixture_network(system, [[0, 1], [1, 2]], 2, steps=150).divergence
    assert again == pytest.approx(two, abs=1e-6)
    assert np.isfinite(one)


def test_places_of_different_width_are_refused():
    with pytest.raises(BesagError, match="one vocabulary"):
        train_mixture_network(random_table((2, 3)), [[0]], 1)
