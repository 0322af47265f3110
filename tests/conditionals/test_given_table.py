import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from besag.conditionals.contract import Conditionals, GivenSource, Questions, takes_source
from besag.conditionals.given_table import GivenTable
from besag.conditionals.table import Table
from besag.engine import Engine
from besag.errors import BesagError
from besag.reductions import Row


@given(st.integers(2, 3), st.integers(1, 3), st.integers(0, 10_000), st.data())
@settings(max_examples=50, deadline=None)
def test_any_set_of_masks_given_any_source_by_brute_force(width, places, seed, data):
    """p(x_i | shown, s) from the whole joint p(x, s), summed by hand; sources are pairs of symbols."""
    joint = np.random.default_rng(seed).gamma(0.5, size=(2, 2, *[width] * places)) + 1e-9  # p(s₁, s₂, x₁ …)
    law = GivenTable({f"q{a} q{b}": joint[a, b] for a in range(2) for b in range(2)})
    source = data.draw(st.tuples(st.integers(0, 1), st.integers(0, 1)))
    hidden = data.draw(st.sets(st.integers(0, places - 1), min_size=1))
    shown = {i: data.draw(st.integers(0, width - 1)) for i in range(places) if i not in hidden}
    ids = np.array([[shown.get(i, width) for i in range(places)]])
    engine = Engine(law, progress=False).given(law.source_ids([f"q{source[0]} q{source[1]}"])[0])
    for place in hidden:
        expected = np.zeros(width)
        for x in itertools.product(range(width), repeat=places):
            if all(x[i] == v for i, v in shown.items()):
                expected[x[place]] += joint[(*source, *x)]
        asked = Questions(torch.from_numpy(ids), torch.tensor([0]), torch.tensor([place]))
        found = engine.answer(asked, Row())["row"][0]
        np.testing.assert_allclose(np.exp(found), expected / expected.sum(), rtol=1e-10)


def test_it_is_a_conditionals_that_takes_a_source():
    law = GivenTable({"a": np.ones((2, 2))})
    assert isinstance(law, Conditionals)
    assert isinstance(law, GivenSource)
    assert takes_source(law)
    assert not takes_source(Table.random(2, 2))


@pytest.mark.parametrize(
    ("joints", "message"),
    [
        ({}, "needs a source at least"),
        ({"a": np.ones((2, 2)), "b": np.ones((2, 2, 2))}, r"'a' and 'b' have the shapes \(2, 2\) and \(2, 2, 2\)"),
        ({"a": np.ones((2, 2)), "b": np.zeros((2, 2))}, "not all of them zero"),
        ({"a": np.ones(2), " a ": np.ones(2)}, "must be texts that differ"),
        ({"": np.ones(2)}, "of one symbol at least"),
        ({1: np.ones(2)}, "must be texts"),
    ],
)
def test_what_is_no_table_is_refused(joints, message):
    with pytest.raises(BesagError, match=message):
        GivenTable(joints)


def test_another_source_is_refused_and_the_nearest_named():
    with pytest.raises(BesagError, match=r"'given table' has no table for the source 'Hunt'\. Did you mean 'Hund'"):
        GivenTable({"Hund": np.ones(2), "Katze": np.ones(2)}).source_ids(["Hunt"])
