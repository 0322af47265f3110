"""What is added to layers: nothing at first, then what the formulas say, and nothing of the network itself moves."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests import networks

from besag.conditionals import additions
from besag.errors import BesagError
from besag.training.network.layers import FAMILIES


def said(model: Any, **how: Any) -> Any:
    with torch.no_grad():
        return model(input_ids=torch.arange(5, 14)[None], **how)


@torch.no_grad()
def awake(model: Any) -> Any:
    """An adapter that was trained, in a manner of speaking."""
    for number, weight in enumerate(additions.added(model).values()):
        weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(number)) / 2)
    return model


def test_the_layers_of_every_family_that_is_run_layer_by_layer_are_known():
    assert set(additions.LAYERS) == set(FAMILIES)


@pytest.mark.parametrize(
    "family", ["bert", "xlm-roberta-xl", "electra", "distilbert", "albert", "modernbert", "besag", "neobert"]
)
def test_a_new_bottleneck_changes_no_bit_and_a_trained_one_is_the_formula(family):
    model = networks.tiny(family).eval()
    before = said(model, output_hidden_states=True)
    additions.attach_bottlenecks(model, 3)
    assert torch.equal(said(model).logits, before.logits)
    added = additions.added(model)
    assert {name: tuple(weight.shape) for name, weight in added.items()} == additions.shapes(model, "bottleneck", 3)
    awake(model)
    h = before.hidden_states[1].double() if family not in ("besag", "xlm-roberta-xl") else None
    after = said(model, output_hidden_states=True)
    assert (after.logits - before.logits).abs().max() > 1e-2
    if h is None:  # what is told of their layers is not what the first of them says
        return
    down, shift, up, last = (weight.double() for weight in list(added.values())[:4])
    normal = (h - h.mean(-1, keepdim=True)) / (h.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    wanted = h + (normal @ down.T + shift).relu() @ up.T + last
    torch.testing.assert_close(after.hidden_states[1].double(), wanted, rtol=1e-5, atol=1e-5)


def test_low_rank_additions_are_those_of_the_merged_matrix():
    model, merged = networks.tiny("bert").eval(), networks.tiny("bert").eval()
    at = [name for name in additions.linear(model) if name.endswith("query") or name.endswith("output.dense")]
    before = said(model).logits
    additions.attach_low_rank(model, 2, 6.0, at)
    assert torch.equal(said(model).logits, before)
    assert additions.shapes(model, "lora", 2, at).keys() == additions.added(awake(model)).keys()
    for name in at:
        here = model.get_submodule(name).get_submodule(additions.NAME)
        merged.get_submodule(name).weight.data += 3.0 * here.up.weight.data @ here.down.weight.data
    torch.testing.assert_close(said(model).logits, said(merged).logits, rtol=1e-4, atol=1e-4)


def test_a_network_that_shares_its_weights_has_no_addition():
    model = networks.tiny("modernbert").eval()
    before = said(model).logits
    additions.attach_bottlenecks(model, 3)
    after = said(awake(model)).logits
    twin = additions.sharing(model)
    assert torch.equal(said(twin).logits, before)
    assert torch.equal(said(model).logits, after)
    own = dict(model.named_parameters())
    assert all(weight is own[name] for name, weight in twin.named_parameters())


@pytest.mark.parametrize("family", ["deberta-v2", "esm"])
def test_families_whose_layers_are_not_known_are_refused(family):
    with pytest.raises(BesagError, match=rf"family '{family}' are is not known.*Known are modernbert, besag, bert"):
        additions.attach_bottlenecks(networks.tiny(family), 3)
