"""A finding as tables, arrays, figures and verdicts."""

import numpy as np
import pytest

from besag.errors import BesagError
from besag.lab.finding import Drawing, Finding, cell

ROWS = [{"kind": "a", "value": 0.123456}, {"kind": "b", "value": float("inf")}]


def finding(**more):
    figure = Drawing("one curve", lambda ax: ax.plot([0, 1], [1, 0]))
    return Finding("it falls", {"the curve falls": True}, {"numbers": ROWS}, figures={"curve": figure}, **more)


def test_a_finding_holds_if_all_its_claims_do():
    assert finding().holds
    refuted = Finding("it falls", {"so": True, "and so": False}, {"numbers": ROWS})
    assert not refuted.holds
    assert refuted.status == "refuted"
    assert "DOES NOT HOLD: and so" in refuted.facts


def test_rows_say_where_they_come_from():
    assert finding(name="falls").rows()[0] == {"experiment": "falls", "table": "numbers", **ROWS[0]}
    assert finding(arrays={"x": np.eye(2)}).to_dict()["arrays"]["x"] == [[1, 0], [0, 1]]


def test_words_stand_to_the_left_and_numbers_have_four_digits():
    assert repr(finding()).splitlines()[:3] == ["kind   value", "a     0.1235", "b          ∞"]
    assert [cell(value) for value in (-3, True, None, float("nan"), 1234567)] == ["−3", "yes", "–", "–", "1,234,567"]


def test_a_figure_is_drawn_into_given_axes_and_as_markup():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    _, ax = pyplot.subplots()
    assert finding().plot(ax) is ax
    assert len(ax.lines) == 1
    pyplot.close("all")
    svg = finding().svg()
    assert svg.startswith("<svg")
    assert "http" not in svg.replace("http://www.w3.org", "")
    assert svg == finding().svg("curve")


def test_a_wrong_name_is_answered_with_the_nearest():
    with pytest.raises(BesagError, match=r"no figure 'curv'\. Did you mean 'curve'"):
        finding().plot(figure="curv")
    with pytest.raises(BesagError, match="has no figure"):
        Finding("so", {}, {"numbers": ROWS}).svg()
