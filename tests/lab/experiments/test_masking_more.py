"""The experiments of the training side: every claim holds, with the numbers of the reference, and figures draw."""

import matplotlib
import matplotlib.pyplot as plt
import pytest

from besag.lab.experiment import experiment

matplotlib.use("Agg")
QUICK = {
    "masking_more": {},
    "efficiency_curves": {"places": 4},
    "simulated_estimators": {"repeats": 20},
    "best_masks": {},
    "finite_sample": {},
    "looking_masks": {},
}


@pytest.fixture(scope="module")
def found():
    known = {}

    def run(name):
        if name not in known:
            known[name] = experiment(name, **QUICK[name]).run()
        return known[name]

    return run


@pytest.mark.parametrize("name", QUICK)
def test_every_claim_holds(name, found):
    finding = found(name)
    assert [said for said, holds in finding.claims.items() if not holds] == []
    for figure in finding.figures:
        axes = finding.plot(figure=figure)
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        plt.close(axes.figure)


def test_both_losses_stand_side_by_side(found):
    rows = next(iter(found("masking_more").tables.values()))
    shown = {(row["J"], row["k"]): (row["block: tr(IΓ)/d"], row["token: tr(IΓ)/d"]) for row in rows}
    assert shown[0.3, 2] == pytest.approx((1.23, 1.54), abs=5e-3)
    assert shown[1.0, 3] == pytest.approx((1.00, 1.77), abs=5e-3)
    assert shown[0.3, 4][1] == "singular"
