"""The length's loss stands beside the objective's, the source is read once, and the head is saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.objectives import beside

from besag.conditionals.length_head import LengthHead
from besag.training.objectives.correct import Correct
from besag.training.objectives.glance import Glance
from besag.training.objectives.mlm import MLM
from besag.training.objectives.translation import Translation
from besag.training.objectives.unroll import Unroll

SIZES = (5, 2, 7)  # of the targets, without two special tokens


def test_the_loss_by_hand() -> None:
    network, batch = beside.translator(most=10), beside.batch()
    assert network.length_head is not None
    torch.nn.init.normal_(network.length_head.linear.weight)
    plain = MLM(network)(batch).total
    loss = Translation(MLM(network), special=2, weight=0.3)(batch)
    ids, layout = batch.layout.source or (None, None)
    lengths = []
    for row, size in enumerate(SIZES):
        with torch.no_grad():
            memory = network.core.read(ids[layout.row == row][None])
            lengths.append(-float(network.length_head(memory)[0, size - 1]))
    mean = sum(lengths) / 3
    assert float(loss.logs["length_loss"]) == pytest.approx(mean, rel=1e-3)
    by_hand = float(plain.detach()) + 0.3 * float(batch.weight.sum()) * mean
    assert float(loss.total.detach()) == pytest.approx(by_hand, rel=1e-4)


def test_a_source_is_read_once_for_all_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    network, batch = beside.translator(most=10), beside.batch()
    read, times = network.core.read, []
    monkeypatch.setattr(network.core, "read", lambda *given: (times.append(1), read(*given))[1])
    Translation(Unroll(network, stages=3, corrupt="mask"), special=2, weight=1.0)(batch).total.backward()
    assert len(times) == 1


@pytest.mark.parametrize("objective", [Correct, Glance])
def test_the_encoder_learns_though_the_first_guess_does_not(objective: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source is read for the guess, and what was made of it serves the loss: with a gradient, as if read anew."""
    network, batch = beside.translator(), beside.batch()
    weight = network.model.model.encoder.layers[0].fc1.weight
    objective(network)(batch).total.backward()
    anew = weight.grad.clone()
    network.zero_grad()
    read, times = network.core.read, []
    monkeypatch.setattr(network.core, "read", lambda *given: (times.append(1), read(*given))[1])
    Translation(objective(network), special=2, weight=0.0)(batch).total.backward()
    assert len(times) == 1
    assert float(anew.abs().sum()) > 0
    torch.testing.assert_close(weight.grad, anew)


def test_the_encoder_learns_from_the_length() -> None:
    network, batch = beside.translator(most=10), beside.batch()
    torch.nn.init.normal_(network.length_head.linear.weight)  # type: ignore[union-attr]
    weight = network.model.model.encoder.layers[0].fc1.weight
    gradients = []
    for share in (0.0, 5.0):
        network.zero_grad()
        Translation(MLM(network), special=2, weight=share)(batch).total.backward()
        gradients.append(weight.grad.clone())
    assert not torch.allclose(*gradients)


def test_saved_beside_the_model(tmp_path: Path) -> None:
    network = beside.translator(most=10)
    Translation(MLM(network), special=2, weight=1.0).save_extras(tmp_path)
    assert LengthHead.load(tmp_path, "mine").most == 10
    without = Translation(MLM(beside.translator()), special=2, weight=1.0)
    without.save_extras(tmp_path / "nowhere")  # which has none, and writes none
    assert without(beside.batch()).logs == {}
