"""Which families can be run end to end is found out, not known."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests import networks as tiny_networks
from tests.training.network.test_encoder import RAGGED

from besag.errors import BesagError
from besag.training.network.networks import can_be_ragged, network, refuse_unrelated
from besag.training.recipe import recipe_of


@pytest.mark.parametrize("family", tiny_networks.MASKED_FAMILIES)
def test_a_network_that_looks_past_its_attention_is_run_padded(family: str) -> None:
    model = tiny_networks.tiny(family).train()
    before = model.config._attn_implementation
    state = torch.get_rng_state()
    assert can_be_ragged(model, tiny_networks.vocabulary(family)) is (family in RAGGED)
    assert model.config._attn_implementation == before
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)


def test_a_tokenizer_that_calls_a_row_something_else_is_refused(tmp_path: Path) -> None:
    own, other = tiny_networks.vocabulary("bert"), tiny_networks.vocabulary("esm")
    assert other.size < own.size  # every id has a row: nothing else would stop it
    own.tokenizer.save_pretrained(tmp_path / "start")
    refuse_unrelated(str(tmp_path / "start"), "same", own, own.size)
    with pytest.raises(BesagError, match=r"'other' is not the tokenizer of model.start = .*: token 0 is '<cls>' there"):
        refuse_unrelated(str(tmp_path / "start"), "other", other, own.size)
    (tmp_path / "bare").mkdir()  # weights without a tokenizer: rows tell, a table rounded up passes
    refuse_unrelated(str(tmp_path / "bare"), "other", other, other.size + 40)
    with pytest.raises(BesagError, match=rf"it has {other.size} tokens and the network 30522"):
        refuse_unrelated(str(tmp_path / "bare"), "other", other, 30522)


def test_a_network_of_blocks_is_an_ordinary_one_to_go_on_from(tmp_path: Path) -> None:
    """In which blocks it will be asked is said by what it is trained with now, and by nothing that it was before."""
    model, words = tiny_networks.tiny("besag"), tiny_networks.vocabulary("besag")
    model.config.besag_block_length = 4
    model.save_pretrained(tmp_path)
    words.tokenizer.save_pretrained(tmp_path)
    said = {"data": {"train": ["a.txt"], "max_length": 16}, "schedule": {"steps": 1}}
    recipe = recipe_of({**said, "model": {"start": str(tmp_path)}})
    assert not hasattr(network(recipe, words).config, "besag_block_length")
