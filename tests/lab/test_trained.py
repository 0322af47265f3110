"""What a network learnt of a system: distances by plain loops, on answers that are made up, and one that is trained."""

import os
import sys
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from besag import lab
from besag.errors import BesagError
from besag.lab import trained
from besag.lab.trained import FIRST, MASK, Learnt, train_on


class MadeUp:
    """Answers with the truth, bent: q ∝ p^power; one power for all places is still one joint, several are none."""

    def __init__(self, system, power=1.0):
        self.system, self.power = system, np.broadcast_to(power, system.places)

    def one(self, context, place):
        agrees = self.system.law.copy()
        for at, symbol in enumerate(context):
            if symbol >= 0:
                keep = np.zeros(agrees.shape[at])
                keep[symbol] = 1
                agrees = np.moveaxis(np.moveaxis(agrees, at, -1) * keep, -1, at)
        truth = agrees.sum(tuple(other for other in range(agrees.ndim) if other != place))
        bent = np.maximum(truth, 1e-12) ** self.power[place]
        return bent / bent.sum()

    def answer(self, questions, reduce):
        ids = questions.ids.numpy()[:, 1:-1]
        contexts = np.where(ids == MASK, -1, ids - FIRST)
        rows = [self.one(context, place - 1) for context, place in zip(contexts, questions.place.tolist(), strict=True)]
        return {"outcomes": np.log(np.array(rows))}


def test_answers_that_are_the_truth_are_at_no_distance():
    for system in (lab.ising(lab.chain(4), 0.7), lab.markov_chain(3, [[0.6, 0.4], [0.1, 0.9]])):
        learnt = Learnt(system, MadeUp(system))
        assert np.allclose(learnt.by_size, 0, atol=1e-12)
        assert np.allclose(learnt.settled(), system.law)
        assert all(abs(value) < 1e-10 for value in learnt.measures.values())


def test_a_grammar_has_contexts_that_never_occur():
    system = lab.grammar({"S": {"a b": 0.5, "b a": 0.25, "b b": 0.25}}, places=2)
    learnt = Learnt(system, MadeUp(system))
    assert np.allclose(learnt.by_size, 0, atol=1e-9)
    assert learnt.measures["Gibbs law"] < 1e-9


def test_distances_are_their_definitions():
    system = lab.random_table((3, 3, 3), 1.0, seed=4)
    engine = MadeUp(system, (0.3, 1.0, 1.5))
    learnt = Learnt(system, engine)
    truth = MadeUp(system)
    for size in (1, 2, 3):
        sets = list(combinations(range(3), size))
        total = 0.0
        for hidden in sets:
            for state in np.ndindex(3, 3, 3):
                context = [-1 if place in hidden else symbol for place, symbol in enumerate(state)]
                for place in hidden:
                    p, q = truth.one(context, place), engine.one(context, place)
                    total += system.law[state] * (p * np.log(p / q)).sum() / size / len(sets)
        assert learnt.by_size[size - 1] == pytest.approx(total)
    for place, found in enumerate(learnt.single_sites):
        for state in np.ndindex(3, 3, 3):
            context = [-1 if at == place else symbol for at, symbol in enumerate(state)]
            assert found[state] == pytest.approx(engine.one(context, place)[state[place]])
    assert learnt.measures["order gap"] > 1e-3
    assert Learnt(system, MadeUp(system, 0.7)).measures["order gap"] < 1e-10
    swept = learnt.settled()
    assert np.allclose(learnt.settled(sweeps=201), swept, atol=1e-6)


def test_runs_come_back_in_order_whoever_does_them(monkeypatch):
    monkeypatch.setattr(trained, "train_on", lambda *run: SimpleNamespace(measures={"run": sum(run)}))
    runs = [(number, 100) for number in range(9)]
    for count in (1, 3):
        monkeypatch.setattr(trained, "cores", lambda count=count: count)
        assert trained.measured(runs) == [{"run": 100 + number} for number in range(9)]

    def die(*run):
        os._exit(9)

    monkeypatch.setattr(trained, "train_on", die)
    if sys.platform == "linux":
        with pytest.raises(BesagError, match="a process that trained died"):
            trained.measured(runs)


@pytest.mark.slow
def test_networks_that_are_trained_at_once_are_those_trained_one_after_the_other(monkeypatch):
    spins = lab.ising(lab.chain(3), 1.0)
    runs = [(spins, {"rate": 0.5}, 100, 4, seed) for seed in range(2)]
    torch.ones(2000, 2000) @ torch.ones(2000, 2000)  # with all threads of this process, which a copy does not have
    monkeypatch.setattr(trained, "cores", lambda: 2)
    at_once = trained.measured(runs)
    monkeypatch.setattr(trained, "cores", lambda: 1)
    assert at_once == trained.measured(runs)
    assert at_once[0] != at_once[1]


@pytest.mark.slow
def test_a_network_learns_by_a_recipe():
    spins = lab.ising(lab.chain(3), 1.0)
    learnt = train_on(spins, {"rate": 0.5}, sequences=2000, steps=150)
    uniform = Learnt(spins, MadeUp(spins, power=0.0))
    assert learnt.by_size[0] < 0.5 * uniform.by_size[0]
    assert learnt.settled().sum() == pytest.approx(1, abs=1e-9)
    with pytest.raises(BesagError, match="the same at all places"):
        train_on(lab.random_table((2, 3)), {})
