"""The experiments on trained networks, with made-up ones: numbers, claims and figures go where they should.

That networks behave as claimed is seen by `besag lab run`, which trains dozens of them.
"""

from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from besag.errors import BesagError
from besag.lab import trained
from besag.lab.experiment import experiment

matplotlib.use("Agg")


def pretend(worse):
    """Distances by what the masking says, and a little by seed."""

    def train_on(system, masking, sequences, steps, seed):
        bend = worse(masking)
        noise = 1 + 0.01 * np.random.default_rng(seed).normal()
        names = ("one hidden", "any number hidden", "Gibbs law", "order gap")
        return SimpleNamespace(measures=dict.fromkeys(names, noise * bend))

    return train_on


def test_rates_are_compared_seed_by_seed(monkeypatch):
    distance = {1 / 6: 0.1, 1 / 3: 0.06, 1 / 2: 0.05, 5 / 6: 0.3}
    monkeypatch.setattr(trained, "train_on", pretend(lambda masking: distance[masking["rate"]]))
    found = experiment("trained_rates").run()
    assert found.holds
    assert len(found.tables) == 2
    row = next(row for row in found.rows() if row["table"].startswith("against") and row["hidden"] == "1/2")
    assert row["one hidden"] == "×0.50 (0.50 to 0.50)"
    for figure in found.figures:
        plt.close(found.plot(figure=figure).figure)
    monkeypatch.setattr(trained, "train_on", pretend(lambda masking: 1.1 - masking["rate"]))
    assert not experiment("trained_rates").run().holds
    with pytest.raises(BesagError, match="seeds"):
        experiment("trained_rates", seeds=1)


def test_laws_are_held_against_uniform_masks(monkeypatch):
    distance = {"uniform": 0.1, "spaced": 0.12, "span": 0.2, "informask": 0.11}
    monkeypatch.setattr(trained, "train_on", pretend(lambda masking: distance[masking["law"]]))
    found = experiment("trained_laws").run()
    assert found.holds
    assert "6 spins, span: ×2.00 (2.00 to 2.00)" in found.shown
    plt.close(found.plot().figure)
    distance["span"] = 0.01
    assert not experiment("trained_laws").run().holds


def test_dependence_is_held_against_the_true_chain(monkeypatch):
    def learnt(slower):
        def train_on(system, masking, sequences, steps, seed):
            coupling = float(system.couplings[0])
            noise = 1 + 0.01 * np.random.default_rng(seed).normal()
            far = {"one hidden": 0.01, "order gap": 0.01, "Gibbs law": 0.1 * coupling, "relaxation": slower(coupling)}
            return SimpleNamespace(measures={name: noise * value for name, value in far.items()})

        return train_on

    monkeypatch.setattr(trained, "train_on", learnt(lambda coupling: 8 * coupling))
    found = experiment("trained_dependence").run()
    assert found.holds
    [_, sweeps] = found.tables.values()
    assert [row["truth"] for row in sweeps] == sorted(row["truth"] for row in sweeps)
    assert sweeps[0]["300 sequences, 1/6 hidden"] == pytest.approx(1.6, rel=0.05)
    for figure in found.figures:
        plt.close(found.plot(figure=figure).figure)
    monkeypatch.setattr(trained, "train_on", learnt(lambda coupling: 5 - coupling))
    assert not experiment("trained_dependence").run().holds
