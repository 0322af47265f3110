"""Joints of noisy conditionals: what the experiment counts, and who is called the nearest."""

import numpy as np
import pytest

from besag.errors import BesagError
from besag.lab.experiment import experiment
from besag.lab.experiments import joints_under_noise
from besag.lab.experiments.joints_under_noise import DEPENDENCE, NOISE, PAIRS, nearest


def test_the_nearest_is_named_with_those_that_cannot_be_told_from_it():
    generator = np.random.default_rng(0)
    laws = generator.normal(size=(50, 1))  # what all share does not count
    found = laws + np.array([0.0, 0.01, 1.0]) + 0.02 * generator.normal(size=(50, 3))
    assert nearest(("a", "b", "c"), found) in (["a", "b"], ["a"])


def test_few_laws_show_what_does_not_depend_on_chance(monkeypatch):
    monkeypatch.setattr(joints_under_noise, "SHAPES", {2: (3, 3), 3: (2, 2, 2), 4: (2, 2, 2, 2)})
    found = experiment("joints_under_noise", laws=2).run()
    said = list(found.claims.items())
    assert all(holds for _, holds in said[:3]), said  # exact without noise, the product not, and the square of noise
    assert found.arrays["pairs"].shape == (2, len(DEPENDENCE), len(NOISE), 2, len(PAIRS))
    two, counted, more = found.tables.values()
    assert len(two) == len(counted) == len(DEPENDENCE) * (len(NOISE) - 1)
    assert {row["places"] for row in more} == {2, 3, 4}
    assert two[0]["ag"] == pytest.approx(found.arrays["pairs"][0, 0, 1, :, PAIRS.index("ag")].mean())
    pytest.importorskip("matplotlib")
    for figure in found.figures:
        assert "errors" in found.svg(figure) or "places" in found.svg(figure)


def test_one_law_has_no_error():
    with pytest.raises(BesagError, match="laws=1: give a whole number, at least 2"):
        experiment("joints_under_noise", laws=1)
