"""Compatible conditionals score 0 and are kept by the exact constructions; others are told apart."""

import math

import pytest
import torch
from tests.laws import Arbitrary

import besag
from besag.diagnostics.compatibility import Compatibility, compatibility
from besag.engine import Engine
from besag.joints import construction, metrics
from besag.joints.unaries import Unaries
from besag.results.status import Status

EXACT = ("order", "hcb", "ag", "stationary")


def test_a_joint_is_compatible_and_kept():
    found = compatibility(
        Engine(besag.Table.random(4, 3, seed=1, concentration=1.0)), "s0 s2 s1", (0, 2), candidates="all"
    )
    assert found.incompatibility == pytest.approx(0, abs=1e-18)
    for label in EXACT:
        assert found.joints[label].all_forward == pytest.approx(0, abs=1e-9)
        assert found.joints[label].gold_jsd == pytest.approx(0, abs=1e-9)
    assert found.joints["mrf_local"].all_forward > 1e-3
    assert found.joints["mlm"].all_forward > 1e-3
    assert found.shape == (4, 4)


def test_incompatible_conditionals_by_hand():
    a, b = torch.rand(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    unaries = Unaries.of(a, b)
    ratio = unaries.log_a - unaries.log_b
    rows, columns = torch.logsumexp(ratio, 1), torch.logsumexp(ratio, 0)
    by_hand = (ratio + torch.logsumexp(rows, 0) - rows[:, None] - columns).square().mean()
    found = Compatibility.of(unaries, ["mlm", construction("ag", weights="marginal")])
    assert found.incompatibility == pytest.approx(float(by_hand))
    assert list(found.joints) == ["mlm", "ag marginal"]
    assert found.joints["mlm"] == pytest.approx(
        metrics.measure(unaries, construction("mlm").build(unaries)), nan_ok=True
    )
    assert found.nearest() == "ag marginal"
    assert not found.has_gold
    assert "G-KL" not in repr(found)


def test_what_did_not_finish_is_told():
    found = compatibility(Engine(Arbitrary(4)), "s0 s1 s2", (0, 1), constructions=[construction("stationary", limit=1)])
    assert found.status is Status.NOT_CONVERGED
    assert "NOT CONVERGED: residual" in found.facts[0]
    assert "NOT CONVERGED" in repr(found)
    assert found.to_dict()["status"] == found.status


def test_as_data():
    found = compatibility(Engine(Arbitrary(4)), "s0 s1 s2", (0, 1), candidates=3)
    frame = found.to_pandas()
    assert frame.loc["ag", "all_forward"] == found.joints["ag"].all_forward
    assert found.to_dict()["joints"]["ag"]["rank"] == found.joints["ag"].rank
    assert "G-KL" in repr(found)
    assert math.isfinite(found.own_unary_nll)
