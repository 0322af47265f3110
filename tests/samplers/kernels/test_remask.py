"""`remask` against enumerated laws: the marginals that ReMDM keeps, its steps, its limit; every branch of a P2 plan."""

from itertools import pairwise
from math import ceil

import numpy as np
import pytest
import torch
from tests.laws import Counting
from tests.samplers.enumerated import Partial, ancestral_law
from torch.utils._python_dispatch import TorchDispatchMode

from besag.conditionals.table import Table
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank, conditional, empirical, follows, number, run, total_variation
from besag.samplers import (
    Noise,
    kernel,
    remask,  # noqa: F401 (registers itself)
)
from besag.samplers.kernels.schedules import SCHEDULES, shown

CHAINS = 10_000


def walked(law, places, sigma, grid, steps=None, schedule="log_linear", compensated=True):
    """(Partial, its law) after some steps of re-masking with probability sigma at most, from the definition."""
    partial = Partial(law, places)
    alpha = np.array([shown(SCHEDULES[schedule], grid, step) for step in range(grid + 1)])
    now = partial.masks()
    for step in range(grid if steps is None else steps):
        before, after = alpha[step], alpha[step + 1]
        back = min(sigma, 1.0) if before == 0 else min(sigma, (1 - after) / before, 1.0)
        chance = (after - (1 - back if compensated else 1) * before) / (1 - before)

        def move(text, place, back=back, chance=chance):
            if text[place] < law.width:
                return (1 - back) * partial.stays(text[place]) + back * partial.stays(law.width)
            return np.append(chance * partial.rows[text, place], 1 - chance)

        now = partial.moved(now, move)
    return partial, now


def law_of(law, places, eta, grid, schedule="log_linear"):
    partial, now = walked(law, places, eta / grid, grid, schedule=schedule)
    return partial.full(now)


def counted(state, width):
    """How many chains are at each partly masked text."""
    return np.bincount(number(state.ids, width + 1), minlength=(width + 1) ** state.ids.shape[1])


@pytest.mark.parametrize(
    ("schedule", "eta"), [*((schedule, 2.0) for schedule in SCHEDULES), ("log_linear", 0.0), ("cosine", 1e9)]
)
def test_the_forward_process_is_kept_at_every_time_for_independent_places(schedule, eta):
    one, other = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])
    law, grid = Table(np.outer(one, other)), 5
    alpha = np.array([shown(SCHEDULES[schedule], grid, step) for step in range(grid + 1)])
    for steps in (1, 3, 5):
        share = alpha[steps]
        forward = np.outer(np.append(share * one, 1 - share), np.append(share * other, 1 - share)).ravel()
        assert np.allclose(walked(law, 2, eta / grid, grid, steps, schedule)[1], forward, atol=1e-12)
        state, _ = run(kernel("remask", eta=eta, grid=grid, schedule=schedule), law, blank(law, 2, CHAINS), steps)
        assert follows(counted(state, 3), forward)


def test_reveals_must_make_up_for_what_is_taken_back():
    law = Table(np.array([0.5, 0.3, 0.2]))
    right, wrong = (walked(law, 1, 0.4, 5, 3, compensated=compensated)[1] for compensated in (True, False))
    assert np.allclose(right, np.append(0.6 * np.array([0.5, 0.3, 0.2]), 0.4))
    assert total_variation(right, wrong) > 0.1
    state, _ = run(kernel("remask", eta=2.0, grid=5), law, blank(law, 1, CHAINS), 3)
    assert follows(counted(state, 3), right)
    assert not follows(counted(state, 3), wrong)


@pytest.mark.parametrize("law", [Table.random(2, 3, seed=1), Incompatible(2, 3)], ids=["joint", "incompatible"])
@pytest.mark.parametrize(
    ("eta", "grid", "schedule"),
    [
        (0.0, 3, "cosine"),
        (2.0, 1, "log_linear"),
        (2.0, 6, "log_linear"),
        (50.0, 4, "geometric"),
        (100.0, 4, "log_linear"),
    ],
)
def test_the_kernel_follows_the_enumerated_law(law, eta, grid, schedule):
    counts = empirical(kernel("remask", eta=eta, grid=grid, schedule=schedule), law, blank(law, 3, CHAINS))
    assert follows(counts, law_of(law, 3, eta, grid, schedule))


def test_without_re_masking_it_is_ancestral():
    law = Incompatible(2, 3)
    assert np.allclose(law_of(law, 3, 0.0, 5, "cosine"), ancestral_law(law, 3, 5, "cosine"))
    assert total_variation(law_of(law, 3, 3.0, 5), ancestral_law(law, 3, 5)) > 0.01


def test_dependent_places_are_right_in_the_limit_since_eta_is_a_rate():
    law = Table(np.array([[0.45, 0.05], [0.05, 0.45]]))
    joint = law.log_probs.exp().numpy()
    rate = [total_variation(law_of(law, 2, 3.0, grid), joint) for grid in (4, 16, 64, 256)]
    assert all(fine < 0.35 * coarse for coarse, fine in pairwise(rate))  # to 0, as 1/T
    assert rate[-1] < 0.005
    fixed = []
    for grid in (16, 64, 256):
        partial, now = walked(law, 2, 0.3, grid)  # as often in each step, however many there are
        fixed.append(total_variation(partial.full(now), joint))
    assert all(0.4 < fine / coarse < 0.6 for coarse, fine in pairwise(fixed))  # as 1/√T


def test_a_place_is_masked_again_half_eta_times_and_passes_are_those_that_reveal():
    law = Counting(Table.random(2, 3, seed=2))
    grid, eta, chains = 100, 4.0, 1000
    _, told = run(kernel("remask", eta=eta, grid=grid), law, blank(law, 3, chains))
    again = sum(int(info.more["remasked"].sum()) for info in told) / (3 * chains)
    assert again == pytest.approx(eta / 2, abs=0.15)
    revealed = torch.stack([info.more["revealed"] for info in told])
    passes = torch.stack([info.passes for info in told])
    assert torch.equal(passes, (revealed > 0).long())
    assert len(law.sequences) == int(passes.sum())
    assert len(told) == grid == kernel("remask", grid=grid).steps(blank(law, 3, 1))
    assert told[-1].more["time"].tolist() == [0.0] * chains


def planned(law, places, eta, grid):
    """(V^n,) the law of the planner: every branch of every draw, from the definition."""
    mask, end = law.width, np.zeros(law.width**places)

    def branch(step, text, sure, mass):
        if step == grid:
            end[number(np.array([text]), mask)[0]] += mass
            return
        hides = [place for place in range(places) if text[place] == mask]
        draws = [(dict(text_of(text)), dict(sure), mass)]
        for place in hides:
            row = conditional(law, np.array(text), hides, place)
            draws = [
                ({**tokens, place: token}, {**scores, place: float(np.log(row[token]))}, chance * row[token])
                for tokens, scores, chance in draws
                for token in range(mask)
            ]
        room = ceil(places * (step + 1) / grid - 1e-9)
        for tokens, scores, chance in draws:
            # the surest first; a shown place before its equals, then the first place
            by_rank = sorted(range(places), key=lambda at: (-(1 if at in hides else eta) * scores[at], at in hides, at))
            kept = set(by_rank[:room])
            following = tuple(tokens[place] if place in kept else mask for place in range(places))
            branch(step + 1, following, {place: scores[place] for place in kept}, chance)

    def text_of(text):
        return [(place, token) for place, token in enumerate(text) if token != mask]

    branch(0, (mask,) * places, {}, 1.0)
    return end


@pytest.mark.parametrize("law", [Table.random(2, 3, seed=5), Incompatible(2, 3)], ids=["joint", "incompatible"])
@pytest.mark.parametrize(("eta", "grid"), [(0.0, 3), (1.0, 2), (1.0, 5), (3.0, 4)])
def test_the_planner_follows_its_enumerated_law(law, eta, grid):
    expected = planned(law, 3, eta, grid)
    assert expected.sum() == pytest.approx(1)
    assert follows(empirical(kernel("remask", kind="p2", eta=eta, grid=grid), law, blank(law, 3, CHAINS)), expected)


def test_the_planner_takes_back_and_prefers_likely_tokens():
    law = Table(np.outer([0.8, 0.2], [0.7, 0.3]))
    joint = law.log_probs.exp().numpy()
    counts = empirical(kernel("remask", kind="p2", grid=4), law, blank(law, 2, CHAINS))
    assert not follows(counts, joint)  # not even of independent places
    assert counts[0] / CHAINS > joint[0, 0] + 0.03
    assert total_variation(planned(law, 2, 1.0, 4), planned(law, 2, 0.0, 4)) > 0.02
    _, told = run(kernel("remask", kind="p2", eta=2.0, grid=6), law, blank(law, 2, 500))
    assert sum(int(info.more["remasked"].sum()) for info in told) > 50
    certain = Table(np.array([[0.5, 0.0], [0.5, 0.0]]))  # the second place scores 0, as a shown one does with η = 0
    for table in (law, certain):
        _, told = run(kernel("remask", kind="p2", eta=0.0, grid=6), table, blank(table, 2, 500))
        assert not any(info.more["remasked"].any() for info in told)


def test_the_planner_shows_as_many_as_the_schedule_says():
    law = Table.random(2, 4, seed=3)
    engine = Engine(law, progress=False)
    for schedule in SCHEDULES:
        chosen, grid = kernel("remask", kind="p2", grid=7, schedule=schedule), 7
        canvas = blank(law, 4, 50)
        alpha = np.array([shown(SCHEDULES[schedule], grid, step) for step in range(grid + 1)])
        for steps in range(1, grid + 1):
            state, told = run(chosen, law, canvas, steps, engine=engine)
            assert set((state.ids < 2).sum(1).tolist()) == {ceil(4 * alpha[steps] - 1e-9)}
        assert all(set(info.passes.tolist()) <= {0, 1} for info in told)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", ["remdm", "p2"])
def test_what_is_taken_back_is_revealed_again(kind, schedule):
    law = Table.random(3, 4, seed=3)
    ids = np.array([[3, 1, 3, 3], [3, 1, 2, 3], [0, 1, 3, 3], [2, 1, 0, 0]] * 5)
    _, told = run(kernel("remask", kind=kind, eta=2.0, grid=6, schedule=schedule), law, blank(law, 4, 20, ids))
    assert all(int(info.passes[3]) == 0 for info in told)  # the chain in which nothing is hidden
    net = sum(info.more["revealed"] - info.more["remasked"] for info in told)
    assert net.tolist() == (ids == 3).sum(1).tolist()
    assert kind == "p2" or any(info.more["remasked"].any() for info in told)  # what p2 takes back is tested above


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"kind": "p3"}, "kind='p3': give one of remdm, p2. Did you mean 'p2'"),
        ({"eta": -0.1}, "eta=-0.1: how much is taken back, a number from 0"),
        ({"eta": float("nan")}, "eta=nan"),
        ({"grid": True}, "grid=True"),
        ({"schedule": "geometrical"}, "Did you mean 'geometric'"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told):
        kernel("remask", **options)


@pytest.mark.parametrize("kind", ["remdm", "p2"])
def test_a_step_on_a_fine_grid_makes_no_more_than_on_a_coarse_one(kind):
    """It used to make the schedule of the whole grid at every step."""

    class Made(TorchDispatchMode):
        numbers = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            found = func(*args, **(kwargs or {}))
            self.numbers += found.numel() if isinstance(found, torch.Tensor) else 0
            return found

    def made(grid: int) -> int:
        law, moves = Table.random(3, 4, seed=0), kernel("remask", kind=kind, grid=grid)
        engine, noise, canvas = Engine(law, progress=False), Noise(0, torch.arange(2)), blank(law, 4, 2)
        state = moves.init(engine, noise, canvas)
        with Made() as mode:
            moves.step(engine, noise, state)
        return mode.numbers

    assert made(100_000) < made(10) + 1000
