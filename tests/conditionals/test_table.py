import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from besag.conditionals.contract import Conditionals, Questions
from besag.conditionals.table import Table
from besag.errors import BesagError


@given(st.integers(2, 4), st.integers(1, 4), st.integers(0, 10_000), st.data())
def test_any_set_of_masks_by_brute_force(width, places, seed, data):
    table = Table.random(width, places, seed)
    joint = table.log_probs.exp().numpy()
    hidden = data.draw(st.sets(st.integers(0, places - 1), min_size=1))
    shown = {i: data.draw(st.integers(0, width - 1)) for i in range(places) if i not in hidden}
    ids = torch.tensor([[width if i in hidden else shown[i] for i in range(places)]])
    asked = sorted(hidden)
    answers = table.head(table.rows(Questions(ids, torch.zeros(len(asked), dtype=torch.long), torch.tensor(asked))))
    for row, place in zip(answers, asked, strict=True):
        expected = np.zeros(width)
        for x in itertools.product(range(width), repeat=places):
            if all(x[i] == v for i, v in shown.items()):
                expected[x[place]] += joint[x]
        np.testing.assert_allclose(row.exp().numpy(), expected, rtol=1e-10)


def test_several_rows_with_everything_hidden():
    table = Table.random(3, 2, seed=4)
    joint = table.log_probs.exp()
    ids = torch.tensor([[3, 3], [0, 3], [3, 3]])
    asked = Questions(ids, torch.tensor([0, 0, 1, 2, 2]), torch.tensor([0, 1, 1, 0, 1]))
    expected = torch.stack([joint.sum(1), joint.sum(0), joint[0], joint.sum(1), joint.sum(0)])
    torch.testing.assert_close(table.head(table.rows(asked)).exp(), expected)


def test_it_is_a_conditionals():
    assert isinstance(Table.random(2, 2), Conditionals)


def test_a_shown_place_is_refused():
    with pytest.raises(BesagError, match="hidden places only"):
        Table.random(2, 2).rows(Questions(torch.tensor([[0, 2]]), torch.tensor([0]), torch.tensor([0])))


def test_conditioning_on_zero_probability_is_refused_and_quoted():
    table = Table(np.array([[0.5, 0.5], [0.0, 0.0]]), ["a", "b"])
    with pytest.raises(BesagError, match=r"probability 0.*b \[MASK\]"):
        table.rows(Questions(torch.tensor([[1, 2]]), torch.tensor([0]), torch.tensor([1])))


@pytest.mark.parametrize(
    ("joint", "message"),
    [
        (np.ones((2, 3)), r"\(2, 3\)"),
        (-np.ones((2, 2)), "non-negative"),
        (np.zeros((2, 2)), "not all"),
        (np.float64(1), "axis"),
    ],
)
def test_what_is_no_table_is_refused(joint, message):
    with pytest.raises(BesagError, match=message):
        Table(joint)


def test_a_wrong_length_is_refused():
    with pytest.raises(BesagError, match="sequences of 2 symbols; got one of 3"):
        Table.random(2, 2).rows(Questions(torch.tensor([[2, 2, 2]]), torch.tensor([0]), torch.tensor([0])))


def test_wrong_number_of_symbols():
    with pytest.raises(BesagError, match="3 symbols were named for a table of 2"):
        Table(np.ones((2, 2)), ["a", "b", "c"])
