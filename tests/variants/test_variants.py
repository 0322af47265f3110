"""The result: rows, facts, pictures. What the numbers are is tested with the effects."""

import matplotlib
import numpy as np
import pytest

import besag
from besag.errors import BesagError
from besag.variants.mutations import RESIDUES

matplotlib.use("Agg")
WEIGHTS = [[1 + 3 * (a == b) for a in RESIDUES] for b in RESIDUES]  # two places that like to be equal


@pytest.fixture(scope="module")
def lm():
    return besag.load(besag.Table(WEIGHTS, symbols=list(RESIDUES)))


def test_by_hand(lm):
    """Equal residues weigh 4, others 1: one mutation costs log 4, the second gives it back."""
    found = lm.variants("AA", ["A11G", "A11G:A12G", "A11G:A12C"], "ag", offset=10)
    np.testing.assert_allclose(found.effect, [-np.log(4), 0, -np.log(4)], atol=1e-4)
    np.testing.assert_allclose(found.epistasis[1:], [2 * np.log(4), np.log(4)], atol=1e-4)
    np.testing.assert_allclose(found.additive[1:], [-2 * np.log(4)] * 2, atol=1e-4)


def test_rows(lm):
    found = lm.variants("AA", ["A1G", "A1G:A2G"], "ag")
    frame = found.to_pandas()
    assert list(frame.columns) == ["variant", "effect", "additive", "epistasis", "status"]
    assert list(frame["variant"]) == ["A1G", "A1G:A2G"]
    assert frame.attrs["method"] == found.method == "ag"
    assert found.to_dict()["variants"][0]["epistasis"] is None
    assert "epistasis of 1 double mutant" in repr(found)
    assert "epistasis" not in repr(lm.variants("AA", ["A1G"]))
    many = lm.variants("AA", [f"A1{a}:A2{b}" for a in RESIDUES for b in RESIDUES[:2]])
    assert "… and 20 more" in repr(many)


def test_pictures(lm):
    doubles = lm.variants("AA", ["A1G:A2G", "A1G:A2C"], "ag")
    [image] = doubles.plot().images
    np.testing.assert_allclose(image.get_array()[0, 1], 2 * np.log(4), atol=1e-4)
    [image] = lm.variants("AA", ["A1G", "A2C"]).plot().images
    assert image.get_array().shape == (20, 2)
    with pytest.raises(BesagError, match="nothing to draw"):
        lm.variants("AA", ["A1G:A2G"]).plot()


def test_what_is_no_list_of_variants(lm):
    with pytest.raises(BesagError, match="mutations='A1G': give a list"):
        lm.variants("AA", "A1G")
    with pytest.raises(BesagError, match="no variants to score"):
        lm.variants("AA", [])
