"""What objectives that run the network otherwise have in common: low precision, learning, one answer each time."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from tests import networks
from tests.training.objectives import examples

from besag.training.network.encoder import Encoder
from besag.training.objectives import OBJECTIVES
from besag.training.objectives.objective import Objective

OPTIONS: dict[str, dict[str, Any]] = {
    "mae": {"layers": 1, "mlm_share": 0.5},
    "late_mask": {"after": 1, "mlm_share": 0.5},
    "permuted": {},
    "electra": {"generator_width": 0.5, "weight": 1.0},
    "retromae": {"hide": 0.3},
    "exlm": {"states": 2, "mlm_share": 0.5},
}


def build(name: str, network: Encoder) -> Objective:
    made: Objective = OBJECTIVES.find(name)(network, seed=3, **OPTIONS[name])
    return made


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_low_precision_gives_nearly_the_same_loss_and_finite_gradients(name: str, ragged: bool) -> None:
    batch = examples.batch()
    network = examples.encoder(ragged=ragged, initializer_range=0.1)
    objective = build(name, network)
    precise = float(objective(batch).total.detach())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = objective(batch).total
    model = networks.tiny(examples.FAMILY, initializer_range=0.1).eval().bfloat16()
    pure = build(name, examples.encoder(ragged=ragged, model=model))
    low = pure(batch).total
    assert {weight.dtype for weight in pure.parameters()} == {torch.bfloat16}
    for loss, trained in ((mixed, objective), (low, pure)):
        assert float(loss.detach()) == pytest.approx(precise, rel=0.01)
        loss.backward()
        assert all(weight.grad is None or bool(weight.grad.isfinite().all()) for weight in trained.parameters())


@pytest.mark.parametrize("name", OPTIONS)
def test_it_learns(name: str) -> None:
    """Some steps on one batch take most of the loss away."""
    objective, batch = build(name, examples.encoder(initializer_range=0.1)), examples.batch()
    optimizer = torch.optim.Adam(objective.parameters(), lr=0.01)
    losses = []
    for _ in range(25):
        loss = objective(batch).total
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("name", OPTIONS)
def test_a_copy_has_the_same_loss_and_its_own_weights(name: str) -> None:
    objective, batch = build(name, examples.encoder()), examples.batch()
    twin = copy.deepcopy(objective)
    expected = objective(batch).total.detach()
    for weight in objective.parameters():
        weight.data.zero_()
    assert torch.equal(twin(batch).total.detach(), expected)
