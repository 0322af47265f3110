import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from besag import noise
from besag.errors import BesagError
from besag.reductions import Chunk, Energy, Entropy, Logit, Outcomes, Rank, Row, Sample, Target, Top


def chunk(seed: int, rows: int = 3, width: int = 7, asks: int = 5) -> Chunk:
    generator = np.random.default_rng(seed)
    logits = torch.from_numpy(generator.normal(scale=3, size=(rows, width)))
    return Chunk(
        logits=logits,
        normaliser=torch.logsumexp(logits, -1),
        which=torch.from_numpy(np.sort(generator.integers(0, rows, asks))),
        target=torch.from_numpy(generator.integers(0, width, asks)),
        uniform=torch.from_numpy(generator.random(asks)),
    )


@given(st.integers(0, 1000))
def test_each_against_its_definition(seed):
    c = chunk(seed)
    probabilities = torch.softmax(c.logits, -1)[c.which]  # (m, V)
    m = torch.arange(len(c.which))
    assert torch.allclose(Target()(c)["target"], probabilities[m, c.target].log())
    assert torch.equal(Logit()(c)["logit"], c.logits[c.which, c.target])
    assert torch.allclose(Row()(c)["row"], probabilities.log())
    assert torch.allclose(Energy()(c)["energy"], c.logits.exp().sum(-1).log()[c.which])
    assert torch.allclose(Entropy()(c)["entropy"], -(probabilities * probabilities.log()).sum(-1))
    top = Top(3)(c)
    assert torch.allclose(top["top_log_probs"], probabilities.log().sort(-1, descending=True).values[:, :3])
    assert torch.equal(probabilities.gather(1, top["top_ids"]).log(), probabilities.log().gather(1, top["top_ids"]))
    order = probabilities.argsort(-1, descending=True).tolist()
    assert Rank()(c)["rank"].tolist() == [order[i].index(int(c.target[i])) + 1 for i in m.tolist()]
    cumulative = probabilities.cumsum(-1)
    drawn = Sample()(c)["sample"]
    for i in m.tolist():
        assert drawn[i] == int((cumulative[i] <= c.uniform[i] * cumulative[i, -1]).sum())


def test_a_sample_follows_its_distribution_and_never_takes_an_impossible_token():
    logits = torch.tensor([[0.0, -torch.inf, 1.0, -1.0, -torch.inf]], dtype=torch.float64)
    draws = 20_000
    uniform = torch.from_numpy(noise.uniform(3, np.arange(draws)))
    uniform[0], uniform[1] = 1 - 2.0**-53, 2.0**-53
    c = Chunk(logits, torch.logsumexp(logits, -1), torch.zeros(draws, dtype=torch.long), None, uniform)
    counts = np.bincount(Sample()(c)["sample"].numpy(), minlength=5)
    expected = torch.softmax(logits, -1)[0].numpy() * draws
    assert counts[1] == counts[4] == 0
    possible = expected > 0
    assert ((counts - expected)[possible] ** 2 / expected[possible]).sum() < 13.8  # chi-square, 2 degrees: p ≈ 0.001


def test_entropy_of_a_row_with_zeros_is_not_nan():
    logits = torch.tensor([[0.0, -torch.inf, 0.0]])
    c = Chunk(logits, torch.logsumexp(logits, -1), torch.tensor([0]), None, None)
    assert Entropy()(c)["entropy"].item() == pytest.approx(np.log(2))


def test_missing_target_or_noise_is_said():
    c = chunk(0)._replace(target=None, uniform=None)
    with pytest.raises(BesagError, match="name none"):
        Target()(c)
    with pytest.raises(BesagError, match="needs noise"):
        Sample()(c)


@given(st.integers(0, 1000), st.integers(1, 4))
def test_several_targets_an_ask(seed, count):
    c = chunk(seed)
    targets = torch.from_numpy(np.random.default_rng(seed).integers(0, 7, (5, count)))
    many = c._replace(target=targets)
    for at in range(count):
        alone = c._replace(target=targets[:, at])
        assert torch.equal(Target()(many)["target"][:, at], Target()(alone)["target"])
        assert torch.equal(Logit()(many)["logit"][:, at], Logit()(alone)["logit"])
    with pytest.raises(BesagError, match=f"{count} are named here"):
        Rank()(many)


@given(st.integers(0, 1000), st.permutations(range(7)), st.integers(1, 7), st.booleans())
def test_outcomes_are_renormalised_and_say_what_they_hold(seed, tokens, count, one_ask_a_row):
    c = chunk(seed)
    if one_ask_a_row:
        c = c._replace(which=torch.arange(3))
    ids = torch.tensor(tokens[:count])
    before = c.logits.clone()
    kept = Outcomes(ids)(c)
    inside = c.logits.exp()[c.which][:, ids]  # (m, count)
    assert torch.allclose(kept["outcomes"], (inside / inside.sum(-1, keepdim=True)).log())
    assert torch.allclose(kept["outcome_energy"], inside.sum(-1).log())
    assert torch.allclose(kept["share"].exp(), torch.softmax(c.logits, -1)[c.which][:, ids].sum(-1))
    assert torch.equal(c.logits, before)  # others look at the same rows
    everything, row = Outcomes(None)(c), Row()(c)["row"]
    assert torch.equal(everything["outcomes"], row)
    assert torch.equal(everything["outcome_energy"], Energy()(c)["energy"])
    assert torch.equal(everything["share"], torch.zeros(len(c.which), dtype=torch.float64))
    assert torch.equal(c.logits, before)


def test_outcomes_that_are_all_impossible_hold_nothing():
    logits = torch.tensor([[0.0, -torch.inf, -torch.inf]])
    kept = Outcomes(torch.tensor([1, 2]))(Chunk(logits, torch.logsumexp(logits, -1), torch.tensor([0]), None, None))
    assert kept["share"].item() == kept["outcome_energy"].item() == -torch.inf
    assert kept["outcomes"].tolist() == [[-torch.inf, -torch.inf]]
