import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from besag.masks import uniform_subsets


@given(st.integers(1, 30), st.integers(0, 1000), st.data())
def test_sizes_are_exact_and_a_draw_stands_alone(places, seed, data):
    sizes = np.array(data.draw(st.lists(st.integers(0, places), min_size=1, max_size=9)))
    together = uniform_subsets(places, sizes, np.arange(len(sizes)), seed)
    assert together.sum(1).tolist() == sizes.tolist()
    last = len(sizes) - 1
    assert (uniform_subsets(places, sizes[-1:], [last], seed)[0] == together[last]).all()


def test_every_subset_of_a_size_is_equally_likely():
    drawn = uniform_subsets(5, 2, np.arange(5000), seed=1)
    counts = np.array([(drawn[:, pair].all(1)).sum() for pair in itertools.combinations(range(5), 2)])
    assert ((counts - 500) ** 2 / 500).sum() < 27.9  # chi-square, 9 degrees of freedom: p ≈ 0.001
