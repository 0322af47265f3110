"""Escape from modes: intervals, modes and the experiment on few candidates of the embedded model."""

import math

import numpy as np
import pytest
from tests.laws import Arbitrary

import besag
from besag.errors import BesagError
from besag.lab.experiment import experiment
from besag.lab.experiments import escape_from_modes
from besag.lab.experiments.escape_from_modes import escape, rate_interval, two_modes_of
from besag.lab.pair_model import PairModel


def test_intervals_of_a_rate_hold_it_as_often_as_they_say():
    generator = np.random.default_rng(0)
    held = []
    for _ in range(400):
        times = generator.exponential(100, size=20)
        found = rate_interval(int((times < 150).sum()), int(np.minimum(times, 150).sum()))
        held.append(found.low <= 100 <= found.high)
    assert 0.92 < np.mean(held) <= 0.99
    nothing = rate_interval(0, 1000)
    assert (nothing.mean, nothing.high, nothing.came) == (math.inf, math.inf, 0)
    assert nothing.low == pytest.approx(1000 / -math.log(0.025), rel=0.02)  # none of 1000: the rate is below 3.7/1000


@pytest.fixture(scope="module")
def joint():
    words = [["s0", "s2", "s3"], ["s2", "s4", "s5"]]
    return besag.load(Arbitrary(6), progress=False).joint("s1 [MASK] [MASK]", candidates=words)


def test_modes_share_no_token(joint):
    modes = two_modes_of(joint)
    q = joint.matrix()
    assert q[modes.first] == q.max()
    tokens = [{joint.unaries.ids_a[x], joint.unaries.ids_b[y]} for x, y in modes]
    assert not tokens[0] & tokens[1]
    free = [q[x, y] for x in range(3) for y in range(3)
            if not {joint.unaries.ids_a[x], joint.unaries.ids_b[y]} & tokens[0]]  # fmt: skip
    assert q[modes.second] == max(free)


def test_chains_take_as_long_as_the_matrix_says(joint):
    pair, modes = PairModel(joint), two_modes_of(joint)
    exact = 2 / pair.pair_law()[modes.second]
    seen = escape(pair, "block_gibbs", *modes, 1.0, chains=100, steps=60, seed=1)
    assert seen.low < exact < seen.high


def test_a_mode_of_the_embedded_model_is_left_by_both_places_at_once(monkeypatch):
    monkeypatch.setattr(escape_from_modes, "TEMPERATURES", (0.5, 1.0))
    monkeypatch.setattr(escape_from_modes, "CHAINS", 10)
    monkeypatch.setattr(escape_from_modes, "STEPS", 30)
    monkeypatch.setattr(escape_from_modes, "MAPPED", 2)
    monkeypatch.setattr(escape_from_modes, "SHORT", 0)
    monkeypatch.setattr(escape_from_modes, "NEAR", 1)
    found = experiment("escape_from_modes", candidates=6).run()
    modes, passes, dependence = found.tables.values()
    assert [row["mode"] for row in modes] == ["A", "B"]
    assert all(row["block_gibbs"] < row["gibbs"] for row in passes if row["temperature"] == 0.5)
    assert found.claims["one place at a time, it takes longer the colder it is, below temperature 1"]
    assert len(dependence) == 5
    pytest.importorskip("matplotlib")
    for figure in found.figures:
        assert "<svg" in found.svg(figure)


def test_two_masks_are_needed():
    with pytest.raises(BesagError, match="two masks are needed, and here are 3"):
        experiment("escape_from_modes", text="[MASK] [MASK] [MASK].", candidates=2).run()
