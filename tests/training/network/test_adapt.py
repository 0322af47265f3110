"""Adaptation: only what should move moves, and what comes out is an ordinary model that says the same."""

from __future__ import annotations

import copy

import pytest
import torch
from tests import networks
from transformers import AutoModelForMaskedLM

from besag.conditionals import additions
from besag.errors import BesagError
from besag.training.network.adapt import adapt, apart, finish, own_weights, trained
from besag.training.recipe import Adapt

FAMILIES = ("bert", "roberta", "albert", "deberta-v2", "modernbert", "distilbert", "xlm-roberta", "besag")


def some(family: str) -> torch.Tensor:
    ordinary = sorted(set(range(networks.vocabulary(family).size)) - networks.vocabulary(family).special_ids)
    return torch.tensor(ordinary)[torch.arange(18).reshape(2, 9) * 7 % len(ordinary)]


def step(model: torch.nn.Module, ids: torch.Tensor) -> None:
    """One step of gradient descent on a made-up loss."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.SGD(weights, lr=0.05)
    for _ in range(2):  # the second moves A, too: its gradient is zero as long as B is
        optimizer.zero_grad()
        (-model(input_ids=ids).logits.log_softmax(-1)[..., 5].mean()).backward()
        optimizer.step()


@pytest.mark.parametrize("family", FAMILIES)
def test_lora_changes_nothing_at_first_and_merges_into_plain_weights(family, tmp_path):
    pytest.importorskip("peft")
    ids = some(family)
    model = networks.tiny(family, initializer_range=0.1).eval()
    plain = copy.deepcopy(model.state_dict())
    with torch.no_grad():
        before = model(input_ids=ids).logits
    assert adapt(model, Adapt(method="lora", rank=4)) is model
    with torch.no_grad():
        torch.testing.assert_close(model(input_ids=ids).logits, before, rtol=0, atol=0)
    names = trained(model)
    assert names
    assert all(".lora_" in name for name in names)
    step(model, ids)
    with torch.no_grad():
        adapted = model(input_ids=ids).logits
    assert (adapted - before).abs().max() > 1e-3
    assert finish(model) is model
    assert list(model.state_dict()) == list(plain)
    with torch.no_grad():
        torch.testing.assert_close(model(input_ids=ids).logits, adapted, rtol=1e-5, atol=1e-5)
    moved = {name for name, weight in model.state_dict().items() if not torch.equal(weight, plain[name])}
    assert moved
    assert all(name.endswith(".weight") for name in moved)
    assert not any("embed" in name and "project" not in name and "mapping" not in name for name in moved)
    assert all(weight.requires_grad for weight in model.parameters())
    model.save_pretrained(tmp_path)
    again = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        torch.testing.assert_close(again(input_ids=ids).logits, adapted, rtol=1e-5, atol=1e-5)


def test_lora_takes_the_layers_it_is_told():
    pytest.importorskip("peft")
    model = adapt(networks.tiny("bert"), Adapt(method="lora", rank=2, targets=("query", "value")))
    layers = {name.split(".lora_")[0].rpartition(".")[2] for name in trained(model)}
    assert layers == {"query", "value"}
    shapes = {tuple(dict(model.named_parameters())[name].shape) for name in trained(model)}
    assert shapes == {(2, 32), (32, 2)}
    with pytest.raises(BesagError, match=r"no layer of BertForMaskedLM is called 'qeury'. Did you mean 'query'\?"):
        adapt(networks.tiny("bert"), Adapt(method="lora", targets=("qeury",)))
    with pytest.raises(BesagError, match="is that of the embeddings"):
        adapt(networks.tiny("bert"), Adapt(method="lora", targets=("decoder",)))


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "deberta-v2"])
def test_bitfit_trains_bias_terms_alone(family):
    """Ben Zaken et al. 2022: every bias moves, the gain of no normalisation does."""
    model = networks.tiny(family, initializer_range=0.1).eval()
    plain = copy.deepcopy(model.state_dict())
    adapt(model, Adapt(method="bitfit"))
    assert trained(model) == [name for name, _ in model.named_parameters() if name.endswith("bias")]
    step(model, some(family))
    moved = {name for name, weight in model.state_dict().items() if not torch.equal(weight, plain[name])}
    assert any("LayerNorm.bias" in name for name in moved)
    assert any(name.endswith("dense.bias") or name.endswith("ffn.bias") for name in moved)
    assert all(name.endswith("bias") for name in moved)
    assert len(trained(finish(model))) == len(list(model.parameters()))


def test_bitfit_needs_biases():
    with pytest.raises(BesagError, match="the layers of ModernBertForMaskedLM have none: use 'lora'"):
        adapt(networks.tiny("modernbert"), Adapt(method="bitfit"))


def test_no_method_is_no_change():
    model = networks.tiny("bert")
    assert adapt(model, Adapt()) is model
    assert len(trained(model)) == len(list(model.parameters()))


@pytest.mark.parametrize("family", ["bert", "albert", "modernbert", "besag"])
def test_bottlenecks_are_trained_alone(family):
    model = networks.tiny(family, initializer_range=0.1).eval()
    plain, ids = copy.deepcopy(model.state_dict()), some(family)
    with torch.no_grad():
        before = model(input_ids=ids).logits
    assert adapt(model, Adapt(method="bottleneck", rank=4)) is model
    with torch.no_grad():
        assert torch.equal(model(input_ids=ids).logits, before)
    assert trained(model) == list(apart(model))
    began = {name: weight.clone() for name, weight in apart(model).items()}
    step(model, ids)
    with torch.no_grad():
        assert (model(input_ids=ids).logits - before).abs().max() > 1e-3
    assert all(torch.equal(weight, plain[name]) for name, weight in own_weights(model).items())
    assert all(not torch.equal(weight, began[name]) for name, weight in apart(model).items() if "up" in name)


def test_lora_apart_says_what_it_says_in_the_network():
    pytest.importorskip("peft")
    model, other, ids = networks.tiny("bert").eval(), networks.tiny("bert").eval(), some("bert")
    plain = copy.deepcopy(model.state_dict())
    adapt(model, Adapt(method="lora", rank=2, alpha=5.0, keep="apart"))
    step(model, ids)
    kept = apart(model)
    at = sorted({name.partition(f".{additions.NAME}.")[0] for name in kept})
    additions.attach_low_rank(other, 2, 5.0, at)
    assert kept.keys() == additions.added(other).keys()
    other.load_state_dict(kept, strict=False)
    with torch.no_grad():
        torch.testing.assert_close(other(input_ids=ids).logits, model(input_ids=ids).logits, rtol=0, atol=1e-6)
    assert all(torch.equal(weight, plain[name]) for name, weight in own_weights(model).items())
    assert own_weights(model).keys() == dict(networks.tiny("bert").named_parameters()).keys()


def test_what_cannot_be_kept_apart_or_placed_is_refused():
    pytest.importorskip("peft")
    with pytest.raises(BesagError, match=r"'bert\.embeddings\.position_embeddings' is no linear layer"):
        adapt(networks.tiny("bert"), Adapt(method="lora", keep="apart", targets=("position_embeddings",)))
    with pytest.raises(BesagError, match=r"adapt\.targets = \['query'\] is for 'lora'"):
        adapt(networks.tiny("bert"), Adapt(method="bottleneck", targets=("query",)))
    with pytest.raises(BesagError, match="family 'deberta-v2' are is not known"):
        adapt(networks.tiny("deberta-v2"), Adapt(method="bottleneck"))
