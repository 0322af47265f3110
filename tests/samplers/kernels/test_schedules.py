"""Schedules against their definitions: α as printed, its inverse, and the law of the step that reveals a place."""

import numpy as np
import pytest
import torch

from besag.errors import BesagError
from besag.lab.oracles import follows
from besag.noise import uniform
from besag.samplers.kernels.schedules import SCHEDULES, reveal_step, schedule, shown

ALPHA = {  # as published
    "log_linear": lambda t: 1 - t,
    "cosine": lambda t: 1 - np.cos(np.pi / 2 * (1 - t)),
    "geometric": lambda t: np.exp(-((1e-5) ** (1 - t)) * 20.0**t),
}


def reveals(name, grid):
    """(T,) the probability that a place is revealed in each step, from the rule of one step at a time."""
    alpha, masked, law = ALPHA[name], 1.0, []
    for step in range(1, grid + 1):
        before, after = alpha(1 - (step - 1) / grid), alpha(1 - step / grid)
        chance = 1.0 if step == grid else (after - before) / (1 - before)
        law.append(masked * chance)
        masked *= 1 - chance
    return np.array(law)


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_share_that_is_masked_is_the_published_one_and_its_inverse_inverts_it(name):
    time = np.linspace(1e-3, 1, 50)
    masked = SCHEDULES[name].masked(torch.from_numpy(time))
    assert np.allclose(masked, (1 - ALPHA[name](time)) / (1 - ALPHA[name](1.0)), rtol=1e-9)
    assert np.allclose(SCHEDULES[name].when(masked), time, rtol=1e-6)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("grid", [1, 2, 7])
def test_the_step_of_a_reveal_has_the_law_of_one_step_at_a_time(name, grid):
    noise = torch.from_numpy(uniform(0, np.arange(50_000)))
    steps = reveal_step(SCHEDULES[name], noise, grid)
    assert follows(np.bincount(steps - 1, minlength=grid), reveals(name, grid))
    share = [shown(SCHEDULES[name], grid, step) for step in range(grid + 1)]
    assert np.allclose(share, np.append(0, reveals(name, grid).cumsum()), atol=1e-12)


def test_the_schedules_differ():
    laws = [reveals(name, 5) for name in SCHEDULES]
    assert all(np.abs(one - other).sum() > 0.2 for i, one in enumerate(laws) for other in laws[:i])


@pytest.mark.parametrize("name", SCHEDULES)
def test_nothing_is_left_after_the_last_step(name):
    extremes = torch.tensor([2.0**-53, 1e-9, 0.5, 1 - 2.0**-53], dtype=torch.float64)
    for grid in (1, 3, 10**9):
        steps = reveal_step(SCHEDULES[name], extremes, grid)
        assert int(steps.min()) >= 1
        assert int(steps.max()) <= grid
        assert (steps.diff() <= 0).all()  # the larger the number, the earlier


def test_an_unknown_schedule():
    with pytest.raises(BesagError, match=r"schedule='cosin': give one of log_linear, cosine, geometric. Did you mean"):
        schedule("cosin")
