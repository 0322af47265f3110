"""The rectangle test: 0 where there is a joint, brute force where there is none, and drawn as it says."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import networks
from tests.laws import Arbitrary, Counting

import besag
from besag.conditionals.transformer import Transformer
from besag.diagnostics.rectangle import rectangles, two_of
from besag.engine import Engine
from besag.errors import BesagError

TEXT = "s0 s2 s1 s3"


def brute_force(law: Arbitrary, text: list[int], a: int, b: int, minor: list[int]) -> tuple[float, float]:
    """Both log odds ratios, from the conditionals themselves."""

    def log_prob(asked: int, wanted: int, other: int, shown: int) -> float:
        context = list(text)
        context[asked], context[other] = law.width, shown
        return float(law.log_probs(context, asked)[wanted])

    x, x2, y, y2 = minor
    of_a = log_prob(a, x, b, y) - log_prob(a, x2, b, y) - log_prob(a, x, b, y2) + log_prob(a, x2, b, y2)
    of_b = log_prob(b, y, a, x) - log_prob(b, y2, a, x) - log_prob(b, y, a, x2) + log_prob(b, y2, a, x2)
    return of_a, of_b


@given(st.integers(0, 50), st.permutations(range(4)))
def test_a_joint_has_no_deviation(seed, order):
    law = besag.Table.random(4, 4, seed=seed)
    found = rectangles(Engine(law), TEXT, order[:2], minors=20)
    assert np.abs(found.deviations).max() < 1e-10
    [minors] = found.minors
    for (x, x2, y, y2), log_odds in zip(minors.tokens.tolist(), minors.log_odds_a, strict=True):
        cells = {}
        for first in (x, x2):
            for second in (y, y2):
                place = [0, 2, 1, 3]
                place[order[0]], place[order[1]] = first, second
                cells[first, second] = float(law.log_probs[tuple(place)])
        assert log_odds == pytest.approx(cells[x, y] - cells[x2, y] - cells[x, y2] + cells[x2, y2], abs=1e-9)
    assert found.correlation == pytest.approx(1.0)
    assert found.dependence > 0.1


def test_without_a_joint_both_sides_are_those_of_the_conditionals():
    law = Arbitrary(4)
    found = rectangles(Engine(law), TEXT, (3, 1), minors=30)
    [minors] = found.minors
    for minor, of_a, of_b in zip(minors.tokens.tolist(), *minors[1:], strict=True):
        assert (of_a, of_b) == pytest.approx(brute_force(law, [0, 2, 1, 3], 3, 1, minor), abs=1e-10)
    deviations = minors.log_odds_a - minors.log_odds_b
    assert found.mean == pytest.approx(np.abs(deviations).mean())
    assert found.rms == pytest.approx(math.sqrt(np.mean(deviations**2)))
    assert found.quantiles[0.5] == pytest.approx(np.median(np.abs(deviations)))
    assert found.correlation == pytest.approx(np.corrcoef(minors.log_odds_a, minors.log_odds_b)[0, 1])
    assert found.standard_error == pytest.approx(np.abs(deviations).std(ddof=1) / math.sqrt(30))
    strengths = (np.abs(minors.log_odds_a) + np.abs(minors.log_odds_b)) / 2
    assert found.dependence == pytest.approx(strengths.mean())


def test_the_standard_error_is_that_of_repeated_draws():
    """60 seeds of 20 minors at each of three pairs; the spread of their means is known to a third."""
    engine = Engine(Arbitrary(5))
    found = [rectangles(engine, TEXT, minors=20, seed=seed) for seed in range(60)]
    assert np.std([one.mean for one in found]) == pytest.approx(
        np.mean([one.standard_error for one in found]), rel=0.33
    )


def test_neighbours_are_tested_together_as_each_alone():
    engine = Engine(Arbitrary(4))
    together = rectangles(engine, TEXT, minors=10, seed=3)
    assert together.pairs == ((0, 1), (1, 2), (2, 3))
    for pair, minors in zip(together.pairs, together.minors, strict=True):
        [alone] = rectangles(engine, TEXT, pair, minors=10, seed=3).minors
        assert np.array_equal(minors.tokens, alone.tokens)
        assert np.array_equal(minors.log_odds_b, alone.log_odds_b)
    assert len(together.deviations) == 30
    assert rectangles(engine, TEXT, minors=10, seed=4).mean != together.mean


def test_masks_name_the_pair():
    found = rectangles(Engine(besag.Table.random(4, 4)), "s0 [MASK] [MASK] s3", minors=5)
    assert found.pairs == ((1, 2),)


def test_a_minor_costs_four_sequences_at_most():
    law = Counting(Arbitrary(9))
    rectangles(Engine(law), TEXT, (0, 3), minors=12)
    assert len(law.sequences) <= 1 + 4 * 12


def test_two_outcomes_are_drawn_without_replacement():
    """20,000 draws; each share is known to ±1.1 % (three standard errors)."""
    p = np.array([0.6, 0.3, 0.0999, 1e-4])
    first, second = np.random.default_rng(0).random((2, 20_000))
    one, two = two_of(np.log(p), first, second)
    assert (one != two).all()
    for x in range(3):
        assert np.mean(one == x) == pytest.approx(p[x], abs=0.011)
        for y in set(range(3)) - {x}:
            assert np.mean((one == x) & (two == y)) == pytest.approx(p[x] * p[y] / (1 - p[x]), abs=0.011)


def test_a_certain_token_leaves_the_rest_as_likely_as_it_is():
    log_p = np.array([0.0, -200.0, -200.0 + math.log(3.0)])  # 1 − p is 0 in floating point
    _, two = two_of(log_p, np.full(4000, 0.5), np.random.default_rng(1).random(4000))
    assert np.mean(two == 2) == pytest.approx(0.75, abs=0.021)


def test_special_tokens_are_drawn_only_if_they_may_stand_there():
    network = Transformer(networks.tiny("bert"), networks.vocabulary("bert"), name="tiny")
    special = network.vocabulary.special_ids
    text = rectangles(Engine(network), "the cat sleeps on the mat", (1, 2), minors=200)
    assert not special & set(text.minors[0].tokens.ravel().tolist())
    whole = rectangles(Engine(network), "the cat sleeps on the mat", (1, 2), minors=200, outcomes="all")
    assert special & set(whole.minors[0].tokens.ravel().tolist())
    assert whole.mean > 0.01


def test_what_cannot_be_tested_says_so():
    engine = Engine(Arbitrary(3))
    with pytest.raises(BesagError, match="two places, and one was given"):
        rectangles(engine, "s0 [MASK] s1")
    with pytest.raises(BesagError, match="two places, and 3 were given"):
        rectangles(engine, TEXT.replace("s3", "s0"), (0, 1, 2))
    with pytest.raises(BesagError, match="fewer than two tokens"):
        rectangles(engine, "s0")
    with pytest.raises(BesagError, match="minors=0"):
        rectangles(engine, "s0 s1", minors=0)
    with pytest.raises(BesagError, match="left side"):
        rectangles(Engine(Arbitrary(3, sees="left")), "s0 s1")
    with pytest.raises(BesagError, match="one here is 0"):
        rectangles(Engine(besag.Table([[0.3, 0.3, 0.1], [0.1, 0.1, 0.0], [0.1, 0.0, 0.0]])), "s0 s0", minors=50)
    with pytest.raises(BesagError, match="only one can"):
        rectangles(Engine(besag.Table([[0.5, 0.5], [0.0, 0.0]])), "s0 s0")


def test_it_tells_and_draws_itself():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    found = rectangles(Engine(Arbitrary(4)), TEXT, (1, 2), minors=8)
    assert "8 2 × 2 minors" in repr(found)
    assert "mean |D|" in repr(found)
    frame = found.to_pandas()
    assert frame["deviation"].abs().mean() == pytest.approx(found.mean)
    assert (frame["x"] != frame["x'"]).all()
    assert found.to_dict()["mean"] == found.mean
    ax = found.plot()
    drawn = np.asarray(ax.collections[-1].get_offsets())
    assert drawn == pytest.approx(np.stack([found.log_odds_a, found.log_odds_b], 1))
    pyplot.close("all")
    assert "averaged over 3 pairs" in repr(rectangles(Engine(Arbitrary(4)), TEXT, minors=2))
