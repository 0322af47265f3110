"""All places that are sure enough: the law is enumerated, and what is promised of sure places holds on tables."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank, conditional, empirical, follows, number
from besag.samplers import kernel


def threshold_law(law, places: int, least: float) -> np.ndarray:
    """(V^n,) all ways followed, as plain loops."""
    width, total = law.width, np.zeros(law.width**places)

    def follow(sequence: np.ndarray, weight: float) -> None:
        hides = [place for place in range(places) if sequence[place] == width]
        if not hides:
            total[number(sequence[None], width)[0]] += weight
            return
        rows = {place: conditional(law, sequence, hides, place) for place in hides}
        sure = [place for place in hides if rows[place].max() >= least]
        sure = sure or [max(hides, key=lambda place: rows[place].max())]
        for tokens in product(range(width), repeat=len(sure)):
            share = weight * float(np.prod([rows[place][token] for place, token in zip(sure, tokens, strict=True)]))
            if share > 0:
                moved = sequence.copy()
                moved[sure] = tokens
                follow(moved, share)

    follow(np.full(places, width), 1.0)
    return total


@pytest.mark.parametrize("least", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("family", ["joint", "incompatible"])
def test_it_has_the_enumerated_law(family, least):
    law = Table.random(3, 3, seed=1, concentration=0.2) if family == "joint" else Incompatible(3, 3, seed=1)
    counts = empirical(kernel("threshold", least=least), law, blank(law, 3, 4000))
    assert follows(counts, threshold_law(law, 3, least))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_places_that_are_sure_enough_are_the_likeliest_of_their_joint(seed, places):
    weights = np.random.default_rng(seed).gamma(0.05, size=(2,) * places) + 1e-12
    joint = weights / weights.sum()
    rows = [joint.sum(tuple(other for other in range(places) if other != place)) for place in range(places)]
    if min(row.max() for row in rows) > 1 - 1 / (places + 1):
        assert tuple(int(row.argmax()) for row in rows) == np.unravel_index(joint.argmax(), joint.shape)


def test_what_is_no_probability_is_refused():
    with pytest.raises(BesagError, match=r"least=1\.5: a probability"):
        kernel("threshold", least=1.5)
