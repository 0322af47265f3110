"""Signals of dependence against brute force: exact mutual information on tables, plain loops elsewhere."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from tests import networks
from tests.laws import Counting

from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, conditional, sequences
from besag.samplers.drawing import Drawing
from besag.samplers.kernels import signals
from besag.samplers.kernels.signals import attention, change, distance, information


def engine_of(law) -> Engine:
    return Engine(law, progress=False)


def partly(law, *shown: dict[int, int], places: int) -> tuple[torch.Tensor, torch.Tensor]:
    """ids (C, n) with these values shown, and what is hidden."""
    ids = torch.full((len(shown), places), law.width)
    for chain, values in enumerate(shown):
        for place, value in values.items():
            ids[chain, place] = value
    return ids, ids == law.width


def mutual_information(joint: np.ndarray, shown: dict[int, int], one: int, other: int) -> float:
    """I(x_one; x_other | shown) by summing over all sequences."""
    width = joint.shape[0]
    pair = np.zeros((width, width))
    for sequence, weight in zip(sequences(width, joint.ndim), joint.ravel(), strict=True):
        if all(sequence[place] == value for place, value in shown.items()):
            pair[sequence[one], sequence[other]] += weight
    pair /= pair.sum()
    total = 0.0
    for x, y in product(range(width), repeat=2):
        if pair[x, y] > 0:
            total += pair[x, y] * np.log(pair[x, y] / (pair[x].sum() * pair[:, y].sum()))
    return float(total)


def moved(law, sequence: np.ndarray, hides: list[int], one: int, other: int, token: int, measure: str) -> float:
    """How far `other` moves when `one` is revealed with `token`."""
    shown = sequence.copy()
    shown[one] = token
    before = conditional(law, sequence, hides, other)
    after = conditional(law, shown, [place for place in hides if place != one], other)
    if measure == "tv":
        return float(0.5 * np.abs(after - before).sum())
    return float(sum(a * np.log(a / b) for a, b in zip(after, before, strict=True) if a > 0))


# ---- information


@pytest.mark.parametrize("shown", [{}, {1: 2}, {0: 0, 3: 1}])
def test_information_is_the_conditional_mutual_information_of_a_joint(shown):
    law = Table.random(3, 4, seed=1)
    ids, hides = partly(law, shown, places=4)
    found = information(engine_of(law), ids, hides, candidates=3)
    joint = law.log_probs.exp().numpy()
    for one, other in product(range(4), repeat=2):
        free = one != other and one not in shown and other not in shown
        expected = mutual_information(joint, shown, one, other) if free else 0.0
        assert float(found.strength[0, one, other]) == pytest.approx(expected, abs=1e-8)
    hidden = 4 - len(shown)
    assert found.passes.tolist() == [7 * hidden * (hidden - 1) // 2]


def test_information_counts_every_pass():
    law = Counting(Table.random(3, 4, seed=2))
    ids, hides = partly(law, {}, {0: 1, 2: 2}, {0: 1, 1: 1, 2: 0}, places=4)
    found = information(engine_of(law), ids, hides, candidates=2)
    assert found.passes.tolist() == [6 * 5, 5, 0]
    assert len(law.sequences) == 35
    assert not found.strength[2].any()


# ---- change


@pytest.mark.parametrize("measure", ["kl", "tv"])
@pytest.mark.parametrize("family", ["joint", "incompatible"])
def test_change_is_what_plain_loops_say(measure, family):
    law = Table.random(3, 4, seed=3) if family == "joint" else Incompatible(3, 4, seed=3)
    shown = [{}, {1: 2}, {0: 0, 3: 1}, {0: 0, 1: 2, 2: 1}]
    ids, hides = partly(law, *shown, places=4)
    found = change(engine_of(law), ids, hides, measure=measure)
    for chain, values in enumerate(shown):
        places = [place for place in range(4) if place not in values]
        sequence = ids[chain].numpy()
        best = {place: int(conditional(law, sequence, places, place).argmax()) for place in places}
        for one, other in product(range(4), repeat=2):
            expected = 0.0
            if one != other and one in best and other in best:
                expected = 0.5 * moved(law, sequence, places, one, other, best[one], measure)
                expected += 0.5 * moved(law, sequence, places, other, one, best[other], measure)
            assert float(found.strength[chain, one, other]) == pytest.approx(expected, abs=1e-12)
    assert found.passes.tolist() == [5, 4, 3, 0]  # one for each place and one with none; a place alone has no pair


def test_change_with_drawn_tokens_estimates_the_information_without_bias():
    law = Table.random(3, 3, seed=4)
    chains = 30_000
    ids, hides = partly(law, *[{}] * chains, places=3)
    uniform = torch.from_numpy(np.random.default_rng(0).uniform(size=(chains, 3)))
    strength = change(engine_of(law), ids, hides, uniform=uniform).strength.numpy()
    likeliest = change(engine_of(law), ids[:1], hides[:1]).strength[0]
    joint = law.log_probs.exp().numpy()
    apart = 0.0
    for one, other in [(0, 1), (0, 2), (1, 2)]:
        expected = mutual_information(joint, {}, one, other)
        error = strength[:, one, other].std() / np.sqrt(chains)
        assert abs(strength[:, one, other].mean() - expected) < 4 * error
        apart = max(apart, abs(float(likeliest[one, other]) - expected) / error)
    assert apart > 20  # the likeliest token answers another question


def test_change_sees_no_dependence_where_there_is_none():
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=3)
    law = Table(np.einsum("a,b,c->abc", *rows))
    ids, hides = partly(law, {}, places=3)
    assert float(change(engine_of(law), ids, hides).strength.max()) < 1e-12


def test_change_on_the_toy_is_a_whole_bit():
    """ "walking along" or "quietly walking": one place settles the other."""
    joint = np.zeros((3, 3))
    joint[1, 2] = joint[0, 1] = 0.5
    law = Table(joint, symbols=["quietly", "walking", "along"])
    ids, hides = partly(law, {}, places=2)
    assert float(change(engine_of(law), ids, hides).strength[0, 0, 1]) == pytest.approx(np.log(2))
    assert float(change(engine_of(law), ids, hides, measure="tv").strength[0, 0, 1]) == pytest.approx(0.5)


def test_change_ranks_pairs_nearly_as_the_information_does():
    correlations = []
    for seed in range(6):
        law = Table.random(3, 5, seed=seed, concentration=0.1)
        joint = law.log_probs.exp().numpy()
        ids, hides = partly(law, {}, places=5)
        strength = change(engine_of(law), ids, hides).strength[0].numpy()
        pairs = [(one, other) for one in range(5) for other in range(one)]
        exact = [mutual_information(joint, {}, one, other) for one, other in pairs]
        correlations.append(spearmanr(exact, [strength[pair] for pair in pairs]).statistic)
    assert np.mean(correlations) > 0.5


def test_change_asks_about_the_named_places_alone():
    law = Counting(Table.random(3, 4, seed=5))
    ids, hides = partly(law, {}, places=4)
    few = hides & torch.tensor([True, False, False, True])
    found = change(engine_of(law), ids, few)
    assert found.passes.tolist() == [3]
    assert len(law.sequences) == 3
    whole = change(engine_of(law), ids, hides)
    assert found.strength[0, 0, 3] == whole.strength[0, 0, 3] > 0
    assert int((found.strength != 0).sum()) == 2


def test_change_knows_allowed_tokens_and_temperature():
    law = Table.random(4, 2, seed=6)
    ids, hides = partly(law, {}, places=2)
    only = torch.tensor([True, True, False, False])
    found = float(change(engine_of(law), ids, hides, allowed=only).strength[0, 0, 1])
    cut = Table(law.log_probs.exp()[:2, :2])
    assert found != pytest.approx(float(change(engine_of(law), ids, hides).strength[0, 0, 1]))
    # rows over the allowed tokens: p(x_j) still sums over what is not allowed at i, so this is no cut of the table
    expected = float(change(engine_of(cut), *partly(cut, {}, places=2)).strength[0, 0, 1])
    assert found != pytest.approx(expected)
    by_place = torch.tensor([[True, False, False, False], [True, True, True, True]])
    certain = change(engine_of(law), ids, hides, allowed=by_place).strength[0, 0, 1]
    row = law.log_probs.exp().numpy()
    before, after = row.sum(0), row[0] / row[0].sum()
    assert float(certain) == pytest.approx(0.5 * float((after * np.log(after / before)).sum()))  # the other way: 0
    warm = change(engine_of(law), ids, hides, drawing=Drawing(temperature=3.0)).strength[0, 0, 1]
    assert float(warm) < float(change(engine_of(law), ids, hides).strength[0, 0, 1])


@given(st.integers(0, 30), st.integers(1, 40))
@settings(max_examples=15, deadline=None)
def test_signals_of_a_chain_do_not_depend_on_the_others(seed, batch):
    law = Table.random(3, 4, seed=seed)
    ids, hides = partly(law, {}, {1: 2}, {0: 1, 2: 2}, {3: 0}, places=4)
    engine = Engine(law, batch_tokens=batch, progress=False)
    for signal in (change, information):
        whole = signal(engine_of(law), ids, hides)
        for part in (torch.tensor([0]), torch.tensor([1, 2, 3])):
            some = signal(engine, ids[part], hides[part])
            assert torch.equal(some.strength, whole.strength[part])
            assert torch.equal(some.passes, whole.passes[part])


def test_pieces_are_put_together(monkeypatch):
    law = Incompatible(3, 4)
    ids, hides = partly(law, {}, {1: 2}, {0: 1, 2: 2}, {3: 0}, places=4)
    whole = change(engine_of(law), ids, hides)
    monkeypatch.setattr(signals, "HELD", 12)  # one chain at a time
    assert torch.equal(change(engine_of(law), ids, hides).strength, whole.strength)


# ---- distance


def test_distance_by_hand():
    hides = torch.tensor([[True, True, False, True, True]])
    found = distance(hides, reach=2.0)
    strength = found.strength[0]
    assert float(strength[0, 1]) == float(strength[3, 4]) == 1.0
    assert float(strength[1, 3]) == pytest.approx(np.exp(-0.5))
    assert float(strength[0, 4]) == pytest.approx(np.exp(-1.5))
    assert not strength[2].any()
    assert not strength.diagonal().any()
    assert torch.equal(strength, strength.T)
    assert found.passes.tolist() == [0]
    far = distance(torch.ones(1, 500, dtype=torch.bool), reach=0.5).strength[0]
    assert float(far[0, -1]) > 0  # no two places are told to be independent


# ---- attention


def network(family: str = "modernbert", **how) -> Transformer:
    return Transformer(networks.tiny(family, **how), networks.vocabulary(family))


@pytest.mark.parametrize("family", ["bert", "modernbert", "besag"])
def test_attention_is_the_mean_of_what_the_network_tells(family):
    law = network(family, attn_implementation="eager")
    mask = law.vocabulary.mask_id
    ids = torch.tensor(law.vocabulary.tokenizer("the cat [MASK] [MASK] the [MASK]")["input_ids"]).repeat(3, 1)
    ids[1, 2] = ids[0, 1]
    hides = ids == mask
    hides[2] = False
    found = attention(Engine(law, batch_tokens=8, progress=False), ids, hides)  # one chain at a time
    with torch.no_grad():
        layers = law.model(input_ids=ids, output_attentions=True).attentions
    heads = layers[0].shape[1]
    for one, other in product(range(ids.shape[1]), repeat=2):
        expected = 0.0
        if one != other and hides[0, one] and hides[0, other]:
            both = [float(layer[0, head, a, b]) for layer in layers for head in range(heads)
                    for a, b in [(one, other), (other, one)]]  # fmt: skip
            expected = sum(both) / len(both) * ids.shape[1]
        assert float(found.strength[0, one, other]) == pytest.approx(expected, abs=1e-6)
    assert found.passes.tolist() == [1, 1, 0]
    assert found.strength[0].any()
    assert not found.strength[2].any()


def test_a_network_that_does_not_tell_where_it_looks():
    law = network("bert", attn_implementation="sdpa")
    ids = torch.full((1, 6), law.vocabulary.mask_id)
    with pytest.raises(BesagError, match=r"does not say where it attends to.*set_attn_implementation\('eager'\)"):
        attention(engine_of(law), ids, ids > -1)
    law.model.set_attn_implementation("eager")  # as it is told
    assert attention(engine_of(law), ids, ids > -1).strength.isfinite().all()
    table = Table.random(2, 3)
    with pytest.raises(BesagError, match=r"'table' \(Table\) does not say where it attends to"):
        attention(engine_of(table), *partly(table, {}, places=3))


def test_change_and_information_run_on_a_network():
    law = network("bert")
    ids = torch.tensor(law.vocabulary.tokenizer("the cat [MASK] [MASK] the [MASK]")["input_ids"]).repeat(2, 1)
    hides = ids == law.vocabulary.mask_id
    for found in (change(engine_of(law), ids, hides), information(engine_of(law), ids, hides, candidates=3)):
        assert found.strength.dtype == torch.float32
        assert torch.equal(found.strength, found.strength.mT)
        assert torch.equal(found.strength > 0, (hides[:, :, None] & hides[:, None]) & ~torch.eye(8, dtype=torch.bool))


# ---- bad input


def test_bad_input():
    law = Table.random(2, 2)
    with pytest.raises(BesagError, match=r"measure='kll': give 'kl' or 'tv'. Did you mean 'kl'"):
        change(engine_of(law), *partly(law, {}, places=2), measure="kll")  # type: ignore[arg-type]
    for reach in (0.0, -1.0, float("nan")):
        with pytest.raises(BesagError, match=f"reach={reach}: give the number of places, above 0"):
            distance(torch.ones(1, 2, dtype=torch.bool), reach=reach)
