"""Teacher forcing against transformers' own loss, and which token is asked where."""

from __future__ import annotations

import pytest
import torch
from tests import networks
from tests.training.objectives import beside

from besag.training.network.batch import Layout
from besag.training.objectives.causal import CausalTarget, forced


def test_what_is_given_and_what_is_asked() -> None:
    ids, layout = torch.tensor([2, 7, 8, 3, 2, 9, 3]), Layout.of_lengths(torch.tensor([4, 3]))
    given, asked, kept = forced(ids, layout, 2)
    assert given.tolist() == [2, 7, 8, 2, 9]
    assert asked.tolist() == [7, 8, 3, 9, 3]
    assert kept.bounds.tolist() == [0, 3, 5]
    given, asked, _ = forced(ids, layout, 3)  # another start: what the tokenizer puts first is asked for too
    assert given.tolist() == [3, 2, 7, 8, 3, 2, 9]
    assert asked.tolist() == ids.tolist()


@pytest.mark.parametrize("family", networks.DECODER_FAMILIES)
def test_the_mean_over_all_targets_and_their_ends(family: str) -> None:
    network, batch = beside.translator(family, "causal"), beside.batch()
    log_probs = beside.log_probs(network, batch.ids, batch, causal=True)
    first = batch.layout.bounds[:-1].tolist()
    asked = [place for place in range(len(batch.ids)) if place not in first]
    mean = -sum(float(log_probs[place - 1, batch.ids[place]]) for place in asked) / len(asked)
    network.watched = True
    loss = CausalTarget(network)(batch)
    assert float(loss.total.detach()) == pytest.approx(mean * float(batch.weight.sum()), rel=1e-4)
    assert loss.predicted is not None
    assert len(loss.predicted.ids) == len(asked)
    network.watched = False
    torch.testing.assert_close(CausalTarget(network)(batch).total, loss.total)
