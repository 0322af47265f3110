import math

import numpy as np
import pytest
from tests.masks.example_passages import plain, repeated

from besag.errors import BesagError
from besag.masks import Statistics, law

CORPUS = Statistics(np.array([0, 5, 5, 5, 5]), [], frozenset({0}), ("[MASK]", "a", "b", "c", "d"))
DRAWS = 40_000
NONE = np.zeros(3, bool)


def test_the_table_keeps_the_last_mean():
    made = law("loss_weighted").prepare(CORPUS)
    assert made.state()["losses"] == pytest.approx([math.log(5)] * 5)
    made.observe(np.array([1, 2, 1]), np.array([0.5, 2.0, 1.0]), NONE)
    assert made.state()["losses"] == pytest.approx([math.log(5), 0.75, 2.0, math.log(5), math.log(5)])
    made.observe(np.array([2]), np.array([3.0]), NONE[:1])
    assert made.state()["losses"][1:3] == pytest.approx([0.75, 3.0])


def test_a_decay_averages():
    made = law("loss_weighted", decay=0.75).prepare(CORPUS)
    made.observe(np.array([1]), np.array([1.0]), NONE[:1])
    assert made.state()["losses"][1] == pytest.approx(0.75 * math.log(5) + 0.25)


@pytest.mark.parametrize("nats", [True, False])
def test_one_token_is_drawn_in_proportion_to_its_weight(nats):
    made = law("loss_weighted", tau=0.7, nats=nats).prepare(CORPUS)
    losses = np.array([0.2, 0.9, 1.6, 0.1])
    made.observe(np.arange(1, 5), losses, np.zeros(4, bool))
    weight = np.exp(losses / 0.7 / (1 if nats else math.log(5)))
    passages = repeated(plain(4)._replace(ids=np.array([1, 2, 3, 4])), DRAWS)
    seen = made.choose(passages, np.full(DRAWS, 0.25), 0.0, 7).reshape(DRAWS, 4).sum(0)
    wanted = DRAWS * weight / weight.sum()
    assert ((seen - wanted) ** 2 / wanted).sum() < 16.3  # chi-square, 3 degrees of freedom: p ≈ 0.001
    tilt = made.tilt(1e-7)[1:]
    assert tilt - tilt[0] == pytest.approx(np.log(weight / weight[0]), abs=1e-4)


def test_the_order_in_which_processes_report_changes_nothing():
    rng = np.random.default_rng(0)
    ids, losses = rng.integers(1, 5, 500), rng.exponential(2, 500)
    one, other = (law("loss_weighted").prepare(CORPUS) for _ in range(2))
    order = rng.permutation(500)
    one.observe(ids, losses, np.zeros(500, bool))
    other.observe(ids[order], losses[order], np.zeros(500, bool))
    assert (one.state()["losses"] == other.state()["losses"]).all()


def test_a_step_that_predicts_nothing():
    made = law("loss_weighted").prepare(CORPUS)
    made.observe(np.empty(0, int), np.empty(0), np.empty(0, bool))
    assert made.state()["losses"] == pytest.approx([math.log(5)] * 5)


def test_options_that_make_no_sense():
    with pytest.raises(BesagError, match="tau=0"):
        law("loss_weighted", tau=0)
    with pytest.raises(BesagError, match="decay=1"):
        law("loss_weighted", decay=1)
