"""A network in parts is the network: against Encoder.states and against transformers' own hidden states."""

from __future__ import annotations

import copy

import pytest
import torch
from tests import networks
from tests.training.objectives import examples

from besag.errors import BesagError
from besag.training.network.layers import FAMILIES, Layered

HERE = [family for family in networks.MASKED_FAMILIES if family in FAMILIES]
CHAINS = {"besag": {"layer_weights": False}}  # what makes each layer read the last one alone


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("family", HERE)
def test_all_layers_are_the_network(family: str, ragged: bool) -> None:
    network = examples.encoder(family, ragged=ragged, num_hidden_layers=4, **CHAINS.get(family, {}))
    batch = examples.batch(family=family)
    parts = Layered(network)
    whole = network.states(batch.inputs, batch.layout)
    assert float(whole.detach().abs().max()) > 0.1
    states = parts.embed(batch.inputs, batch.layout.position)
    torch.testing.assert_close(parts.run(states, batch.layout), whole, rtol=1e-5, atol=1e-5)
    for cut in range(parts.depth + 1):
        early = parts.run(states, batch.layout, 0, cut)
        torch.testing.assert_close(parts.run(early, batch.layout, cut), whole, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", HERE)
def test_places_left_out_stay_left_out(family: str) -> None:
    network, batch = examples.encoder(family, **CHAINS.get(family, {})), examples.batch(family=family)
    keep = (batch.inputs != network.mask_id) | ~batch.free
    layout, ids = batch.layout.kept(keep), batch.inputs[keep]
    assert not torch.equal(layout.position, layout.column)
    parts = Layered(network)
    states = parts.run(parts.embed(ids, layout.position), layout)
    torch.testing.assert_close(states, network.states(ids, layout), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", ["modernbert", "bert", "albert", "distilbert", "besag"])
def test_a_stretch_of_layers_is_transformers_own(family: str) -> None:
    network, batch = examples.encoder(family, **CHAINS.get(family, {})), examples.batch((7,), family=family)
    own = network.body(input_ids=batch.ids[None], output_hidden_states=True).hidden_states
    parts = Layered(network)
    states = parts.embed(batch.ids, batch.layout.position)
    if family != "albert":  # whose own list begins before the embeddings are widened
        torch.testing.assert_close(states, own[0][0])
    torch.testing.assert_close(parts.run(states, batch.layout, 0, 1), own[1][0], rtol=1e-5, atol=1e-5)


def test_a_copy_runs_its_own_weights() -> None:
    network, batch = examples.encoder("bert"), examples.batch(family="bert")
    parts = copy.deepcopy(Layered(network))
    for weight in network.model.parameters():
        weight.data.zero_()
    states = parts.run(parts.embed(batch.ids, batch.layout.position), batch.layout)
    torch.testing.assert_close(states, parts.encoder.states(batch.ids, batch.layout), rtol=1e-5, atol=1e-5)
    assert float(states.detach().std(0).max()) > 0.1


def test_layers_that_read_all_earlier_ones_are_not_run_one_by_one() -> None:
    with pytest.raises(BesagError, match=r"layer by layer.*set layer_weights = false"):
        _ = Layered(examples.encoder("besag")).depth


@pytest.mark.parametrize("family", ["deberta-v2", "mpnet", "esm"])
def test_other_families_are_refused_by_name(family: str) -> None:
    with pytest.raises(BesagError, match=rf"{family}.* layer by layer.*modernbert, besag, bert, roberta"):
        Layered(examples.encoder(family))


@pytest.mark.parametrize("stretch", [(0, 3), (-1, 1), (2, 1)])
def test_layers_that_are_not_there_are_refused(stretch: tuple[int, int]) -> None:
    network, batch = examples.encoder("bert"), examples.batch(family="bert")
    parts = Layered(network)
    with pytest.raises(BesagError, match="a network of 2 layers has no layers"):
        parts.run(parts.embed(batch.ids, batch.layout.position), batch.layout, *stretch)
