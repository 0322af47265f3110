"""Tables, differences, data and the picture of a study."""

import math

import numpy as np
import pytest
from tests.laws import Arbitrary
from tests.study.example_rows import joint, many, row

from besag.engine import Engine
from besag.errors import BesagError
from besag.results.status import Status
from besag.statistics import holm, intervals, sign_flips
from besag.study.pairs import PairRow
from besag.study.plot import _bins
from besag.study.report import Report


@pytest.fixture(scope="module")
def report() -> Report:
    return Report((*many(), PairRow(61, "random", Status.SHORT)), {"model": "tiny", "seed": 0})


def line(report: Report, construction: str, pairs: str = "random") -> dict:
    return next(row for row in report.table() if (row["pairs"], row["construction"]) == (pairs, construction))


def test_perplexities_are_exp_of_means_over_pairs(report):
    nll = np.array([one.joints["ag"]["pair_nll"] for one in report.measured])
    found = line(report, "ag")
    assert found["pair_ppl"] == pytest.approx(math.exp(nll.mean()))
    [(value, low, high)] = intervals(nll, exponential=True)
    assert (found["pair_ppl"], found["pair_ppl_low"], found["pair_ppl_high"]) == pytest.approx((value, low, high))
    assert found["all_forward"] == pytest.approx(0.3)
    assert (found["n"], found["iterations"], found["unfinished"]) == (60, 20, 0)


def test_the_model_itself_has_conditionals_and_no_joint(report):
    own = line(report, "model's own")
    assert own["unary_ppl"] == pytest.approx(math.exp(0.9))
    assert math.isnan(own["pair_ppl"])
    assert own["incompatibility"] == pytest.approx(2.0)
    assert math.isnan(line(report, "ag")["incompatibility"])


def test_ranks_and_their_harsh_form():
    rows = (
        row(1, mlm=joint(1.0, rank=1)),
        row(2, mlm=joint(1.0, rank=4)),
        row(3, mlm=joint(1.0, rank=8), forced=(False, True)),
        row(4, mlm=joint(1.0, rank=11)),
    )
    found = line(Report(rows), "mlm")
    assert found["reciprocal_rank"] == pytest.approx((1 + 1 / 4 + 1 / 8 + 1 / 11) / 4)
    assert [found[f"recall_at_{k}"] for k in (1, 5, 10)] == [0.25, 0.5, 0.75]
    assert found["harsh_reciprocal_rank"] == pytest.approx((1 + 1 / 4 + 1 / 11) / 4)
    assert [found[f"harsh_recall_at_{k}"] for k in (1, 5, 10)] == [0.25, 0.5, 0.5]


def test_differences_are_paired_and_corrected(report):
    found = {(one["metric"], one["construction"], one["against"]): one for one in report.differences()}
    rows = report.measured
    change = np.array([one.joints["ag"]["pair_nll"] - one.joints["mlm"]["pair_nll"] for one in rows])
    ag = found["P-NLL", "ag", "mlm"]
    assert ag["difference"] == pytest.approx(change.mean())
    assert ag["low"] < ag["difference"] < ag["high"] < 0
    p = [found["P-NLL", name, "mlm"]["p"] for name in ("ag", "hcb")]
    assert p[0] == pytest.approx(sign_flips(change)[0])
    assert [found["P-NLL", name, "mlm"]["p_holm"] for name in ("ag", "hcb")] == pytest.approx(holm(p))
    assert p[0] < 0.001 < p[1]
    assert ("P-NLL", "hcb", "ag") in found  # the best
    assert ("U-NLL", "mlm", "model's own") in found
    assert ("P-NLL", "ag", "ag") not in found


def test_pairs_of_one_text_are_not_taken_for_independent():
    """Ten copies of every pair tell nothing new: intervals and p-values stay as they are."""
    once, ten = many(20), [one for one in many(20) for _ in range(10)]
    single, copied = (Report(tuple(rows)) for rows in (once, ten))
    a, b = line(single, "ag"), line(copied, "ag")
    assert (b["pair_ppl_low"], b["pair_ppl_high"]) == pytest.approx((a["pair_ppl_low"], a["pair_ppl_high"]))
    assert [one["p"] for one in copied.differences()] == pytest.approx([one["p"] for one in single.differences()])


def test_every_pair_and_construction_is_a_record(report):
    records = list(report.records())
    assert len(records) == 60 * 4 + 1
    assert records[-1] == {"text": 61, "pairs": "random", "length": 0, "status": "short"}
    frame = report.to_pandas()
    assert frame.attrs["model"] == "tiny"
    mean = frame[frame.construction == "ag"].pair_nll.mean()
    assert math.exp(mean) == pytest.approx(line(report, "ag")["pair_ppl"])
    assert frame[frame.construction == "model's own"].pair_nll.isna().all()


def test_it_tells_itself(report):
    said = repr(report)
    assert "random (60 pairs)" in said
    assert "1 short" in said
    assert "P-NLL from mlm" in said
    assert "incompatibility of the conditionals (Arnold-Press): 2 [2, 2]" in said


def test_one_text_has_no_interval_and_says_so_by_leaving_it_out():
    said = repr(Report((row(1),)))
    assert "nan" not in said
    assert math.isnan(line(Report((row(1),)), "ag")["pair_ppl_low"])


def test_infinite_numbers_stay_infinite():
    report = Report((row(1, mlm=joint(math.inf), ag=joint(1.0)), row(2, mlm=joint(1.0), ag=joint(1.0))))
    assert line(report, "mlm")["pair_ppl"] == math.inf
    change = next(one for one in report.differences() if one["against"] == "mlm" and one["construction"] == "ag")
    assert change["difference"] == -math.inf
    assert math.isnan(change["p"])
    assert "∞" in repr(report)


def test_a_study_without_pairs_is_refused():
    with pytest.raises(BesagError, match=r"none of the 2 pairs .* 2 'short'"):
        Report((PairRow(1, "random", Status.SHORT), PairRow(2, "random", Status.SHORT)))


def test_distances_are_pooled_where_there_are_many():
    assert _bins([1, 3, 9]) == [(1, 1), (3, 3), (9, 9)]
    assert _bins([*range(1, 13), 33]) == [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (33, 64)]


def test_the_picture_shows_the_means_and_the_gains(report):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure = report.plot()
    figure.canvas.draw()
    above, below = figure.axes
    lines = {one.get_label(): one.get_ydata() for one in above.lines}
    near = [one for one in report.measured if one.distance == 1]
    assert lines["ag"][0] == pytest.approx(np.mean([one.joints["ag"]["pair_nll"] for one in near]))
    gains = {one.get_label(): one.get_ydata() for one in below.lines}
    assert gains["ag"][0] == pytest.approx(lines["mlm"][0] - lines["ag"][0])
    assert [label.get_text() for label in figure.legends[0].get_texts()] == ["mlm", "ag", "hcb"]
    pyplot.close("all")


def test_the_picture_without_the_baseline_has_one_panel():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    assert len(Report((row(1, ag=joint(1.0)), row(2, ag=joint(2.0)))).plot().axes) == 1
    pyplot.close("all")


def test_from_texts_to_a_report():
    report = Report.of(Engine(Arbitrary(4)), ["s0 s1 s2", "s1 s3"], constructions=["mlm", "ag"], seed=3)
    assert report.kinds == ["random", "contiguous"]
    assert (report.settings["model"], report.settings["seed"], report.settings["candidates"]) == ("arbitrary", 3, "all")
    assert len(report.measured) == 4
