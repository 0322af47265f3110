"""Every construction on one pair, by every metric."""

import json
import math
from dataclasses import replace

import pytest
import torch
from tests.joints.example_pairs import casino, make
from tests.joints.tables import compatible

from besag.errors import BesagError
from besag.joints import CONSTRUCTIONS, construction, passes
from besag.joints.comparison import Comparison, each
from besag.joints.unaries import Unaries
from besag.results.status import Status


@pytest.fixture(scope="module")
def comparison():
    return make("mlm", 6, 5, seed=4).compare()


@pytest.fixture(scope="module")
def hidden():
    return make("mlm", 6, 5, seed=4, gold=False).compare()


def row(comparison, label):
    [found] = [row for row in comparison.rows if row["construction"] == label]
    return found


def test_all_constructions_are_there_in_their_order(comparison):
    labels = [row["construction"] for row in comparison.rows]
    assert labels == ["mlm", "order", "order a→b", "order b→a", "mrf", "mrf_local", "hcb", "loglinear", "ag",
                      "ag marginal", "stationary", "model's own"]  # fmt: skip
    assert [label for label in labels if " " not in label] == [*CONSTRUCTIONS]


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_a_row_is_what_the_joint_says_of_itself(comparison, name):
    joint = make(name, 6, 5, seed=4)
    found = row(comparison, name)
    log_q, log_u, log_v = joint.log_prob("s1", "s2"), *joint.marginals
    assert found["log_prob"] == pytest.approx(log_q, abs=1e-9)
    assert found["pair_nll"] == pytest.approx(-log_q / 2, abs=1e-9)
    assert found["pair_ppl"] == pytest.approx(math.exp(-log_q / 2), abs=1e-6)
    assert found["unary_nll"] == pytest.approx(-log_q + (log_u[1] + log_v[2]) / 2, abs=1e-9)
    assert found["unary_ppl"] == pytest.approx(math.exp(found["unary_nll"]))
    for metric in ("gold_forward", "gold_reverse", "gold_jsd", "all_forward", "all_reverse", "all_jsd",
                   "mutual_information", "rank"):  # fmt: skip
        assert found[metric] == pytest.approx(getattr(joint.metrics(), metric), abs=1e-9)
    assert found["top"] == " ".join(joint.top(1)[0].tokens)
    assert found["top_prob"] == pytest.approx(joint.top(1)[0].prob)
    assert found["iterations"] == joint.details.get("iterations")
    assert found["status"] == "ok"
    assert comparison[name].matrix() == pytest.approx(joint.matrix(), abs=1e-12)


def test_the_model_s_own_row_is_of_its_conditionals(comparison):
    unaries = comparison.joints[0].unaries
    own = row(comparison, "model's own")
    assert own["unary_nll"] == pytest.approx(-float(unaries.log_a[1, 2] + unaries.log_b[1, 2]) / 2)
    assert own["pair_nll"] is own["all_forward"] is own["top"] is None


def test_a_compatible_pair_is_no_contest():
    """Of one true joint the exact constructions agree with the model, and the compatibility is perfect."""
    joint = make("mlm", 5, 5)
    joint = replace(joint, unaries=replace(compatible(5, 5, 0)[0], gold=(1, 2)))
    comparison = joint.compare()
    assert comparison.incompatibility == pytest.approx(0, abs=1e-9)
    own = row(comparison, "model's own")["unary_nll"]
    for name, kind in CONSTRUCTIONS.items():
        if kind.exact:
            assert row(comparison, name)["all_forward"] < 1e-6
            assert row(comparison, name)["unary_nll"] == pytest.approx(own, abs=1e-3)
    assert row(comparison, "mrf_local")["all_forward"] > 1e-3


def test_incompatibility_is_that_of_the_conditionals(comparison):
    assert comparison.incompatibility == passes.incompatibility(comparison.joints[0].unaries) > 0
    assert f"(Arnold-Press) {comparison.incompatibility:.3g}" in repr(comparison)


def test_where_a_conditional_is_zero_compatibility_is_not_measured():
    joint = make("mlm", 2, 2, gold=False)
    zero = torch.tensor([[0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    comparison = replace(joint, unaries=Unaries.of(zero, zero)).compare(["mlm", "order"])
    assert math.isnan(comparison.incompatibility)
    assert "not measured: one of them is 0" in repr(comparison)
    assert comparison.to_dict()["incompatibility"] is None


def test_constructions_can_be_chosen_and_come_one_at_a_time():
    joint = make("mlm")
    chosen = joint.compare(["ag", construction("order", direction="ba")])
    assert [row["construction"] for row in chosen.rows] == ["ag", "order b→a", "model's own"]
    steps = each(joint, ["mlm", "no such"])
    assert next(steps).method == "mlm"
    with pytest.raises(BesagError, match="there is no joint construction 'no such'"):
        next(steps)
    with pytest.raises(BesagError, match="needs a construction: mlm, order"):
        Comparison.of(joint, [])
    with pytest.raises(BesagError, match=r"'ag marginl' was not compared.*Did you mean 'ag marginal'"):
        joint.compare()["ag marginl"]


def test_an_unfinished_construction_is_named(comparison):
    assert comparison.status == "ok"
    unfinished = make("mlm").compare(["mlm", construction("stationary", limit=1)])
    assert unfinished.status is Status.NOT_CONVERGED
    assert unfinished.facts[0].startswith("stationary limit=1 NOT CONVERGED: residual")
    assert "stationary limit=1 NOT CONVERGED: " in repr(unfinished)
    assert "stationary limit=1 NOT CONVERGED: " in unfinished._repr_html_()
    assert row(unfinished, "stationary limit=1")["status"] is Status.NOT_CONVERGED


def test_without_gold_its_columns_are_absent(hidden):
    assert "model's own" not in [row["construction"] for row in hidden.rows]
    for found in hidden.rows:
        assert not {"pair_nll", "unary_nll", "rank", "log_prob", "gold_forward"} & {*found}
        assert found["top"]
        assert found["mutual_information"] >= 0
    assert "P-PPL" not in repr(hidden)
    assert "likeliest" in repr(hidden)
    assert hidden.to_dict()["gold"] is None


def test_the_table_marks_the_best_of_each_column(comparison):
    title, body, facts = repr(comparison).split("\n\n")
    head, *lines = body.split("\n")
    assert title.startswith("'s0 s1 s2'")
    assert head.split() == ["P-PPL", "U-PPL", "G-KL", "A-KL", "A-JSD", "MI", "rank", "iterations"]
    assert len(lines) == 12
    best = min(row["all_forward"] for row in comparison.rows if row["all_forward"] is not None)
    assert f"{best:.3f}*" in body
    assert best == row(comparison, "ag")["all_forward"]  # it minimises the sum of just these
    assert facts.endswith("* the best of its column")


def test_html_is_a_table(comparison):
    page = comparison._repr_html_()
    assert page.count("<tr>") == 13
    assert page.count(">model&#x27;s own</td>") == 1
    assert "<b>tiny" not in replace(comparison.joints[0], model="<b>tiny").compare(["mlm"])._repr_html_()


def test_data_says_the_same(comparison, hidden):
    record = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert [row["construction"] for row in record["rows"]] == [row["construction"] for row in comparison.rows]
    assert record["positions"] == [1, 2]
    assert record["gold"] == ["s1", "s2"]
    assert record["rows"][-1]["pair_nll"] is None
    pytest.importorskip("pandas")
    frame = comparison.to_pandas()
    assert frame.loc["ag", "pair_nll"] == row(comparison, "ag")["pair_nll"]
    assert frame["rank"].dtype == "Int64"
    assert frame["rank"].isna().tolist() == [False] * 11 + [True]
    assert frame.attrs["incompatibility"] == comparison.incompatibility
    assert "rank" not in hidden.to_pandas()


def test_bars_are_the_likelihoods(comparison, hidden):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    ax = comparison.plot()
    widths = [bar.get_width() for bar in ax.patches]
    joints = comparison.rows[:-1]
    assert widths == [row["pair_nll"] for row in joints] + [row["unary_nll"] for row in joints]
    assert [label.get_text() for label in ax.get_yticklabels()] == [row["construction"] for row in joints]
    assert ax.lines[0].get_xdata()[0] == comparison.rows[-1]["unary_nll"]
    assert "the best of its column" not in "".join(ax.get_title(loc=side) for side in ("left", "center", "right"))
    _, mine = pyplot.subplots()
    assert hidden.plot(mine) is mine
    assert [bar.get_width() for bar in mine.patches[:11]] == [row["all_forward"] for row in hidden.rows]
    assert not mine.lines
    pyplot.close("all")


def test_words_are_compared_too():
    said = repr(casino().compare())
    assert "▁man (token 2)" in said
    assert "4 × 3 candidates, which hold 93.1% / 95.2% of the mass" in said
