"""Escape from modes: intervals, modes, and the experiment on few candidates, of the embedded model and a tiny one."""

import math

import numpy as np
import pytest
from tests import networks
from tests.laws import Arbitrary

import besag
from besag.errors import BesagError
from besag.lab.experiment import experiment
from besag.lab.experiments import escape_from_modes
from besag.lab.experiments.escape_from_modes import NEAR, around, brief, due, escape, rate_interval, two_modes_of
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


def test_what_is_due_in_a_few_steps_is_less_where_some_are_caught_elsewhere():
    matrix = np.array([[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0, 0.01, 0.99]])  # at once, or after a hundred steps
    assert due(matrix, 0, 1, steps=2) == pytest.approx((1 + 0.5) / (0.5 + 0.5 * 0.01))
    assert due(matrix, 0, 1, steps=5000) == pytest.approx(1 + 0.5 * 100)
    assert due(np.eye(2), 0, 1, steps=3) == math.inf


@pytest.fixture
def small(monkeypatch):
    """Fewer temperatures, chains and candidates: seconds."""
    for name, value in {"TEMPERATURES": (0.5, 1.0), "CHAINS": 10, "STEPS": 30, "MAPPED": 2}.items():
        monkeypatch.setattr(escape_from_modes, name, value)


def test_a_mode_of_the_embedded_model_is_left_by_both_places_at_once(small, monkeypatch):
    monkeypatch.setattr(escape_from_modes, "SHORT", 0)
    monkeypatch.setattr(escape_from_modes, "NEAR", 1)
    found = experiment("escape_from_modes", candidates=6).run()
    modes, passes, arrived, mixing, dependence = found.tables.values()
    assert all(row["at least"] <= row["arrived"] <= row["at most"] for row in arrived)
    assert len(arrived) == 2 * len(passes)
    assert [row["mode"] for row in modes] == ["A", "B"]
    assert all(row["block_gibbs"] < row["gibbs"] for row in passes if row["temperature"] == 0.5)
    cold, warm = (row["gibbs"] for row in mixing)
    assert cold > warm > 2
    assert found.claims["one place at a time, it takes longer the colder it is, below temperature 1"]
    assert len(dependence) == 5
    pytest.importorskip("matplotlib")
    for figure in found.figures:
        assert "<svg" in found.svg(figure)


def test_a_long_text_is_mapped_around_its_masks_alone(small, tmp_path):
    networks.tiny("bert").save_pretrained(tmp_path)
    networks.vocabulary("bert").tokenizer.save_pretrained(tmp_path)
    text = " ".join(["the cat"] * 5 + ["[MASK] [MASK]"] + ["a man"] * 5)
    ids = networks.vocabulary("bert").encode([text])[0].ids
    first = int(np.flatnonzero(ids == networks.vocabulary("bert").mask_id)[0])
    found = experiment("escape_from_modes", model=str(tmp_path), text=text, candidates=5).run()
    assert found.arrays["mapped"].tolist() == list(range(first - 2, first + 4))  # both masks, and two on either side
    assert found.arrays["dependence"].shape == (6, 6)
    assert any(f"the map is of 6 of {len(ids) - 2} tokens" in note for note in found.notes)
    assert len(list(found.tables.values())[4]) == 5
    assert f"--set 'text={text}'" in found.command
    assert all(row["text"].startswith("…") and row["text"].endswith("…") for row in found.tables["modes"])


def test_the_places_around_masks_are_the_nearest_shown_ones():
    lm = besag.load(Arbitrary(6), progress=False)
    text = "s0 s1 s2 s3 s4 s5 s0 s1"
    assert NEAR == 2
    assert around(lm, text, (3, 4)) == [1, 2, 3, 4, 5, 6]
    assert around(lm, text, (0, 7)) == [0, 1, 2, 5, 6, 7]
    assert around(lm, text, (2, 4)) == [0, 1, 2, 3, 4, 5, 6]  # of 4 the two before it are 3 and 1, which are there


def test_long_texts_are_told_by_what_differs():
    assert brief(["a b.", "c d."]) == ["a b.", "c d."]
    long = ["x" * 50 + f" {middle} " + "y" * 50 for middle in ("one", "two")]
    assert brief(long) == [f"…{'x' * 15} {middle} {'y' * 15}…" for middle in ("one", "two")]


def test_two_masks_are_needed():
    with pytest.raises(BesagError, match="two masks are needed, and here are 3"):
        experiment("escape_from_modes", text="[MASK] [MASK] [MASK].", candidates=2).run()
