"""mlm against transformers' own forward, one sequence at a time."""

from __future__ import annotations

import pytest
import torch
from tests import networks
from tests.training.objectives import examples

from besag.training.objectives.mlm import MLM


@pytest.mark.parametrize("family", networks.MASKED_FAMILIES)
def test_the_loss_is_the_weighted_sum_over_asked_tokens(family: str) -> None:
    network, batch = examples.encoder(family), examples.batch(family=family)
    network.watched = True
    loss = MLM(network)(batch)
    log_probs = examples.plain(network, batch.inputs, batch.layout)
    by_hand = -sum(
        float(weight) * float(log_probs[place, batch.ids[place]])
        for place, weight in zip(batch.asked.tolist(), batch.weight.tolist(), strict=True)
    )
    assert float(loss.total.detach()) == pytest.approx(by_hand, rel=1e-4)
    assert loss.predicted is not None
    torch.testing.assert_close(loss.predicted.correct, log_probs.argmax(-1)[batch.asked] == batch.ids[batch.asked])


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_ragged_and_padded_batches_have_one_loss_and_gradient(family: str) -> None:
    batch = examples.batch(family=family)
    padded, ragged = examples.encoder(family), examples.encoder(family, ragged=True)
    losses = [MLM(network)(batch).total for network in (padded, ragged)]
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-5, atol=1e-5)
    gradients = [examples.gradient(loss, network) for loss, network in zip(losses, (padded, ragged), strict=True)]
    assert float(gradients[0].abs().max()) > 1e-3
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-4)
