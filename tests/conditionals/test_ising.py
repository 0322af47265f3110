import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from besag.conditionals.contract import Questions
from besag.conditionals.ising import Ising
from besag.errors import BesagError


def random_ising(places: int, seed: int) -> Ising:
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.normal(size=(places, places)), 1)
    return Ising(upper + upper.T, generator.normal(size=places))


@given(st.integers(2, 5), st.integers(0, 1000), st.data())
def test_agrees_with_its_own_table_for_every_mask(places, seed, data):
    ising = random_ising(places, seed)
    ids = torch.tensor([[data.draw(st.integers(0, 2)) for _ in range(places)] for _ in range(3)])
    ids[:, data.draw(st.integers(0, places - 1))] = 2
    row, place = torch.nonzero(ids == 2, as_tuple=True)
    questions = Questions(ids, row, place)
    ours, tables = torch.softmax(ising.rows(questions), -1), torch.softmax(ising.table().rows(questions), -1)
    torch.testing.assert_close(ours, tables, rtol=1e-10, atol=1e-12)


def test_the_table_is_the_boltzmann_law():
    ising = random_ising(3, 5)
    weights = np.zeros((2, 2, 2))
    for x in itertools.product(range(2), repeat=3):
        spin = 2 * np.array(x) - 1
        weights[x] = np.exp(spin @ np.triu(ising.couplings.numpy()) @ spin + ising.fields.numpy() @ spin)
    np.testing.assert_allclose(ising.table().log_probs.exp().numpy(), weights / weights.sum(), rtol=1e-12)


def test_one_hidden_spin_follows_its_local_field():
    ising = Ising.chain(3, 0.7)
    logits = ising.rows(Questions(torch.tensor([[1, 2, 0]]), torch.tensor([0]), torch.tensor([1])))[0]
    assert logits[1] - logits[0] == pytest.approx(0.0)  # neighbours + and − cancel
    logits = ising.rows(Questions(torch.tensor([[1, 2, 1]]), torch.tensor([0]), torch.tensor([1])))[0]
    assert float(logits[1] - logits[0]) == pytest.approx(4 * 0.7)


def test_bad_couplings_and_too_many_hidden_are_refused():
    with pytest.raises(BesagError, match="symmetric"):
        Ising(np.array([[0.0, 1.0], [2.0, 0.0]]))
    with pytest.raises(BesagError, match="diagonal"):
        Ising(np.eye(2))
    with pytest.raises(BesagError, match="one a spin"):
        Ising(np.zeros((2, 2)), np.zeros(3))
    with pytest.raises(BesagError, match="25 hidden spins"):
        Ising.chain(25, 0.1).rows(Questions(torch.full((1, 25), 2), torch.tensor([0]), torch.tensor([0])))
