"""The probe against what is known of each family."""

from __future__ import annotations

import pytest
import torch
from tests.training.objectives import examples

from besag.errors import BesagError
from besag.training.network.patterns import require_patterns


@pytest.mark.parametrize("spread", [0.02, 0.5])  # a fresh network's weights, and wide ones
@pytest.mark.parametrize("family", ["modernbert", "bert", "roberta", "albert", "electra", "distilbert", "besag"])
def test_families_that_attend_by_what_they_are_told(family: str, spread: float) -> None:
    network = examples.encoder(family, initializer_range=spread).train()
    before = [weight.clone() for weight in network.parameters()]
    require_patterns(network, "block_diffusion")
    assert network.training
    assert all(map(torch.equal, network.parameters(), before))


def test_one_that_looks_at_the_whole_row_besides() -> None:
    """ESM rescales its embeddings by the share of masks in a row, whoever sees them."""
    with pytest.raises(BesagError, match=r"'block_diffusion' says which token sees which, and EsmForMaskedLM"):
        require_patterns(examples.encoder("esm"), "block_diffusion")


def test_one_that_takes_no_notice() -> None:
    network = examples.encoder("bert")
    plain = network._pattern
    network._pattern = lambda real, place, causal, seen: plain(real, place, causal, None)  # type: ignore[method-assign]
    with pytest.raises(BesagError, match="does not attend by what it is told"):
        require_patterns(network, "block_diffusion")
