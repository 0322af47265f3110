"""Two runs compared: differences by hand, p-values of coins, intervals as wide as they should be, verdicts in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.item_rows import rows_for, suite_for_rows

from besag.errors import BesagError
from besag.evaluation.compare import Compared, compare
from besag.evaluation.evaluation import Evaluation, Part
from besag.evaluation.metrics import MetricDifference, SumStatistic
from besag.evaluation.regression import gained
from besag.evaluation.suite import Row, suite
from besag.evaluation.suites.babylm_reading import PLAIN, explained
from besag.evaluation.suites.reading_times import design

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
    assert head.significant
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
    assert head.significant
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


# ---- the benchmarks that were compared wrongly


def evaluation(name: str, rows: Sequence[Row], model: str = "m") -> Evaluation:
    own = suite_for_rows(name)
    return Evaluation(own, (Part(own, model, "pll", "float32", rows),))


def differences(name: str, a: Sequence[Row], b: Sequence[Row]) -> dict[tuple[str, str], MetricDifference]:
    found = of(evaluation(name, a, "a"), evaluation(name, b, "b"))
    return {(one.name, one.group): one for one in found.differences}


def babylm(first: int, wugs: list[float]) -> list[dict[str, Any]]:
    """20 items of task blimp, of which `first` are won; 5 of task ewok, of which 2 are; wugs with these credits."""
    credits = {"blimp/x": [1.0] * first + [0.0] * (20 - first), "ewok/y": [1.0, 1.0, 0.0, 0.0, 0.0], "wug_adj/z": wugs}
    return [
        {"id": f"{group}{k}", "group": group, "status": "ok", "task": group.split("/")[0],
         "subset": group.split("/")[1], "ties": 0.0, "credit": value, "ratio": k / 9, "prob": (k - value) ** 2 / 99,
         **{f"credit at {degree}": value for degree in ("0.5", "2")},
         **{f"prob at {degree}": (k - value) ** 2 / 99 for degree in ("0.5", "2")}}
        for group, values in credits.items() for k, value in enumerate(values)
    ]  # fmt: skip


def test_babylm_runs_that_differ_in_wugs_alone_have_equal_accuracy() -> None:
    found = of(evaluation("babylm", babylm(11, [0.0] * 9)), evaluation("babylm", babylm(11, [1.0] * 9)))
    head = found.differences[0]
    assert (head.a, head.b) == (47.5, 47.5)  # 55 % and 40 %
    assert (head.difference, head.low, head.high, head.p, head.effect) == (0, 0, 0, 1, 0)
    assert "no difference is seen in accuracy" in found.verdict
    wug = differences("babylm", babylm(11, [0.0] * 9), babylm(11, [1.0] * 9))["correlation", "wug_adj"]
    assert wug.difference != 0


def test_a_difference_of_babylm_is_that_of_means_of_tasks() -> None:
    """6 of 20 items of one of two tasks: 15 points; the interval is that of Binomial(20, 0.3) / 20 · 50."""
    found = differences("babylm", babylm(8, [0.0] * 9), babylm(14, [1.0] * 9))
    head = found["accuracy", ""]
    assert (head.a, head.b, head.n) == (40.0, 55.0, 25)
    assert head.difference == pytest.approx(15.0)
    low, high = (50 / 20 * value for value in stats.binom(20, 0.3).ppf([0.025, 0.975]))
    assert (head.low, head.high) == pytest.approx((low, high), abs=2.6)  # a step of the distribution
    assert head.p == pytest.approx(2 / 2**6, abs=0.005)  # of the signs of six items


def test_lama_compares_each_kind_of_answer_on_its_own() -> None:
    def facts(ranks: list[int], vocabulary: list[int]) -> list[dict[str, Any]]:
        """The first answers have one token."""
        rows: list[dict[str, Any]] = [
            {"id": str(k), "group": "P", "status": "ok", "rank": rank, "answers": 4, "tokens": 2,
             "p1": float(rank == 1), "p10": 1.0, "reciprocal": 1 / rank}
            for k, rank in enumerate(ranks)
        ]  # fmt: skip
        for row, rank in zip(rows, vocabulary, strict=False):
            row.update(tokens=1, vocabulary_rank=rank)
        return rows

    found = differences("lama", facts([1, 2, 2, 1], [1, 2]), facts([1, 1, 2, 1], [1, 1]))
    one = found["P@1 in the vocabulary", ""]
    assert (one.a, one.b, one.difference, one.n) == (50, 100, 50, 2)
    assert (one.low, one.high, one.p) == (0, 100, 1)  # of draws of two items; of two signs
    several = found["P@1 of several tokens", ""]
    assert (several.a, several.b, several.n) == (50, 50, 2)
    assert (several.difference, several.low, several.high, several.p) == (0, 0, 0, 1)
    assert found["MRR", ""].difference == pytest.approx(0.5 / 4)
    assert found["P@1", "P"].difference == 25


def test_reading_times_compare_what_the_regressions_gain() -> None:
    """The difference of the two gains; its error by the delta method over sentences, written out."""
    a, b = rows_for("reading_times", 1), rows_for("reading_times", 2)
    found = differences("reading_times", a, b)["delta log-likelihood", "GPT"]
    each = [gained(*design(rows, "GPT", 1), folds=4) for rows in (a, b)]
    assert (found.a, found.b) == pytest.approx([1000 * one.delta_log_likelihood for one in each])
    sentence = design(a, "GPT", 1).sentence
    words = np.bincount(sentence)
    d = np.bincount(sentence, each[1].log_likelihood - each[0].log_likelihood)
    assert found.n == len(sentence)
    used, ratio = words > 0, d.sum() / words.sum()
    assert found.difference == pytest.approx(1000 * ratio)
    se = 1000 * math.sqrt(((d - ratio * words)[used] ** 2).sum()) / words.sum()
    assert (found.low, found.high) == pytest.approx(
        (found.difference - 1.96 * se, found.difference + 1.96 * se), abs=0.35 * se
    )


def test_babylm_reading_compares_what_surprisal_explains() -> None:
    a = [row for row in rows_for("babylm_reading", 1) if "RTgopast" in row]
    noise = np.random.default_rng(0).gamma(2.0, size=len(a)).tolist()
    b = [{**row, "pred": value} for row, value in zip(a, noise, strict=True)]
    found = differences("babylm_reading", a, b)["eye tracking", "RTfirstfix"]
    y, base = np.array([row["RTfirstfix"] for row in a]), np.array([[row[name] for name in PLAIN] for row in a])
    values = [explained(y, base, np.array([row["pred"] for row in rows])) for rows in (a, b)]
    assert (found.a, found.b) == pytest.approx(values)
    assert found.difference == pytest.approx(values[1] - values[0])
    assert found.low < found.difference < found.high < 0
    assert found.p < 0.01


def test_variants_compare_the_mean_over_assays() -> None:
    a, b = rows_for("variants", 1), rows_for("variants", 2)
    found = differences("variants", a, b)["Spearman", ""]
    table = {
        name: np.array([[x["measured"], x["effect"], y["effect"]] for x, y in zip(a, b, strict=True)
                        if x["group"] == name])
        for name in ("large", "other", "small")
    }  # fmt: skip

    def difference(tables: Iterable[Any]) -> float:
        return float(np.mean([stats.spearmanr(one[:, 0], one[:, 2])[0] - stats.spearmanr(one[:, 0], one[:, 1])[0]
                              for one in tables]))  # fmt: skip

    assert found.difference == pytest.approx(difference(table.values()))
    draw = np.random.default_rng(9)
    draws = [difference(one[draw.integers(len(one), size=len(one))] for one in table.values()) for _ in range(150)]
    assert (found.low, found.high) == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.09)
    better = [{**row, "effect": row["measured"]} for row in a]
    assert differences("variants", a, better)["Spearman", ""].p < 0.01


def test_correction_draws_as_often_as_it_states() -> None:
    rows = rows_for("correction", 1)
    [part] = evaluation("correction", rows).parts
    for metric, value in zip(part.suite.metrics(rows), part.figures, strict=True):
        if isinstance(metric.estimator, SumStatistic):
            used = metric.fitted([row for row in rows if metric.uses(row)])
            assert len(metric.estimator.draws(metric.estimator.observations(used))) == 1000
            assert "1,000 draws" in value.error
            assert value.low <= value.value <= value.high  # also of several references


def test_stereoset_resamples_terms() -> None:
    """Ten copies of every item change nothing."""
    a, b = rows_for("stereoset", 1), rows_for("stereoset", 2)
    copies = [[{**row, "id": f"{row['id']}/{k}"} for row in rows for k in range(10)] for rows in (a, b)]
    one, many = differences("stereoset", a, b)["icat", ""], differences("stereoset", *copies)["icat", ""]
    assert (many.low, many.high, many.p) == pytest.approx((one.low, one.high, one.p))
    assert one.n * 10 == many.n


# ---- what cannot be compared


def test_runs_without_a_common_metric_are_rejected() -> None:
    rows = rows_for("perplexity", 1)
    other = [{**row, "normalised": "token sequences of this length"} for row in rows]
    with pytest.raises(BesagError, match=r"no metric in common: A has pseudo-perplexity per token.*; B perplexity per"):
        compare([evaluation("perplexity", rows)], [evaluation("perplexity", other)])


def test_runs_on_different_data_are_rejected() -> None:
    rows = rows_for("blimp", 1)
    other = [{**row, "group": "another"} if row["id"] == "7" else row for row in rows]
    with pytest.raises(BesagError, match="item '7' belongs to 'paradigm2' in A and to 'another' in B"):
        compare([evaluation("blimp", rows)], [evaluation("blimp", other)])


def test_one_item_gives_a_difference_and_no_test() -> None:
    rows = [{"id": "0", "group": "x", "status": "ok", "rating": 1.0, "lp": 1.0, "mean_lp": 1.0, "pen_lp": 1.0}]
    assert "nothing to compare" in of(evaluation("acceptability", rows), evaluation("acceptability", rows)).verdict
