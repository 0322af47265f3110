import math

import numpy as np
import pytest
import torch
from tests import networks
from tests.laws import Counting
from tests.samplers.kernels.test_energy import energy_of

import besag
from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank, conditional, sequences
from besag.samplers.annealed import anneal, left_to_right, log_partition, log_probability, summary
from besag.samplers.drawing import Drawing
from besag.samplers.kernel import Canvas, Noise
from besag.samplers.kernels.proposals import Proposals

LAWS = {"table": Table.random(2, 3, seed=1, concentration=1.0), "incompatible": Incompatible(3, 3, seed=1)}


def true_log_z(law, places, energy, temperature=1.0, keep=lambda sequence: True):
    every = [energy_of(law, sequence, energy) for sequence in sequences(law.width, places) if keep(sequence)]
    return float(np.logaddexp.reduce(-np.array(every) / temperature))


def log_weights(law, canvas, energy="norm", temperature=1.0, move="single", levels=8, moves=1, seed=0):
    noise = Noise(seed, torch.arange(len(canvas.ids)))
    proposals = Proposals(move, None, Drawing())
    return anneal(Engine(law, progress=False), noise, canvas, proposals, energy, temperature, levels, moves)[0]


def unbiased(found: torch.Tensor, log_z: float) -> bool:
    """Is the mean weight within four standard errors of Z, and are those below five per cent?"""
    weights = (found - log_z).exp()
    error = float(weights.std()) / math.sqrt(len(weights))
    assert error < 0.05 * float(weights.mean())
    return abs(float(weights.mean()) - 1) < 4 * error


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("energy", ["norm", "raw"])
@pytest.mark.parametrize("move", ["single", "block"])
def test_the_mean_weight_is_z(name, energy, move):
    law = LAWS[name]
    found = log_weights(law, blank(law, 3, 3000), energy, 2.0, move)
    assert unbiased(found, true_log_z(law, 3, energy, 2.0))
    if name == "incompatible" and energy == "norm":
        assert not unbiased(found, true_log_z(law, 3, energy, 1.0))


def test_one_level_is_plain_importance_sampling_and_more_are_better():
    law = LAWS["incompatible"]
    log_z = true_log_z(law, 3, "norm")
    spread = []
    for levels in (1, 4, 32):
        found = log_weights(law, blank(law, 3, 3000), levels=levels)
        assert unbiased(found, log_z)
        spread.append(summary(found)[2])
    assert spread[0] < spread[1] < spread[2]
    assert spread[2] > 2 * spread[0]


def test_intervals_hold_the_truth_as_often_as_they_say():
    law, groups, chains = LAWS["incompatible"], 150, 40
    log_z = true_log_z(law, 3, "norm")
    found = log_weights(law, blank(law, 3, groups * chains), levels=16).view(groups, chains)
    covered, together = 0, 0.0
    for each in found:
        estimate, se, ess = summary(each)
        covered += abs(estimate - log_z) < 1.96 * se
        together += math.exp(estimate - log_z) / groups
        assert 1 <= ess <= chains
    assert 0.88 <= covered / groups <= 0.99  # of 150 intervals at 95 %: 0.88 is four standard deviations below
    assert together == pytest.approx(1, abs=0.06)


def test_the_whole_function_and_the_probability_of_sentences():
    law = LAWS["incompatible"]
    engine, canvas = Engine(law, progress=False), blank(law, 3, 1)
    log_z = log_partition(engine, canvas, chains=400, levels=20, moves=2, seed=3)
    assert log_z.low < true_log_z(law, 3, "norm") < log_z.high
    assert log_z.high - log_z.low == pytest.approx(2 * 1.959964 * log_z.se, rel=1e-5)
    wider = log_partition(engine, canvas, chains=400, levels=20, moves=2, seed=3, confidence=0.99)
    assert wider.estimate == log_z.estimate
    assert wider.low < log_z.low
    every = torch.from_numpy(sequences(3, 3))
    told = log_probability(engine, canvas, every, log_z)
    assert float(told.estimate.exp().sum()) == pytest.approx(1, abs=3 * log_z.se)
    assert float(told.low.exp().sum()) < 1 < float(told.high.exp().sum())
    exact = [-energy_of(law, sequence, "norm") - true_log_z(law, 3, "norm") for sequence in sequences(3, 3)]
    assert ((told.low.numpy() < exact) & (exact < told.high.numpy())).all()
    assert "effective sample size" in str(log_z)


def test_clamped_words_and_allowed_tokens_have_a_z_of_their_own():
    law = LAWS["incompatible"]
    free, allowed = torch.tensor([True, False, True]), torch.tensor([True, False, True])
    canvas = blank(law, 3, 3000, np.array([1, 2, 1]), allowed=allowed)._replace(free=free.expand(3000, 3))
    expected = true_log_z(law, 3, "norm", keep=lambda s: s[1] == 2 and s[0] != 1 and s[2] != 1)
    assert unbiased(log_weights(law, canvas), expected)
    engine, one = Engine(law, progress=False), canvas.rows(torch.tensor([0]))
    log_z = log_partition(engine, one, chains=50, levels=5)
    told = log_probability(engine, one, torch.tensor([[0, 2, 2], [1, 2, 0]]), log_z)
    assert told.estimate.isfinite().tolist() == [True, False]
    with pytest.raises(BesagError, match="its tokens at clamped places"):
        log_probability(engine, one, torch.tensor([[0, 1, 2]]), log_z)


def test_impossible_sentences_weigh_nothing_and_make_no_nan():
    law = Incompatible(3, 2, seed=4, scale=0.6)
    law.logits[0, 3 * 4 + 1] = torch.tensor([0.3, -torch.inf, -0.2])  # given "? 1": never "1 1"
    found = log_weights(law, blank(law, 2, 4000))
    assert not found.isnan().any()
    assert found.isneginf().any()  # those that began there
    assert unbiased(found, true_log_z(law, 2, "norm"))
    assert summary(torch.full((3,), -torch.inf)) == (-math.inf, math.inf, 0.0)


def test_the_base_is_the_chain_rule_from_left_to_right():
    law = LAWS["incompatible"]
    every = sequences(3, 3)
    canvas = blank(law, 3, 27, every)
    found = left_to_right(Engine(law, progress=False), canvas, canvas.ids, canvas.free)
    for at, sequence in enumerate(every):
        for place in range(3):
            row = conditional(law, sequence, list(range(place, 3)), place)
            assert float(found[at, place]) == pytest.approx(math.log(row[sequence[place]]))
    assert float(found.sum(1).exp().sum()) == pytest.approx(1)


def test_on_a_network_the_base_is_the_score_chain_and_passes_are_counted():
    network = Counting(Transformer(networks.tiny("bert"), networks.vocabulary("bert")))
    engine = Engine(network, progress=False)
    text = "the cat sat"
    [encoded] = network.vocabulary.encode([text])
    ids = torch.from_numpy(encoded.ids)[None]
    free = torch.zeros_like(ids, dtype=torch.bool)
    free[:, encoded.places] = True
    canvas = Canvas(ids, free, network.vocabulary.mask_id)
    score = besag.LanguageModel(network, progress=False).score(text, "chain")
    assert float(left_to_right(engine, canvas, ids, free).sum()) == pytest.approx(score.total, abs=1e-3)
    network.batches.clear()
    log_z = log_partition(engine, canvas, chains=3, levels=3)
    assert log_z.passes == len(network.sequences)
    assert math.isfinite(log_z.estimate)
    assert log_probability(engine, canvas, ids, log_z).estimate.isfinite().all()


def test_the_same_on_any_split():
    law = LAWS["table"]
    whole = log_weights(law, blank(law, 3, 6))
    noise, proposals = Noise(0, torch.arange(4, 6)), Proposals("single", None, Drawing())
    engine = Engine(law, batch_tokens=7, progress=False)
    part, _ = anneal(engine, noise, blank(law, 3, 2), proposals, "norm", 1.0, 8, 1)
    assert torch.equal(part, whole[4:])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"chains": 1}, "chains=1: give at least 2"),
        ({"levels": 0}, "levels=0: give at least 1"),
        ({"moves": 0}, "moves=0: give at least 1"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"energy": "norn"}, r"energy='norn': give one of norm, raw. Did you mean 'norm'\?"),
        ({"energy_temperature": 0.0}, "energy_temperature: an energy temperature is a number above 0, not 0.0"),
        ({"move": "block", "size": 4}, "size=4: move='block' needs that many free places; there are 3"),
    ],
)
def test_options_that_make_no_sense(options, told):
    law = LAWS["table"]
    with pytest.raises(BesagError, match=told):
        log_partition(Engine(law, progress=False), blank(law, 3, 1), **options)
    with pytest.raises(BesagError, match="the canvas has 2 rows: give one"):
        log_partition(Engine(law, progress=False), blank(law, 3, 2))
