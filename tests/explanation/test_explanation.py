"""An explanation as it is told: the loudest first, a picture with or without the curve, and what is infinite."""

import numpy as np
import pytest

import besag
from besag.explanation import REMOVALS
from besag.references import BIBTEX

LM = besag.load(besag.Table.random(3, 4, seed=3, concentration=1.0), progress=False)
MASKED = "s0 s2 [MASK] s1"


def test_the_loudest_come_first():
    found = LM.explain(MASKED, "s1")
    values = [one.value for one in found.top(3)]
    assert values == sorted(found.values, reverse=True)
    assert [one.text for one in found.pieces()] == ["s0", "s2", "s1"]
    assert len(found.top(1)) == 1


def test_its_table_and_data_have_every_token():
    found = LM.explain(MASKED, "s1", curve=True, orders=2)
    frame = found.to_pandas()
    assert frame["value"].tolist() == found.values.tolist()
    assert frame.attrs["prediction"] == "p('s1' at token 2)"
    record = found.to_dict()
    assert record["curve"]["relative"] == pytest.approx(found.curve.relative)
    assert record["curve"]["orders"] == 2
    assert any(fact.startswith("faithfulness") for fact in found.facts)


def test_what_is_certain_only_with_a_token_is_infinitely_important():
    law = besag.Table([[0.5, 0.0], [0.25, 0.25]])
    found = besag.load(law, progress=False).explain("s0 [MASK]", "s0", method="mask")
    assert found.log_prob == 0.0
    assert found.values[0] > 30  # of float64: 1 − p is told apart from 0 down to 1e-16
    assert np.isfinite(found.values).all()


@pytest.mark.parametrize("curve", [False, True])
def test_a_picture_has_a_bar_for_each_token(curve):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    ax = LM.explain(MASKED, "s1", curve=curve, orders=2).plot()
    assert len(ax.patches) >= 3
    assert [label.get_text() for label in ax.get_yticklabels()] == ["s0", "s2", "s1"]
    assert len(ax.child_axes) == curve
    pyplot.close("all")


def test_every_way_has_its_paper():
    for kind in REMOVALS.values():
        assert kind.cite
        assert set(kind.cite) <= set(BIBTEX)
