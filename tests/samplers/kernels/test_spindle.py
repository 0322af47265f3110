"""`spindle` against enumerated laws: its own steps, the exact posterior, and the published shortcut."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.samplers.enumerated import Partial

from besag.conditionals.checkpoint import COUNTS_FILE
from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank, empirical, follows, run, total_variation
from besag.masks import token_schedules
from besag.samplers import kernel, spindle
from besag.training.objectives import spindle as training

CHAINS = 10_000
COUNTS = (600, 300, 100)  # the last says most


def curvatures(counts=COUNTS):
    return spindle.curvatures(torch.tensor(counts, dtype=torch.float64), 0.3).numpy()


def gone(time, bend):
    """(V,) 1 − α_v(t)."""
    return time + bend * np.sin(np.pi * time)


def enumerated(law, places, grid, posterior="own", counts=COUNTS):
    """(V^n,) the law of going back step by step.

    "own": the answer times the factor of its own place. "exact": the posterior under the forward process, with the
    factors of all hidden places. "shortcut": the exact posterior, revealed with the probability of a common schedule.
    """
    partial = Partial(law, places)
    bend = curvatures(counts)
    now = partial.masks()
    for step in range(grid):
        before, after = 1 - step / grid, 1 - (step + 1) / grid

        def move(text, place, before=before, after=after):
            if text[place] < law.width:
                return partial.stays(text[place])
            if posterior == "own":
                answer = partial.rows[text, place] * gone(before, bend)
            else:
                answer = tilted(law, text, place, gone(before, bend))
            answer = answer / answer.sum()
            chance = 1 - gone(after, bend) / gone(before, bend)  # (α_v(s) − α_v(t)) / (1 − α_v(t))
            if posterior == "shortcut":
                chance = (before - after) / before
            revealed = answer * chance
            return np.append(revealed, 1 - revealed.sum())

        now = partial.moved(now, move)
    return partial.full(now)


def tilted(law, text, place, factor):
    """(V,) P(x_place = v | x_t) ∝ Σ over hidden places of p(x) · the factors of all of them."""
    joint = law.log_probs.exp().numpy()
    row = np.zeros(law.width)
    for full in product(range(law.width), repeat=len(text)):
        if all(shows in (token, law.width) for shows, token in zip(text, full, strict=True)):
            hides = [token for shows, token in zip(text, full, strict=True) if shows == law.width]
            row[full[place]] += joint[full] * np.prod(factor[hides])
    return row


def test_the_schedules_are_those_of_the_objective_and_fall():
    counts = torch.tensor([5000.0, 40, 3, 0, 1, 800], dtype=torch.float64)
    for strength in (0.0, 0.3, 2.0):
        bend = spindle.curvatures(counts, strength)
        times = torch.linspace(0, 1, 101, dtype=torch.float64)[:, None]
        assert (training.masked_by(times, bend).diff(dim=0) > 0).all()
    assert curvatures()[0] < 0 < curvatures()[1] < curvatures()[2] < 0.9 / np.pi
    made = torch.arange(0, 11)[:, None]
    expected = training.masked_by(1 - made.double() / 10, torch.from_numpy(curvatures()))
    assert torch.allclose(spindle.still(torch.from_numpy(curvatures()), made, 10), expected)


def test_one_place_is_exact_on_any_grid_and_the_shortcut_is_not():
    law = Table(np.array([0.5, 0.3, 0.2]))
    joint = law.log_probs.exp().numpy()
    for grid in (1, 3, 40):
        assert total_variation(enumerated(law, 1, grid), joint) < 1e-12
        counts = empirical(kernel("spindle", counts=COUNTS, grid=grid), law, blank(law, 1, CHAINS))
        assert follows(counts, joint)
    shortcut = enumerated(law, 1, 400, "shortcut")
    assert total_variation(shortcut, joint) > 0.03
    assert not follows(counts, shortcut)


def test_when_a_token_is_revealed():
    law, grid = Table(np.array([0.5, 0.3, 0.2])), 4
    state, _ = run(kernel("spindle", counts=COUNTS, grid=grid), law, blank(law, 1, CHAINS))
    seen = np.bincount((state.made - 1) * 3 + state.ids[:, 0], minlength=12)
    times = 1 - np.arange(grid + 1) / grid
    expected = np.array([0.5, 0.3, 0.2]) * -np.diff([gone(time, curvatures()) for time in times], axis=0)  # (grid, V)
    assert follows(seen, expected)
    assert not follows(seen, np.tile([0.5, 0.3, 0.2], (grid, 1)))  # not as if all had one schedule


def test_independent_places_are_exact_on_any_grid():
    one, other = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])
    law = Table(np.outer(one, other))
    for grid in (1, 2, 7):
        assert total_variation(enumerated(law, 2, grid), np.outer(one, other)) < 1e-12
    assert follows(
        empirical(kernel("spindle", counts=COUNTS, grid=7), law, blank(law, 2, CHAINS)), np.outer(one, other)
    )
    assert total_variation(enumerated(law, 2, 200, "shortcut"), np.outer(one, other)) > 0.03


@pytest.mark.parametrize("grid", [1, 3, 12])
@pytest.mark.parametrize(
    "law", [Table.random(2, 3, seed=1, concentration=0.3), Incompatible(2, 3)], ids=["joint", "incompatible"]
)
def test_the_kernel_follows_the_enumerated_law(law, grid):
    counts = empirical(kernel("spindle", counts=COUNTS[:2], grid=grid), law, blank(law, 3, CHAINS))
    assert follows(counts, enumerated(law, 3, grid, counts=COUNTS[:2]))


@pytest.mark.slow
def test_dependent_places_need_the_factors_of_one_another():
    law = Table(np.array([[0.05, 0.05, 0.3], [0.05, 0.3, 0.05], [0.15, 0.02, 0.03]]))
    joint = law.log_probs.exp().numpy()
    exact = [total_variation(enumerated(law, 2, grid, "exact"), joint) for grid in (2, 8, 32, 128)]
    assert all(fine < 0.3 * coarse for coarse, fine in pairwise(exact))  # to 0, as 1/T
    assert exact[-1] < 0.004
    own = [total_variation(enumerated(law, 2, grid, "own"), joint) for grid in (128, 512)]
    assert own[1] == pytest.approx(own[0], rel=0.2)  # stays
    shortcut = total_variation(enumerated(law, 2, 128, "shortcut"), joint)
    assert 0.01 < own[1] < 0.5 * shortcut
    grid = 128
    counts = empirical(kernel("spindle", counts=COUNTS, grid=grid), law, blank(law, 2, CHAINS))
    assert follows(counts, enumerated(law, 2, grid))
    assert not follows(counts, enumerated(law, 2, grid, "shortcut"))


@given(st.integers(0, 10**6), st.integers(1, 40))
@settings(max_examples=20, deadline=None)
def test_with_one_schedule_for_all_it_is_ancestral(seed, grid):
    law = Table.random(3, 4, seed=seed)
    expected, slow = run(kernel("ancestral", grid=grid), law, blank(law, 4, 20), seed=seed)
    for options in ({"counts": COUNTS, "strength": 0.0}, {"counts": (7, 7, 7)}):
        state, told = run(kernel("spindle", grid=grid, **options), law, blank(law, 4, 20), seed=seed)
        assert torch.equal(state.ids, expected.ids)
        assert torch.equal(state.made, expected.made)
        assert torch.equal(sum(info.passes for info in told), sum(info.passes for info in slow))


def test_all_that_is_hidden_is_revealed_in_as_many_steps_as_places():
    law = Table.random(3, 4, seed=3)
    canvas = blank(law, 4, 3, np.array([[3, 1, 3, 3], [3, 1, 2, 3], [2, 1, 0, 0]]))
    chosen = kernel("spindle", counts=COUNTS, grid=9)
    _, told = run(chosen, law, canvas)
    assert sum(info.more["revealed"] for info in told).tolist() == [3, 2, 0]
    assert len(told) <= chosen.steps(canvas) == 3


def test_truncation_comes_before_the_factor():
    law = Table(np.array([0.5, 0.3, 0.2]))
    counts = empirical(kernel("spindle", counts=COUNTS, top_k=2, grid=5), law, blank(law, 1, CHAINS))
    assert follows(counts, np.array([0.5, 0.3, 0.0]))


def test_counts_may_be_any_numbers_and_are_not_printed_one_by_one():
    chosen = kernel("spindle", counts=np.arange(3000))
    assert chosen == kernel("spindle", counts=list(range(3000)))
    assert "counts=<3000 tokens>" in repr(chosen)


def test_bad_counts_and_strengths():
    law = Table.random(3, 2)
    with pytest.raises(BesagError, match=r"spindle needs to know how often each token occurs, .* give counts="):
        run(kernel("spindle"), law, blank(law, 2, 1))
    with pytest.raises(BesagError, match="counts of 4 tokens for a network that knows 3"):
        run(kernel("spindle", counts=(1, 2, 3, 4)), law, blank(law, 2, 1))
    for counts in ((0, 0, 0), (1, -1, 3)):
        with pytest.raises(BesagError, match="counts: how often each token occurs, finite numbers from 0 up"):
            kernel("spindle", counts=counts)
    for counts in ((1, float("nan")), (1, "x")):
        with pytest.raises(BesagError, match=r"counts=.*: give a number"):
            kernel("spindle", counts=counts)
    with pytest.raises(BesagError, match="strength=-1: λ is at least 0"):
        kernel("spindle", counts=COUNTS, strength=-1)
    with pytest.raises(BesagError, match="grid=0"):
        kernel("diffusionbert", counts=COUNTS, grid=0)


def test_counts_and_strength_kept_beside_a_model_are_taken(tmp_path):
    assert token_schedules.FILE == COUNTS_FILE  # what is fetched from a hub is what was put there
    law = Table.random(3, 2, seed=0)
    token_schedules.save(tmp_path, torch.tensor(COUNTS), 0.2)
    told, _ = run(kernel("spindle", counts=COUNTS, strength=0.2), law, blank(law, 2, 500))
    law.folder = tmp_path
    found, _ = run(kernel("spindle"), law, blank(law, 2, 500))
    assert torch.equal(found.bend, told.bend)
    assert torch.equal(found.ids, told.ids)
    other, _ = run(kernel("spindle", strength=0.3), law, blank(law, 2, 500))  # what is said goes before what is kept
    np.testing.assert_allclose(other.bend, curvatures())
    (tmp_path / token_schedules.FILE).write_bytes(b"no safetensors")
    with pytest.raises(BesagError, match="holds no counts of tokens"):
        run(kernel("spindle"), law, blank(law, 2, 1))
