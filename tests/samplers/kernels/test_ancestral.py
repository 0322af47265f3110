"""`ancestral` against the enumerated law of its steps, and that law against the joint."""

from itertools import product
from math import perm

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.samplers.enumerated import ancestral_law

from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank, conditional, empirical, follows, run, total_variation
from besag.samplers import (
    ancestral,  # noqa: F401 (they register themselves)
    first_hitting,  # noqa: F401
    kernel,
    remask,  # noqa: F401
    spindle,  # noqa: F401
)
from besag.samplers.kernels.schedules import SCHEDULES

CHAINS = 10_000


@pytest.mark.parametrize("law", [Table.random(2, 3, seed=1), Incompatible(2, 3)], ids=["joint", "incompatible"])
@pytest.mark.parametrize(("grid", "schedule"), [(1, "log_linear"), (3, "log_linear"), (3, "cosine"), (6, "geometric")])
def test_the_kernel_follows_the_enumerated_law(law, grid, schedule):
    counts = empirical(kernel("ancestral", grid=grid, schedule=schedule), law, blank(law, 3, CHAINS))
    assert follows(counts, ancestral_law(law, 3, grid, schedule))


def test_the_enumerated_law_is_that_of_places_assigned_to_steps():
    law = Incompatible(2, 3)
    expected = np.zeros(8)
    for steps in product(range(3), repeat=3):  # 27 equally likely assignments
        for at, text in enumerate(product(range(2), repeat=3)):
            chance = 1 / 27
            for step in range(3):
                hides = [place for place in range(3) if steps[place] >= step]
                for place in range(3):
                    if steps[place] == step:
                        chance *= conditional(law, np.array(text), hides, place)[text[place]]
            expected[at] += chance
    assert np.allclose(ancestral_law(law, 3, 3), expected)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_lost_is_at_most_the_chance_that_two_reveals_share_a_step(seed):
    law = Table.random(2, 3, seed=seed, concentration=0.2)
    joint = law.log_probs.exp().numpy()
    lost = []
    for grid in (1, 2, 4, 8, 16, 64):
        share = 1 - perm(grid, 3) / grid**3
        assert share <= 3 * 2 / (2 * grid)
        lost.append(total_variation(ancestral_law(law, 3, grid), joint))
        assert lost[-1] <= share + 1e-12
    assert lost[0] > 0.05 > 0.02 > lost[-1]  # there was something to lose


@pytest.mark.slow
def test_the_schedule_does_not_matter_in_the_limit():
    law = Table.random(2, 3, seed=3, concentration=0.2)
    joint = law.log_probs.exp().numpy()
    for schedule in SCHEDULES:
        coarse, fine = (total_variation(ancestral_law(law, 3, grid, schedule), joint) for grid in (4, 400))
        assert fine < 0.02 < coarse
        assert follows(empirical(kernel("ancestral", grid=10**6, schedule=schedule), law, blank(law, 3, CHAINS)), joint)
    incompatible = Incompatible(2, 3)
    limits = [ancestral_law(incompatible, 3, 400, schedule) for schedule in SCHEDULES]
    assert max(total_variation(limits[0], other) for other in limits[1:]) < 0.01


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_is_left_at_the_end_is_drawn(schedule):
    law = Table.random(3, 2, seed=2)
    joint = law.log_probs.exp().numpy()
    product_law = np.outer(joint.sum(1), joint.sum(0))
    counts = empirical(kernel("ancestral", grid=1, schedule=schedule), law, blank(law, 2, CHAINS))
    assert follows(counts, product_law)
    assert counts.max() < 0.9 * CHAINS  # the likeliest tokens alone would be one text
    alone = Table.random(3, 1, seed=4)
    for grid in (2, 5):
        counts = empirical(kernel("ancestral", grid=grid, schedule=schedule), alone, blank(alone, 1, CHAINS))
        assert follows(counts, alone.log_probs.exp().numpy())


@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from(list(SCHEDULES)))
@settings(max_examples=25, deadline=None)
def test_with_and_without_the_cache_the_samples_are_the_same(seed, grid, schedule):
    law = Table.random(3, 4, seed=seed)
    canvas = blank(law, 4, 9)
    cached, fast = run(kernel("ancestral", grid=grid, schedule=schedule), law, canvas, seed=seed)
    plain, slow = run(kernel("ancestral", grid=grid, schedule=schedule, cache=False), law, canvas, seed=seed)
    assert torch.equal(cached.ids, plain.ids)
    assert torch.equal(cached.made, plain.made)
    assert len(fast) <= min(grid, 4)
    assert len(slow) <= grid
    distinct = torch.tensor([len(set(row.tolist())) for row in cached.reveal])
    assert torch.equal(sum(told.passes for told in fast), distinct)  # a pass for each time that reveals, none else
    assert torch.equal(sum(told.passes for told in slow), cached.reveal.amax(1))  # one for each time until the end
    for told in (fast, slow):
        assert torch.equal(sum(info.more["revealed"] for info in told), torch.full((9,), 4))
        assert torch.equal(sum(info.changed for info in told), torch.full((9,), 4))
        times = torch.stack([info.more["time"] for info in told])  # (steps, C)
        assert (times.diff(dim=0) <= 0).all()
        assert torch.allclose(times[-1], 1 - cached.reveal.amax(1).double() / grid)


def test_temperature_and_truncation():
    law = Table.random(4, 1, seed=5)
    row = law.log_probs.exp().numpy()
    assert follows(empirical(kernel("ancestral", temperature=2.0), law, blank(law, 1, CHAINS)), row**0.5)
    cut = np.where(row >= np.sort(row)[-2], row, 0)
    assert follows(empirical(kernel("ancestral", top_k=2), law, blank(law, 1, CHAINS)), cut)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"grid": 0}, "grid=0: time goes from 1 to 0 in so many equal steps"),
        ({"grid": 2.5}, "grid=2.5"),
        ({"schedule": "linear"}, "schedule='linear': give one of log_linear, cosine, geometric. Did you mean 'log_lin"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told):
        kernel("ancestral", **options)
