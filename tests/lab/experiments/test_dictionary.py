"""The experiments of the sampling side: every claim holds, with known numbers, and figures draw."""

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot

from besag.lab.experiment import experiment

matplotlib.use("Agg")
QUICK = ("dictionary", "slow_both", "stutter", "clique_masks", "star_order", "passes", "closed_forms", "entropy")
SLOW = ("parallel_pass", "beyond")


@pytest.fixture(scope="module")
def found():
    known = {}

    def run(name):
        if name not in known:
            known[name] = experiment(name).run()
        return known[name]

    return run


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_every_claim_holds(name, found):
    finding = found(name)
    assert [said for said, holds in finding.claims.items() if not holds] == []
    assert finding.rows()
    for figure, drawing in finding.figures.items():
        axes = finding.plot(figure=figure)
        assert axes.get_xlabel()
        assert axes.get_ylabel() or axes.get_yticklabels()
        assert drawing.caption.endswith(".")
        pyplot.close(axes.figure)


def test_the_dictionary_has_the_constants_of_the_reference(found):
    rows = [row for row in found("dictionary").rows() if row["J"] == 1.0 and row["parameters"] == "couplings"]
    np.testing.assert_allclose([row["poincare"] for row in rows], [37.4, 11.0], rtol=2e-3)


def test_a_pass_stutters_a_quarter_of_the_time(found):
    said = {row["sentence"]: row for row in found("stutter").rows() if row["table"] == "what is said"}
    assert said["was walking walking"]["law"] == 0
    assert said["was walking walking"]["one pass: marginals"] == pytest.approx(0.25)


def test_two_passes_are_enough_centre_first(found):
    by_passes = found("star_order").arrays
    assert by_passes["by passes, centre first"][1] < 1e-12
    assert by_passes["by passes, left to right"][1] > 0.1


def test_the_same_seed_gives_the_same_numbers():
    one, other = (experiment("star_order", seed=3).run() for _ in range(2))
    assert one.to_dict() == other.to_dict()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dictionary", "slow_both", "stutter", "clique_masks", "star_order", "passes"])
def test_every_claim_holds_on_larger_systems_too(name):
    finding = experiment(name).run(full=True)
    assert [said for said, holds in finding.claims.items() if not holds] == []
    assert finding.command.endswith("--full")
