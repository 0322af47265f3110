"""The study's rows: the numbers of each pair alone, whatever runs beside it, and the same after an interruption."""

import json
import math

import pytest
from tests.laws import Arbitrary

import besag
from besag.engine import Engine
from besag.errors import BesagError
from besag.joints import asking, construction, metrics, passes
from besag.places.places import find
from besag.results.status import Status
from besag.study.pairs import PairRow, study

TEXTS = ["s0 s1 s2 s3", "s3", "s2 s2 s0", "s1 [MASK] s0", "", "s4 s1 s0 s2 s3"]
KINDS = {"pairs": ["random", "contiguous", "distance"], "distances": [2]}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(Arbitrary(5))


@pytest.fixture(scope="module")
def rows(engine: Engine) -> list[PairRow]:
    return list(study(engine, TEXTS, **KINDS))


def test_every_text_has_a_row_of_each_kind(rows):
    assert [row.text for row in rows] == [text for text in range(1, 7) for _ in range(3)]
    assert [row.pairs for row in rows[:3]] == ["random", "contiguous", "distance 2"]
    assert [rows[3 * text].status for text in range(6)] == ["ok", "short", "ok", "mask", "empty", "ok"]
    skipped = [row for row in rows if row.status != "ok"]
    assert all(row.joints == {} and row.a == row.b == -1 for row in skipped)
    assert all(row.distance == 2 for row in rows if row.pairs == "distance 2" and row.status == "ok")


def test_a_row_holds_what_each_construction_says_of_the_pair(engine, rows):
    row = rows[-1]
    places = find(engine.conditionals.vocabulary, TEXTS[-1], (row.a, row.b))
    assert row.tokens == tuple(TEXTS[-1].split()[at] for at in (row.a, row.b))
    unaries = asking.unaries(engine, places)
    assert row.incompatibility == pytest.approx(passes.incompatibility(unaries))
    assert row.own_unary_nll == pytest.approx(metrics.own_unary_nll(unaries))
    options = {"order a→b": ("order", {"direction": "ab"}), "ag marginal": ("ag", {"weights": "marginal"})}
    assert list(row.joints) == [
        "mlm", "order", "order a→b", "order b→a", "mrf", "mrf_local", "hcb", "loglinear", "ag", "ag marginal",
        "stationary",
    ]  # fmt: skip
    for label in ("mlm", "order a→b", "hcb", "ag", "ag marginal", "stationary"):
        name, chosen = options.get(label, (label, {}))
        built = construction(name, **chosen).build(unaries)
        for metric, value in metrics.measure(unaries, built)._asdict().items():
            assert row.joints[label][metric] == pytest.approx(value, abs=1e-9)
        assert row.joints[label]["status"] == built.status == "ok"
    assert row.joints["ag"]["iterations"] >= 1
    assert row.joints["ag"]["residual"] <= 1e-6


def test_on_an_exact_law_the_exact_constructions_agree_with_the_law():
    law = besag.Table.random(4, 4, seed=2, concentration=1.0)
    for row in study(Engine(law), ["s0 s1 s2 s3"], pairs=["random"], per_text=4, constructions=["order", "hcb", "ag"]):
        text = [0, 1, 2, 3]
        here = tuple(slice(None) if place in (row.a, row.b) else text[place] for place in range(4))
        joint = law.log_probs[here].exp()
        own = math.log(float(law.log_probs[tuple(text)].exp() / joint.sum()))
        for label in ("order", "hcb", "ag"):
            assert row.joints[label]["pair_nll"] == pytest.approx(-own / 2, abs=1e-5)
        assert row.incompatibility == pytest.approx(0, abs=1e-18)


@pytest.mark.parametrize("candidates", ["all", 3])
def test_a_study_that_was_cut_off_goes_on_with_the_same_rows(engine, candidates):
    options = {"candidates": candidates, "constructions": ["mlm", "ag"]}
    whole = list(study(engine, TEXTS, **options))
    rest = list(study(engine, iter(TEXTS), skip=5, **options))
    for one, other in zip(rest, whole[5:], strict=True):
        assert where(one) == where(other)
        for label in one.joints:  # to rounding, which depends on where in memory a number stands
            assert one.joints[label]["pair_nll"] == pytest.approx(other.joints[label]["pair_nll"], abs=1e-5)


def where(row: PairRow) -> tuple:
    return row.text, row.pairs, row.status, row.a, row.b, row.tokens, row.forced


def test_pooled_candidate_sets_give_the_numbers_of_each_pair_alone(engine):
    for row in study(engine, TEXTS, candidates=3, constructions=["ag"], pairs=["contiguous"]):
        if row.status == "ok":
            places = find(engine.conditionals.vocabulary, TEXTS[row.text - 1], (row.a, row.b))
            unaries = asking.unaries(engine, places, candidates=3)
            alone = metrics.measure(unaries, construction("ag").build(unaries))
            assert row.joints["ag"]["pair_nll"] == pytest.approx(alone.pair_nll, abs=1e-9)
            assert row.lost == pytest.approx(unaries.lost, abs=1e-12)
            assert row.forced == unaries.forced


def test_a_row_survives_json(rows):
    for row in (rows[0], rows[3]):
        again = PairRow.from_dict(json.loads(json.dumps(row.to_dict(), allow_nan=False)))
        assert again.to_dict() == row.to_dict()
        assert again.joints == row.joints
        assert again.tokens == row.tokens
    infinite = PairRow(1, "random", joints={"mlm": {"pair_nll": math.inf, "status": Status.OK}})
    again = PairRow.from_dict(json.loads(json.dumps(infinite.to_dict(), allow_nan=False)))
    assert again.joints == infinite.joints
    assert math.isnan(again.incompatibility)


def test_a_conditional_of_zero_leaves_the_score_out_and_the_rest_in():
    law = besag.Table([[0.3, 0.1, 0.1], [0.1, 0.2, 0.0], [0.1, 0.05, 0.05]])
    [row] = study(Engine(law), ["s0 s1"], pairs=["contiguous"], constructions=["order"])
    assert math.isnan(row.incompatibility)
    assert row.joints["order"]["pair_nll"] == pytest.approx(-math.log(0.1) / 2)


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("per_txt", 1, "'per_txt'.*Did you mean 'per_text'"), ("unknown", 1, "'unknown'"), ("per_text", "a", "'a'"),
        ("distances", "a", "distances='a'"), ("outcomes", "texts", "outcomes='texts'"),
    ],
)  # fmt: skip
def test_an_argument_that_there_is_not_is_named(option, value, told):
    with pytest.raises(BesagError, match=told):
        besag.load(besag.Table.random(3, 2)).pairs(["s0 s1"], **{option: value})


def test_wrong_settings_are_refused_before_anything_runs(engine):
    with pytest.raises(BesagError, match="per_text=0"):
        study(engine, TEXTS, per_text=0)
    with pytest.raises(BesagError, match="candidates=1"):
        study(engine, TEXTS, candidates=1)
    with pytest.raises(BesagError, match="Did you mean 'random'"):
        study(engine, TEXTS, pairs=["randon"])
    with pytest.raises(BesagError, match="Did you mean 'hcb'"):
        study(engine, TEXTS, constructions=["hbc"])
