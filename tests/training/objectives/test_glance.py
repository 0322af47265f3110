"""As many true tokens are shown as the ratio of wrong guesses says, and the hidden ones are asked."""

from __future__ import annotations

import pytest
import torch
from tests.training.objectives import beside

from besag.errors import BesagError
from besag.training.objectives.glance import Glance


def test_what_is_shown_follows_from_the_first_guess() -> None:
    network, batch = beside.translator(), beside.batch()
    hidden = batch.ids.masked_fill(batch.free, network.mask_id)
    guess = beside.log_probs(network, hidden, batch).argmax(-1)
    objective = Glance(network, ratio=0.6, end_ratio=0.2)
    wrong = objective.wrong(batch)
    torch.testing.assert_close(wrong, batch.free & (guess != batch.ids))
    for progress, ratio in ((0.0, 0.6), (0.5, 0.4), (1.0, 0.2)):
        asked = objective.hidden(batch._replace(progress=progress), wrong)
        for row in range(3):
            mine = batch.layout.row == row
            shown = int((batch.free & ~asked & mine).sum())
            assert shown == int(ratio * int(wrong[mine].sum()) + 1e-9)


def test_a_network_that_guesses_all_is_shown_nothing() -> None:
    network, batch = beside.translator(), beside.batch()
    objective = Glance(network)
    torch.testing.assert_close(objective.hidden(batch, torch.zeros_like(batch.free)), batch.free)


def test_the_loss_by_hand() -> None:
    network, batch = beside.translator(), beside.batch()
    objective = Glance(network)
    hidden = objective.hidden(batch, objective.wrong(batch))
    log_probs = beside.log_probs(network, batch.ids.masked_fill(hidden, network.mask_id), batch)
    places = hidden.nonzero()[:, 0].tolist()
    mean = -sum(float(log_probs[place, batch.ids[place]]) for place in places) / len(places)
    loss = objective(batch)
    assert float(loss.total.detach()) == pytest.approx(mean * float(batch.weight.sum()), rel=1e-3)
    assert 0 <= float(loss.logs["guessed_wrong"]) <= 1


@pytest.mark.parametrize("ratio", [-0.1, 1.0])
def test_a_ratio_that_asks_nothing_is_refused(ratio: float) -> None:
    with pytest.raises(BesagError, match="from 0 to below 1"):
        Glance(beside.translator(), ratio=ratio)
