from __future__ import annotations

import itertools
import math
import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import BesagError
from besag.training.recipe import Recipe, Run, Schedule
from besag.training.run.schedule import Progress, Rates, Timer, factor

SHAPES = ("linear", "cosine", "trapezoid", "constant")


def test_each_shape_is_what_its_name_says() -> None:
    ends = {"warmup": 0.1, "floor": 0.2, "decay": 0.4}
    at = [0.0, 0.05, 0.1, 0.55, 0.6, 0.8, 1.0]
    expected = {
        "linear": [0, 0.5, 1, 0.6, 0.2 + 0.8 * 0.4 / 0.9, 0.2 + 0.8 * 0.2 / 0.9, 0.2],
        "cosine": [0, 0.5, 1, 0.6, *(0.2 + 0.4 * (1 + math.cos(math.pi * x / 0.9)) for x in (0.5, 0.7)), 0.2],
        "trapezoid": [0, 0.5, 1, 1, 1, 0.6, 0.2],
        "constant": [0, 0.5, 1, 1, 1, 1, 1],
    }
    for shape, values in expected.items():
        schedule = Schedule(steps=10, shape=shape, **ends)  # type: ignore[arg-type]
        assert [factor(schedule, t) for t in at] == pytest.approx(values), shape


@given(
    st.sampled_from(SHAPES), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.lists(st.floats(-1, 2), min_size=2)
)
def test_a_factor_is_a_share_that_falls_after_the_warm_up(
    shape: str, warmup: float, decay: float, floor: float, times: list[float]
) -> None:
    schedule = Schedule(steps=1, shape=shape, warmup=warmup, decay=decay, floor=floor)  # type: ignore[arg-type]
    values = [factor(schedule, t) for t in sorted(times)]
    assert all(-1e-12 <= value <= 1 + 1e-12 for value in values)
    after = [factor(schedule, t) for t in sorted(times) if t >= warmup]
    assert all(one >= other - 1e-12 for one, other in itertools.pairwise(after))


def run(progress: Progress, tokens: int, seconds: float, limit: int = 1000) -> list[float]:
    """The factors of all steps, each of so many tokens and seconds."""
    factors, now = [], progress.seconds
    while not progress.finished and len(factors) < limit:
        factors.append(progress.begin(tokens, now))
        now += seconds
        progress.end()
    return factors


def test_steps_are_taken_in_their_middle() -> None:
    factors = run(Progress(Recipe(schedule=Schedule(steps=4, warmup=0.5))), 10, 1.0)
    assert factors == pytest.approx([0.25, 0.75, 0.75, 0.25])


def test_tokens_end_a_run_with_the_step_that_reaches_them() -> None:
    progress = Progress(Recipe(schedule=Schedule(tokens=95, warmup=0.0)))
    factors = run(progress, 10, 1.0)
    assert len(factors) == 10
    assert progress.tokens == 100
    assert factors == pytest.approx([1 - (10 * step + 5) / 95 for step in range(9)] + [0.0])


@given(st.floats(0.01, 0.5), st.integers(2, 60))
def test_minutes_are_never_overrun_and_the_decay_is_finished(seconds: float, steps: int) -> None:
    budget = seconds * steps
    progress = Progress(Recipe(schedule=Schedule(minutes=budget / 60, warmup=0.0)))
    factors = run(progress, 10, seconds)
    assert steps - 1 <= len(factors) <= steps  # the first step's length is not known before the second begins
    assert len(factors) * seconds <= budget * (1 + 1e-9)
    assert factors[-1] <= 2.5 / steps


def by_clock(progress: Progress, lengths: list[float]) -> tuple[list[float], float]:
    """The factors of steps that take so long, and the clock when the run is over."""
    factors, now = [], 0.0
    for length in lengths:
        if progress.finished:
            break
        factors.append(progress.begin(10, now))
        now += length
        progress.end()
    return factors, now


def test_compilation_takes_nothing_of_the_warm_up() -> None:
    recipe = Recipe(schedule=Schedule(minutes=1.0, warmup=0.2))
    factors, end = by_clock(Progress(recipe), [20.0] + [1.0] * 100)  # a third of the minutes, and all of the warm-up
    warm = [(step + 0.5) / 8 for step in range(8)]  # 8 of the 40 seconds that are left
    assert factors[0] == 0.0
    assert factors[2:9] == pytest.approx(warm[1:])  # the second step is 1 s long, which is known when the third begins
    assert factors[1] < factors[2]
    assert factors[9:] == pytest.approx([1 - (step - 7.5) / 32 for step in range(8, 8 + len(factors[9:]))])
    assert 58.0 <= end <= 60.0


def test_layers_that_are_compiled_for_other_shapes_take_nothing_either() -> None:
    recipe = Recipe(schedule=Schedule(minutes=1.0, warmup=0.2))
    progress = Progress(recipe)
    factors, end = by_clock(progress, [10.0, 6.0, 0.5, 5.5, *[0.5] * 200])
    assert progress.lost == pytest.approx(10.0 + 5.5 + 5.0)
    left = 60.0 - progress.lost
    assert factors[4:16] == pytest.approx([(0.5 * (step - 1) + 0.25) / (0.2 * left) for step in range(4, 16)])
    assert factors[-1] < 0.05
    assert 58.5 <= end <= 60.0


@pytest.mark.parametrize("late", [17, 40, 63])
def test_nor_does_what_is_compiled_late(late: int) -> None:
    progress = Progress(Recipe(schedule=Schedule(minutes=1.0, warmup=0.5)))
    factors, _ = by_clock(progress, [10.0, *[0.1] * (late - 1), 20.0, *[0.1] * 10])
    assert progress.lost == pytest.approx(10.0 + 19.9)
    assert factors[late + 1] == pytest.approx((0.1 * late + 0.05) / (0.5 * (60.0 - progress.lost)))


@given(st.lists(st.floats(0.1, 30.0), min_size=3, max_size=80))
def test_whatever_steps_take_a_factor_is_a_share(lengths: list[float]) -> None:
    progress = Progress(Recipe(schedule=Schedule(minutes=1.0, warmup=0.3)))
    factors, _ = by_clock(progress, lengths)
    assert all(0.0 <= one <= 1.0 for one in factors)
    assert 0.0 <= progress.share <= 1.0


def test_a_restored_run_knows_what_was_lost() -> None:
    recipe = Recipe(schedule=Schedule(minutes=1.0, warmup=0.2))
    first, second = Progress(recipe), Progress(recipe)
    by_clock(first, [20.0] + [1.0] * 9)
    second.restore(first.state())
    assert (second.lost, second.share) == (20.0, first.share)
    second.restore({name: value for name, value in first.state().items() if name != "lost"})  # of long ago
    assert second.lost == 0.0


def test_a_restored_run_goes_on_where_it_was() -> None:
    recipe = Recipe(schedule=Schedule(minutes=1.0, warmup=0.1))
    whole, first, second = Progress(recipe), Progress(recipe), Progress(recipe)
    factors = run(whole, 7, 2.0)
    begun = run(first, 7, 2.0, limit=10)
    second.restore(first.state())
    assert (second.step, second.tokens, second.seconds, second.step_seconds) == (10, 70, 18.0, 2.0)
    second.seconds = 20.0  # what the timer says when the next step begins
    rest = run(second, 7, 2.0)
    assert len(begun) + len(rest) == len(factors)
    assert rest == pytest.approx(factors[10:])


def test_a_ramp_counts_its_batches_by_whatever_is_the_length_of_the_run() -> None:
    for schedule, tokens, seconds in (
        (Schedule(steps=10, ramp=0.6), 7, 1.0),
        (Schedule(tokens=100, ramp=0.6), 10, 1.0),
        (Schedule(minutes=1.0, ramp=0.6), 7, 6.0),
    ):
        progress = Progress(Recipe(schedule=schedule, run=Run(accumulate=4)))
        sizes = []
        for step in range(9):
            sizes.append(progress.together)
            progress.begin(tokens, step * seconds)
            progress.end()
        behind = 2 if schedule.minutes else 0  # known when the step before began; and the first one does not count
        expected = [1, 1, 2, 2, 3, 3, 4, 4, 4, 4]
        assert sizes == ([1] * behind + expected)[:9]
        assert progress.batches == progress.seen == sum(sizes)
        again = Progress(Recipe(schedule=schedule, run=Run(accumulate=4)))
        again.restore(progress.state())
        assert (again.batches, again.together) == (progress.batches, progress.together)
    plain = Progress(Recipe(schedule=Schedule(steps=3), run=Run(accumulate=4)))
    assert (plain.together, plain.seen) == (4, None)


def test_a_run_of_minutes_that_is_over_stays_over() -> None:
    recipe = Recipe(schedule=Schedule(minutes=1.0))
    whole, again, longer = Progress(recipe), Progress(recipe), Progress(Recipe(schedule=Schedule(minutes=2.0)))
    run(whole, 7, 2.0)
    again.restore(whole.state())
    longer.restore(whole.state())
    assert again.finished
    assert not longer.finished


def test_a_run_has_one_length() -> None:
    for wrong in (Schedule(), Schedule(steps=3, tokens=5)):
        with pytest.raises(BesagError, match="give one of"):
            Progress(Recipe(schedule=wrong))


def test_a_paused_timer_stands_still() -> None:
    timer = Timer(100.0)
    with timer.paused():
        time.sleep(0.05)
    assert 100.0 <= timer.seconds < 100.04


def test_a_timer_can_be_turned_back_and_not_ahead() -> None:
    timer = Timer(100.0)
    timer.turn_back(90.0)
    assert 90.0 <= timer.seconds < 91.0
    timer.turn_back(95.0)
    assert 90.0 <= timer.seconds < 91.0


def test_rates_keep_the_ratio_of_groups() -> None:
    weights = [torch.nn.Parameter(torch.zeros(2)) for _ in range(2)]
    rates = Rates(torch.optim.SGD([{"params": weights[:1], "lr": 0.1}, {"params": weights[1:], "lr": 0.02}]))
    rates.apply(0.5)
    assert rates.get_last_lr() == pytest.approx([0.05, 0.01])
    rates.apply(1.0)
    assert rates.get_last_lr() == pytest.approx([0.1, 0.02])
