"""Vectors of texts, against the plain forward pass of transformers."""

import numpy as np
import pytest
import torch
from tests import networks
from tests.laws import Arbitrary

import besag
from besag.embedding.embed import embed
from besag.engine import Engine
from besag.errors import BesagError

TEXTS = ["the cat", "the dogs don't sleep at night", "a mat", "the traveller sleeps"]


def loaded(family, **options):
    network = networks.tiny(family)
    return besag.load((network, networks.vocabulary(family).tokenizer), device="cpu", progress=False, **options)


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "besag", "albert"])
@pytest.mark.parametrize("layer", [None, 1, 0, -2])
def test_it_is_the_mean_over_the_tokens_of_the_text(family, layer):
    lm = loaded(family)
    found = lm.embed(TEXTS, layer)
    body = lm.model._modules[lm.model.base_model_prefix]
    for text, vector in zip(TEXTS, found, strict=True):
        [one] = lm.vocabulary.encode([text])
        ids = torch.from_numpy(one.ids)[None]
        with torch.no_grad():
            answer = body(input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True)
        states = answer[0] if layer is None else answer.hidden_states[layer]
        assert vector == pytest.approx(states[0][~torch.from_numpy(one.special)].mean(0).numpy(), abs=1e-5)


def test_batches_change_nothing_and_one_text_has_one_vector():
    whole, parts = loaded("bert").embed(TEXTS), loaded("bert", batch_tokens=3).embed(TEXTS)
    assert parts == pytest.approx(whole, abs=1e-5)
    assert loaded("bert").embed(TEXTS[1]) == pytest.approx(whole[1], abs=1e-5)


def test_the_first_token_may_stand_for_the_text():
    lm = loaded("bert")
    [first] = lm.embed(["the cat"], pool="first")
    [one] = lm.vocabulary.encode(["the cat"])
    ids = torch.from_numpy(one.ids)[None]
    with torch.no_grad():
        states = lm.model.bert(input_ids=ids, attention_mask=torch.ones_like(ids))[0][0]
    assert first == pytest.approx(states[0].numpy(), abs=1e-5)


def test_what_has_no_vector_is_refused():
    lm, in_blocks = loaded("bert"), networks.tiny("bert")
    in_blocks.config.besag_block_length = 4
    blocks = besag.load((in_blocks, networks.vocabulary("bert").tokenizer), device="cpu", progress=False)
    cases = {
        "layer=7: 'BertForMaskedLM' has the layers 0 (the tokens) to 2": lambda: lm.embed("the cat", 7),
        "'' has no token": lambda: lm.embed(["the cat", ""]),
        "are seen: cut it into parts": lambda: lm.embed("cat " * 100),
        "was trained block after block": lambda: blocks.embed("the cat"),
        "has no states of its own": lambda: embed(Engine(Arbitrary(3)), "s0"),
    }
    for said, run in cases.items():
        with pytest.raises(BesagError) as refused:
            run()
        assert said in str(refused.value)
    assert np.asarray(lm.embed([])).shape == (0, 32)
