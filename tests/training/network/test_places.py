"""The probe against what is known of each family."""

from __future__ import annotations

import pytest
import torch
from tests.training.objectives import examples

from besag.errors import BesagError
from besag.training.network.batch import Layout
from besag.training.network.places import require_numbered_places


@pytest.mark.parametrize("spread", [0.02, 0.5])  # a fresh network's weights, and wide ones
@pytest.mark.parametrize("family", ["modernbert", "bert", "roberta", "albert", "electra", "distilbert", "besag"])
def test_families_that_are_told_their_positions(family: str, spread: float) -> None:
    """They are let through, and rightly: a token's state is the same in another column with the same number."""
    encoder = examples.encoder(family, initializer_range=spread).eval()
    require_numbered_places(encoder, "mae")
    ids, position = torch.tensor([5, 6, 7, 8]), torch.tensor([0, 2, 3, 7])
    turn, bounds = torch.tensor([2, 0, 3, 1]), torch.tensor([0, 4], dtype=torch.int32)
    with torch.no_grad():
        plain, turned = (
            encoder.states(ids[at], Layout(bounds, torch.zeros(4, dtype=torch.long), position[at], 4))
            for at in (torch.arange(4), turn)
        )
    torch.testing.assert_close(turned, plain[turn], atol=1e-5, rtol=1e-4)
    assert (plain[0] - plain[1]).abs().max() > 0


@pytest.mark.parametrize("spread", [0.02, 0.5])
@pytest.mark.parametrize("family", ["deberta-v2", "mpnet"])
def test_families_that_count_columns(family: str, spread: float) -> None:
    with pytest.raises(BesagError, match=r"'mae' leaves places out or moves them.* by their columns"):
        require_numbered_places(examples.encoder(family, initializer_range=spread), "mae")


def test_the_probe_leaves_the_network_as_it_was() -> None:
    network = examples.encoder("bert", ragged=True).train().bfloat16()
    before = [weight.clone() for weight in network.parameters()]
    require_numbered_places(network, "mae")
    assert network.training
    assert all(map(torch.equal, network.parameters(), before))
