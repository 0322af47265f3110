"""Which families can be run end to end is found out, not known."""

from __future__ import annotations

import pytest
import torch
from tests import networks as tiny_networks
from tests.training.network.test_encoder import RAGGED

from besag.training.network.networks import can_be_ragged


@pytest.mark.parametrize("family", tiny_networks.MASKED_FAMILIES)
def test_a_network_that_looks_past_its_attention_is_run_padded(family: str) -> None:
    model = tiny_networks.tiny(family).train()
    before = model.config._attn_implementation
    state = torch.get_rng_state()
    assert can_be_ragged(model, tiny_networks.vocabulary(family)) is (family in RAGGED)
    assert model.config._attn_implementation == before
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
