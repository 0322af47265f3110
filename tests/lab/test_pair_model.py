"""The answers of a model at two places, kept: the same as the model's, and the same for kernels as for matrices."""

import numpy as np
import pytest
import torch
from tests.laws import Arbitrary

import besag
from besag.conditionals.contract import Questions
from besag.errors import BesagError
from besag.lab.pair_model import PairModel


@pytest.fixture(scope="module")
def asked():
    return besag.load(Arbitrary(5), progress=False).joint(
        "s1 [MASK] [MASK]", candidates=[["s0", "s2", "s3"], ["s2", "s4"]]
    )


@pytest.fixture(scope="module")
def model(asked):
    return PairModel(asked)


def test_it_answers_as_the_model_does_over_the_candidates(asked, model):
    lm = besag.load(model, progress=False)
    assert model.shape == (3, 2)
    assert [model.vocabulary.token(at) for at in range(model.width)] == ["s0", "s2", "s3", "s4"]
    again = lm.joint("[MASK] [MASK]", candidates=[["s0", "s2", "s3"], ["s2", "s4"]])
    np.testing.assert_allclose(again.matrix(), asked.matrix(), atol=1e-9)
    np.testing.assert_allclose(again.unaries.hidden_a, asked.unaries.hidden_a)


def test_single_steps_redraw_one_place_by_a_coin(model):
    steps, (m, k) = model.single_steps(0.7), model.shape
    a, b, _, _ = model.tempered(0.7)
    np.testing.assert_allclose(steps.sum(1), 1)
    for x in range(m):
        for y in range(k):
            for u in range(m):
                for v in range(k):
                    expected = (a[u, y] * (v == y) + b[x, v] * (u == x)) / 2
                    assert steps[x * k + y, u * k + v] == pytest.approx(expected)


@pytest.mark.parametrize("temperature", [2.0, 1.0, 0.3])
@pytest.mark.parametrize("names", [(3, 2), (2, 4), (4, 4), (1, 3)])
def test_the_relaxation_time_is_that_of_the_whole_matrix(names, temperature):
    words = [[f"s{symbol}" for symbol in range(count)] for count in names]
    pair = PairModel(besag.load(Arbitrary(5), progress=False).joint("s4 [MASK] [MASK]", candidates=words))
    sizes = np.sort(np.abs(np.linalg.eigvals(pair.single_steps(temperature))))
    assert pair.relaxation(temperature) == pytest.approx(1 / (1 - sizes[-2]), rel=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_real_kernels_move_as_the_matrices_say(model, temperature):
    lm, (_, k), chains = besag.load(model, progress=False), model.shape, 4000
    for kernel, law in (
        ("gibbs", model.single_steps(temperature)[1 * k + 1]),
        ("block_gibbs", model.pair_law(temperature).ravel()),
    ):
        drawn = lm.sample("s2 s4", kernel, free="all", chains=chains, steps=1, temperature=temperature, seed=3)
        states = [model.tokens[0].index(x) * k + model.tokens[1].index(y) for x, y in drawn.tokens]
        counts = np.bincount(states, minlength=law.size) / chains
        np.testing.assert_allclose(counts, law, atol=4 * np.sqrt(0.25 / chains))


def test_what_it_was_not_asked_is_refused(model):
    with pytest.raises(BesagError, match="two places"):
        model.rows(Questions(torch.zeros(1, 3).long(), torch.tensor([0]), torch.tensor([0])))
    with pytest.raises(BesagError, match="no candidate there"):  # s4 may stand at b alone
        model.rows(Questions(torch.tensor([[3, 4]]), torch.tensor([0]), torch.tensor([1])))
    with pytest.raises(BesagError, match="temperature=0"):
        model.tempered(0)
