"""New encoder-decoders begin and end where their tokenizer says, and a tokenizer without a mask is given one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests import networks
from tests.tokenizers import build
from tests.translation import pairs

import besag
from besag.conditionals.encoder_decoder import lift
from besag.errors import BesagError
from besag.training.network import decoders
from besag.training.network.networks import network
from besag.training.recipe import of_table
from besag.vocabulary import Vocabulary

WORDS = networks.vocabulary("bert")


def test_special_tokens_are_those_around_a_text() -> None:
    found = decoders.special_tokens(WORDS)
    known = WORDS.tokenizer
    assert (found["decoder_start_token_id"], found["eos_token_id"]) == (known.cls_token_id, known.sep_token_id)
    with pytest.raises(BesagError, match="puts no token after a text"):
        decoders.special_tokens(Vocabulary(networks.end_of_text_tokenizer()))


@pytest.mark.parametrize("family", networks.DECODER_FAMILIES)
def test_a_new_network_of_each_family(family: str, tmp_path: Path) -> None:
    pairs.write(tmp_path, 4)
    recipe = of_table(pairs.recipe(tmp_path, family), "here")
    made = network(recipe, WORDS)
    assert (made.config.besag_decoder, made.config.d_model) == ("masked", 32)
    if family != "t5":
        assert made.config.init_std == pytest.approx(32**-0.5)
    assert network(of_table(pairs.recipe(tmp_path, family, "causal"), "here"), WORDS).config.besag_decoder == "causal"


def test_a_left_to_right_checkpoint_is_trained_on_as_a_masked_one(tmp_path: Path) -> None:
    """Its tokenizer has no mask token, so one is added, and the network learns an embedding for it."""
    pairs.write(tmp_path, 40)
    tokenizer = build("wordpiece-uncased")
    tokenizer.mask_token = None
    model = networks.tiny_decoder("bart", dropout=0.0)
    model.save_pretrained(tmp_path / "start")
    tokenizer.save_pretrained(tmp_path / "start")
    said = pairs.recipe(tmp_path)
    said["tokenizer"], said["model"] = {}, {"start": str(tmp_path / "start"), "decoder": "masked"}
    result = besag.train(said, {"schedule.steps": 2}, output=tmp_path / "run", quiet=True)
    lm = besag.load(result.model, device="cpu")
    assert lm.conditionals.sees == "both"
    assert lm.vocabulary.mask_token is not None
    kept = lm.model.model.shared.weight[: WORDS.size]
    assert torch.allclose(kept, model.model.shared.weight, atol=0.1)  # two steps away
    said["model"] = {"start": str(result.model), "decoder": "causal"}
    with pytest.raises(BesagError, match="has a decoder that sees both sides"):
        besag.train(said, {"schedule.steps": 2}, output=tmp_path / "other", quiet=True)


def test_turned() -> None:
    assert decoders.turned(networks.tiny_decoder("t5"), "none").config.to_dict().get("besag_decoder") is None
    with pytest.raises(BesagError, match="sees both sides"):
        decoders.turned(lift(networks.tiny_decoder("bart")), "causal")
