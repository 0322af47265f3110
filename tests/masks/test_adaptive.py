import numpy as np
import pytest
from tests.masks.example_passages import plain, repeated

from besag.errors import BesagError
from besag.masks import Statistics, law

COUNTS = np.array([0, 30, 10, 40, 20])
CORPUS = Statistics(COUNTS, [], frozenset({0}), ("[MASK]", "a", "b", "c", "d"))
IDS = np.array([1, 1, 1, 2, 3, 3])
RIGHT = np.array([True, True, False, False, True, True])
LOSSES = np.array([0.1, 0.2, 3.0, 2.0, 0.5, 0.1])


def by_hand(relative, seen, right, keep):
    relative = keep * relative + (1 - keep) * (1 - (right + 0.5) / (seen + 1))
    return relative / (COUNTS / COUNTS.sum() @ relative)


@pytest.mark.parametrize("soft", [False, True])
def test_the_update_is_the_published_one(soft):
    made = law("adaptive", every=2, keep=0.6, soft=soft, least=1e-9, most=1e9).prepare(CORPUS)
    counted = np.exp(-LOSSES) if soft else RIGHT
    made.observe(IDS, LOSSES, RIGHT)
    assert (made.weights == 1).all()  # not yet
    made.observe(IDS[:2], LOSSES[:2], RIGHT[:2])
    seen = np.bincount(IDS, minlength=5) + np.bincount(IDS[:2], minlength=5)
    right = np.bincount(IDS, counted, 5) + np.bincount(IDS[:2], counted[:2], 5)
    first = by_hand(np.ones(5), seen, right, 0.6)
    assert made.weights == pytest.approx(first)
    for _ in range(2):
        made.observe(IDS, LOSSES, RIGHT)
    again = by_hand(first, 2 * np.bincount(IDS, minlength=5), 2 * np.bincount(IDS, counted, 5), 0.6)
    assert made.weights == pytest.approx(again)  # counts were begun anew
    assert COUNTS / COUNTS.sum() @ made.weights == pytest.approx(1)


def test_weights_are_clipped_but_the_table_is_not():
    made = law("adaptive", every=1, keep=0.0, least=0.8, most=1.1).prepare(CORPUS)
    made.observe(np.repeat([1, 2], 50), np.ones(100), np.repeat([True, False], 50))
    assert made.weights[1:3].tolist() == [0.8, 1.1]
    assert made.state()["relative"][1] < 0.1


def test_chances_follow_the_weights():
    made = law("adaptive", every=1, keep=0.0).prepare(CORPUS)
    made.observe(np.repeat([1, 2, 3, 4], 9), np.ones(36), np.arange(36) % 9 < np.repeat([1, 3, 5, 7], 9))
    draws, ids = 4000, np.tile([1, 2, 3, 4], 15)
    passages = repeated(plain(60)._replace(ids=ids), draws)
    hidden = made.choose(passages, np.full(draws, 0.2), 0.0, 3).reshape(draws, 60)
    assert (hidden.sum(1) == 12).all()
    rate = hidden.mean(0).reshape(15, 4).mean(0)
    wanted = made.weights[1:] / made.weights[1:].mean() * 0.2
    assert rate == pytest.approx(wanted, rel=0.02)


def test_a_run_goes_on_where_it_stopped():
    rng = np.random.default_rng(1)
    steps = [(rng.integers(1, 5, 50), rng.exponential(1, 50), rng.random(50) < 0.4) for _ in range(25)]
    whole, first, second = (law("adaptive", every=10).prepare(CORPUS) for _ in range(3))
    for step in steps:
        whole.observe(*step)
    for step in steps[:17]:  # in the middle of a window
        first.observe(*step)
    second.restore(first.state())
    for step in steps[17:]:
        second.observe(*step)
    assert all((whole.state()[name] == second.state()[name]).all() for name in whole.state())
    assert not all((whole.state()[name] == first.state()[name]).all() for name in whole.state())


def test_options_that_make_no_sense():
    for options in ({"every": 0}, {"keep": 1.0}, {"least": 0.0}, {"most": 0.5}):
        with pytest.raises(BesagError, match=f"cannot have {next(iter(options))}"):
            law("amlm", **options)
