"""Heads of one pass: the experiment on fewer couplings."""

import pytest

from besag.lab.experiment import experiment
from besag.lab.experiments import one_pass_heads


def test_every_claim_holds_on_a_few_couplings(monkeypatch):
    monkeypatch.setattr(one_pass_heads, "COUPLINGS", (0.6, 1.0))
    monkeypatch.setattr(one_pass_heads, "COMPONENTS", (1, 2, 4, 8))
    monkeypatch.setattr(one_pass_heads, "RING_COUPLINGS", (0.8,))
    monkeypatch.setattr(one_pass_heads, "DRAWN", (1, 2, 4))
    found = experiment("one_pass_heads", steps=150).run()
    assert found.holds, found.facts
    toy, fits, ring, trained = found.tables.values()
    assert [row["said twice of 10,000 draws"] > 0 for row in toy] == [True, False]
    assert len(fits) == 4
    assert ring[-1]["TV of its law from p"] < 1e-9
    assert [row["r"] for row in trained] == [1, 2, 4]
    assert all(row["KL of the network"] > row["KL of the best head"] - 1e-4 for row in trained)
    pytest.importorskip("matplotlib")
    for figure in found.figures:
        assert "<svg" in found.svg(figure)
