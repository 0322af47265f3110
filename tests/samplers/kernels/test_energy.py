import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import networks
from tests.laws import Counting
from tests.samplers.enumerated import energy_law, energy_of

import besag
from besag.conditionals.contract import Conditionals
from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank, sequences, total_variation
from besag.samplers.kernel import Canvas
from besag.samplers.kernels.energy import energies, forbidden, refuse_cold, refuse_unknown, text_places


def all_energies(law: Conditionals, places: int, energy: str) -> torch.Tensor:
    every = sequences(law.width, places)
    canvas, engine = blank(law, places, len(every), every), Engine(law, progress=False)
    return energies(engine, canvas, canvas.ids, text_places(engine, canvas), energy)


@given(st.integers(0, 100), st.sampled_from(["norm", "raw"]), st.booleans())
@settings(max_examples=10, deadline=None)
def test_both_energies_are_their_definitions(seed, energy, compatible):
    law = Table.random(3, 3, seed=seed) if compatible else Incompatible(3, 3, seed=seed)
    found = all_energies(law, 3, energy)
    assert found.dtype == torch.float64
    assert found.numpy() == pytest.approx([energy_of(law, sequence, energy) for sequence in sequences(3, 3)], abs=1e-9)


def test_on_a_true_joint_neither_law_is_the_joint():
    law = Table.random(3, 3, seed=2)
    joint = law.log_probs.exp().numpy().ravel()
    assert all_energies(law, 3, "raw").numpy() == pytest.approx(-3 * np.log(joint), rel=1e-12)  # so exp(−E) = p³
    assert total_variation(energy_law(law, 3, "raw"), joint**3) < 1e-12
    assert total_variation(energy_law(law, 3, "norm"), joint) > 0.05


def test_clamped_words_count_and_clamped_masks_do_not():
    law = Incompatible(3, 3)
    engine = Engine(law, progress=False)
    canvas = blank(law, 3, 2, np.array([[0, 2, 1], [0, 3, 1]]))._replace(free=torch.tensor([[False, False, True]] * 2))
    places = text_places(engine, canvas)
    assert places.tolist() == [[True, True, True], [True, False, True]]
    first, _ = energies(engine, canvas, canvas.ids, places, "norm").tolist()
    assert first == pytest.approx(energy_of(law, np.array([0, 2, 1]), "norm"))


def test_what_is_impossible_has_infinite_energy_and_no_nan():
    law = Incompatible(2, 2)
    law.logits[0, 2 * 3 + 1] = torch.tensor([0.0, -torch.inf])  # given "? 1", a 1 at place 0 is impossible
    law.logits[1, 0 * 3 + 2] = -torch.inf  # given "0 ?", everything is: a row of no law at all
    for energy in ("norm", "raw"):
        found = all_energies(law, 2, energy)
        assert not found.isnan().any()
        expected = [energy_of(law, sequence, energy) for sequence in sequences(2, 2)]
        assert found.tolist() == pytest.approx(expected)
        assert np.isinf(expected).tolist() == [True, True, False, True]


def test_a_token_that_is_not_allowed_at_a_free_place_is_impossible():
    law = Table.random(3, 2, seed=1)
    canvas = blank(law, 2, 4, np.array([[0, 0], [1, 0], [0, 1], [3, 0]]))
    canvas = canvas._replace(free=torch.tensor([[True, False]] * 4), allowed=torch.tensor([True, False, True]))
    assert forbidden(canvas, canvas.ids).tolist() == [False, True, False, True]  # a mask is no token that is allowed
    by_place = canvas._replace(allowed=torch.tensor([[False, True, True], [False, False, True]]))
    assert forbidden(by_place, canvas.ids).tolist() == [True, False, True, True]
    engine = Engine(law, progress=False)
    three = canvas.rows(torch.arange(3))
    assert energies(engine, three, three.ids, text_places(engine, three), "norm").isinf().tolist() == [
        False, True, False,
    ]  # fmt: skip


def test_on_a_network_it_is_minus_the_score_and_costs_a_pass_a_place():
    network = Counting(Transformer(networks.tiny("bert"), networks.vocabulary("bert")))
    engine = Engine(network, progress=False)
    lm = besag.LanguageModel(network, progress=False)
    text = "the cat sat on a zebra mat"
    score = lm.score(text, "pll")
    [encoded] = network.vocabulary.encode([text])
    ids = torch.from_numpy(encoded.ids)[None]
    free = torch.zeros_like(ids, dtype=torch.bool)
    free[:, encoded.places[0]] = True  # what is clamped counts, [CLS] and [SEP] do not, an unknown word does
    canvas = Canvas(ids, free, network.vocabulary.mask_id)
    places = text_places(engine, canvas)
    assert encoded.unknown
    assert places[0].nonzero()[:, 0].tolist() == encoded.places.tolist()
    network.batches.clear()
    assert energies(engine, canvas, ids, places, "norm").item() == pytest.approx(-score.total, abs=1e-3)
    assert len(network.sequences) == len(encoded.places)


def test_bad_input():
    with pytest.raises(BesagError, match=r"energy='nrm': give one of norm, raw. Did you mean 'norm'\?"):
        refuse_unknown("nrm")
    for value in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(BesagError, match=f"hottest: an energy temperature is a number above 0, not {value!r}"):
            refuse_cold("hottest", value)
