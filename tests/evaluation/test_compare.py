"""Two runs compared: differences by hand, p-values of coins, intervals as wide as they should be, verdicts in words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from besag.errors import BesagError
from besag.evaluation.compare import Compared, compare
from besag.evaluation.evaluation import Evaluation, Part
from besag.evaluation.suite import suite

PAIRS = suite("minimal_pairs")


def run(
    credits: dict[str, list[float]], model: str = "m", method: str = "pll", name: str = "minimal_pairs"
) -> Evaluation:
    rows = [
        {"id": f"{group}/{place}", "group": group, "status": "ok", "phenomenon": group, "credit": value}
        for group, values in credits.items() for place, value in enumerate(values)
    ]  # fmt: skip
    own = suite(name)
    return Evaluation(own, (Part(own, model, method, "float32", rows),))


def of(a: Evaluation, b: Evaluation) -> Compared:
    [found] = compare([a], [b])
    return found


def test_differences_are_those_of_the_figures() -> None:
    a, b = run({"x": [1, 0, 0, 1], "y": [1, 1]}, "a"), run({"x": [1, 1, 0, 1], "y": [0.5, 1]}, "b")
    found = of(a, b)
    macro, micro, *_ = found.differences
    assert (macro.a, macro.b, macro.difference) == pytest.approx((75.0, 75.0, 0.0))
    assert micro.difference == pytest.approx(100 * 0.5 / 6)
    d = np.array([0, 1, 0, 0, -0.5, 0])
    assert micro.effect == pytest.approx(d.mean() / d.std(ddof=1))
    assert micro.p == 1.0  # of four patterns of signs, all reach |Σ| = ½ … or more
    assert found.status == "ok"
    assert "no difference is seen in accuracy" in found.verdict


def test_a_sure_difference_has_its_direction_and_a_size() -> None:
    draw = np.random.default_rng(0)
    a = run({"x": draw.binomial(1, 0.5, 300).tolist(), "y": draw.binomial(1, 0.5, 100).tolist()}, "a")
    b = run({"x": draw.binomial(1, 0.8, 300).tolist(), "y": draw.binomial(1, 0.8, 100).tolist()}, "b")
    found = of(a, b)
    head = found.differences[0]
    assert head.low < head.difference < head.high
    assert head.sure
    assert found.verdict.startswith("minimal_pairs: b · pll is better in accuracy, by ")
    assert "medium" in found.verdict or "small" in found.verdict
    back = of(b, a)
    assert back.differences[0].difference == pytest.approx(-head.difference)
    assert "b · pll is better" in back.verdict


def test_the_bootstrap_agrees_with_the_error_of_a_mean() -> None:
    draw = np.random.default_rng(1)
    a, b = draw.binomial(1, 0.5, 400), draw.binomial(1, 0.6, 400)
    one = of(run({"x": a.tolist()}), run({"x": b.tolist()})).differences[0]
    se = 100 * (b - a).std(ddof=1) / 20
    assert (one.low, one.high) == pytest.approx((one.difference - 1.96 * se, one.difference + 1.96 * se), abs=1.2)


def test_the_other_p_values_are_corrected() -> None:
    found = of(run({"x": [0] * 9, "y": [0] * 8}), run({"x": [1] * 9, "y": [1] * 8}))
    head, *rest = found.differences
    assert head.p_holm == head.p
    assert all(one.p_holm >= one.p for one in rest)
    assert max(one.p_holm for one in rest) > max(one.p for one in rest)


def test_figures_that_are_no_means_are_compared_by_the_bootstrap() -> None:
    own = suite("acceptability", kind="", identifier="")
    draw = np.random.default_rng(2)
    rating = draw.normal(size=80)

    def rated(noise: float, model: str) -> Evaluation:
        lp = rating + noise * draw.normal(size=80)
        rows = [
            {
                "id": str(place),
                "group": "all",
                "status": "ok",
                "rating": r,
                **dict.fromkeys(("lp", "mean_lp", "pen_lp"), x),
            }
            for place, (r, x) in enumerate(zip(rating.tolist(), lp.tolist(), strict=True))
        ]
        return Evaluation(own, (Part(own, model, "pll", "float32", rows),))

    found = of(rated(2.0, "poor"), rated(0.3, "good"))
    head = found.differences[0]
    assert head.sure
    assert math.isnan(head.effect)
    assert head.low > 0
    assert "good · pll is better in Pearson PenLP" in found.verdict
    same = of(rated(1.0, "one"), rated(1.0, "two"))
    assert same.differences[0].p > 0.01


def test_a_bias_is_nearer_to_its_ideal() -> None:
    rows = [
        [{"id": str(place), "group": "age", "status": "ok", "direction": "stereo", "neutral": 0.0,
          "credit": float(place < won)} for place in range(100)]
        for won in (52, 80)
    ]  # fmt: skip
    own = suite("crows_pairs")
    a, b = (Evaluation(own, (Part(own, name, "pll", "float32", some),)) for name, some in zip("ab", rows, strict=True))
    assert "metric score of b · pll is 28 points higher than that of a · pll" in of(a, b).verdict
    assert of(a, b).verdict.endswith("50 is ideal, and a · pll is nearer")


def test_items_that_only_one_has_are_left_out_and_told() -> None:
    found = of(run({"x": [1, 0, 1]}), run({"x": [1, 0]}))
    assert (found.shared, found.alone, found.status) == (2, 1, "partly")
    assert any("1 items left out" in fact for fact in found.facts)
    with pytest.raises(BesagError, match="no item in common"):
        of(run({"x": [1]}), run({"y": [1]}))


def test_parts_are_matched_by_what_they_share() -> None:
    both = Evaluation(PAIRS, (*run({"x": [1]}, "a", "pll").parts, *run({"x": [1]}, "a", "chain").parts))
    other = Evaluation(PAIRS, (*run({"x": [1]}, "b", "pll").parts, *run({"x": [1]}, "b", "chain").parts))
    assert [(one.a.label, one.b.label) for one in compare([both], [other])] == [
        ("a · pll", "b · pll"), ("a · chain", "b · chain"),
    ]  # fmt: skip
    with pytest.raises(BesagError, match="no suite in common"):
        compare([run({"x": [1]})], [run({"x": [1]}, name="blimp")])
    with pytest.raises(BesagError, match="is not plain"):
        compare([both], [Evaluation(PAIRS, run({"x": [1]}, "c", "elbo").parts + run({"x": [1]}, "d", "elbo").parts)])
