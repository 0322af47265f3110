"""Shown tokens that are replaced are the network's own guesses, and are asked for beside the hidden ones."""

from __future__ import annotations

import pytest
import torch
from tests.training.objectives import beside

from besag.errors import BesagError
from besag.training.objectives.correct import Correct


def test_replaced_are_guesses_at_shown_places() -> None:
    network, batch = beside.translator(), beside.batch()
    inputs, where = Correct(network, share=0.7, seed=2).replaced(batch)
    assert len(where)
    assert not torch.isin(where, batch.asked).any()
    assert bool(batch.free[where].all())
    guess = beside.log_probs(network, batch.ids.masked_fill(batch.free, network.mask_id), batch)
    guess[:, sorted({*network.special_ids, network.mask_id})] = -torch.inf
    torch.testing.assert_close(inputs[where], guess.argmax(-1)[where])
    others = torch.ones_like(batch.free).index_fill_(0, where, False)
    torch.testing.assert_close(inputs[others], batch.inputs[others])


def test_the_loss_by_hand() -> None:
    network, batch = beside.translator(), beside.batch()
    objective = Correct(network, share=0.7, weight=0.5, seed=2)
    inputs, where = objective.replaced(batch)
    log_probs = beside.log_probs(network, inputs, batch)
    nll = -log_probs[torch.arange(len(batch.ids)), batch.ids]
    by_hand = float((nll[batch.asked] * batch.weight).sum() + 0.5 * nll[where].sum())
    assert float(objective(batch).total.detach()) == pytest.approx(by_hand, rel=1e-3)


def test_all_shown_can_be_replaced() -> None:
    network, batch = beside.translator(), beside.batch()
    _, where = Correct(network, share=1.0).replaced(batch)
    assert len(where) == int(batch.free.sum()) - len(batch.asked.unique())


@pytest.mark.parametrize(("option", "value"), [("share", 0.0), ("share", 1.5), ("weight", -1.0)])
def test_options_out_of_bounds(option: str, value: float) -> None:
    with pytest.raises(BesagError, match=f"{option}="):
        Correct(beside.translator(), **{option: value})
