"""Optimisers against torch's own and against their formulas."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from tests import networks

from besag.training.optimizers import make
from besag.training.optimizers.muon import orthogonal
from besag.training.recipe import Optimizer

NAMES = ("adamw", "muon", "lamb")


def weights(model: Any) -> list[torch.Tensor]:
    return [weight.detach() for weight in model.parameters()]


def test_adamw_is_torchs() -> None:
    ours, theirs = networks.tiny("bert"), networks.tiny("bert")
    matrices, others = ([w for w in theirs.parameters() if (w.ndim >= 2) is two] for two in (True, False))
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    gradients(ours, make(ours, Optimizer(name="adamw", lr=1e-2, weight_decay=0.1)), range(6))
    gradients(theirs, torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.98)), range(6))
    for one, other in zip(weights(ours), weights(theirs), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_going_on_from_a_saved_state_is_going_on(name: str, dtype: torch.dtype) -> None:
    settings = Optimizer(name=name, lr=1e-2)  # type: ignore[arg-type]
    model = networks.tiny("modernbert").to(dtype).float().to(dtype)
    optimizer = make(model, settings)
    gradients(model, optimizer, range(3))
    other = copy.deepcopy(model)
    again = make(other, settings)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    gradients(model, optimizer, range(3, 6))
    gradients(other, again, range(3, 6))
    for one, two in zip(weights(model), weights(other), strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("later", [torch.float32, torch.bfloat16])
def test_masters_alone_are_enough_to_go_on(name: str, dtype: torch.dtype, later: torch.dtype) -> None:
    """Also where weights are then run in another precision."""
    settings = Optimizer(name=name, lr=1e-2)  # type: ignore[arg-type]
    model = networks.tiny("modernbert").to(dtype)
    optimizer = make(model, settings)
    gradients(model, optimizer, range(3))
    masters = [optimizer.exact(weight).detach().clone() for weight in model.parameters()]
    assert {master.dtype for master in masters} == {torch.float32}
    said = optimizer.remembered()
    assert all("master" not in held for held in said["state"].values())
    other = networks.tiny("modernbert").to(later)
    again = make(other, settings)
    with torch.no_grad():
        for weight, master in zip(other.parameters(), masters, strict=True):
            weight.copy_(master)
    again.load_state_dict({**said, "state": {str(number): held for number, held in said["state"].items()}})
    again.put_masters(zip(other.parameters(), masters, strict=True))
    for weight, master in zip(other.parameters(), masters, strict=True):
        assert torch.equal(again.exact(weight), master)
    if later == dtype:
        gradients(model, optimizer, range(3, 5))
        gradients(other, again, range(3, 5))
        assert all(map(torch.equal, weights(model), weights(other)))


def gradients(model: Any, optimizer: torch.optim.Optimizer, steps: range) -> None:
    """Random ones: a bfloat16 network need not run on this processor."""
    for step in steps:
        draw = torch.Generator().manual_seed(step)
        for weight in model.parameters():
            weight.grad = torch.randn(weight.shape, generator=draw).to(weight.dtype)
        optimizer.step()
        optimizer.zero_grad()


@pytest.mark.parametrize("name", NAMES)
def test_steps_too_small_for_bfloat16_add_up(name: str) -> None:
    """A thousand steps of a ten-thousandth move a weight of 1 by a tenth; in bfloat16 alone it would not move."""
    weight = torch.nn.Linear(4, 4, bias=False)
    torch.nn.init.constant_(weight.weight, 1.0)
    module = weight.to(torch.bfloat16)
    optimizer = make(module, Optimizer(name=name, lr=1e-4, matrix_lr=1e-3, weight_decay=0.0))  # type: ignore[arg-type]
    for _ in range(200):
        module.weight.grad = torch.eye(4, dtype=torch.bfloat16)
        optimizer.step()
    assert float(module.weight.detach().diagonal().float().mean()) < 0.995
    master = optimizer.state[module.weight]["master"]
    assert master.dtype == torch.float32
    assert torch.equal(master.to(torch.bfloat16), module.weight.detach())


def test_muon_turns_hidden_matrices_and_nothing_else() -> None:
    model = networks.tiny("modernbert")
    optimizer = make(model, Optimizer(name="muon"))
    kinds = {id(w): group["blocks"] for group in optimizer.param_groups for w in group["params"]}
    named = dict(model.named_parameters())
    assert kinds[id(named["model.embeddings.tok_embeddings.weight"])] == 0
    assert kinds[id(named["model.layers.0.attn.Wqkv.weight"])] == 3
    assert kinds[id(named["model.layers.1.mlp.Wi.weight"])] == 1
    assert kinds[id(named["model.final_norm.weight"])] == 0
    assert len(kinds) == len(named)


def test_muon_turns_gates_and_leaves_sums_over_layers_alone() -> None:
    model = networks.tiny("besag")
    optimizer = make(model, Optimizer(name="muon", weight_decay=0.1))
    groups = {
        id(w): (group["blocks"], group["weight_decay"]) for group in optimizer.param_groups for w in group["params"]
    }
    named = dict(model.named_parameters())
    assert groups[id(named["model.layers.0.attn.Wqkv.weight"])] == (3, 0.1)
    assert groups[id(named["model.layers.0.attn.gate.weight"])] == (1, 0.1)
    assert groups[id(named["model.layers.0.attn.gate.bias"])] == (0, 0.0)
    assert groups[id(named["model.mixes.1.weight"])] == (0, 0.0)
    assert groups[id(named["model.embeddings.tok_embeddings.weight"])] == (0, 0.1)
    assert len(groups) == len(named)


def test_newton_schulz_comes_near_the_orthogonal_factor() -> None:
    matrices = torch.randn(3, 40, 24, generator=torch.Generator().manual_seed(0))
    found = orthogonal(matrices)
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    values = torch.linalg.svdvals(found)
    assert float(values.min()) > 0.5
    assert float(values.max()) < 1.3
    cosine = (found * (left @ right)).sum((1, 2)) / (found.norm(dim=(1, 2)) * (left @ right).norm(dim=(1, 2)))
    assert float(cosine.min()) > 0.97


def test_lambs_step_is_as_long_as_the_weight() -> None:
    weight = torch.nn.Parameter(torch.tensor([[3.0, 4.0]]))
    module = torch.nn.ParameterDict({"w": weight})
    optimizer = make(module, Optimizer(name="lamb", lr=0.1, weight_decay=0.0, eps=1e-12))
    weight.grad = torch.tensor([[1.0, 1.0]])
    optimizer.step()
    step = torch.tensor([[3.0, 4.0]]) - weight.detach()
    torch.testing.assert_close(step, torch.full((1, 2), 0.1 * 5 / 2**0.5))
