"""From a left-to-right network to one that sees both sides: every weight kept, and the mask lifted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests import networks as tiny_networks
from tests import published
from tests.training import a_run
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig

import besag
from besag.errors import BesagError
from besag.training.network import causal_start
from besag.training.network.batch import Layout
from besag.training.run import train
from besag.training.run.build import build

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}


@pytest.fixture(scope="module")
def left_to_right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama whose tokenizer has neither a mask nor padding."""
    folder = tmp_path_factory.mktemp("llama")
    tokenizer = tiny_networks.end_of_text_tokenizer()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), **SIZES, num_key_value_heads=1, max_position_embeddings=64, initializer_range=0.5
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def recipe(folder: Path, start: Path, **changes: Any) -> Any:
    return a_run.small(
        folder, {"model": {"start": str(start), "config": {}}, "tokenizer": {"path": str(start)}, **changes}
    )


def test_every_weight_is_kept_and_the_mask_is_lifted(left_to_right: Path, tmp_path: Path) -> None:
    made = build(recipe(tmp_path / "out", left_to_right), device=torch.device("cpu"))
    assert type(made.model).__name__ == "EuroBertForMaskedLM"
    old = AutoModelForCausalLM.from_pretrained(left_to_right).eval()
    size = old.config.vocab_size
    assert made.vocabulary.mask_id == made.vocabulary.size - 1 >= size  # the only rows that are new
    kept = made.model.state_dict()
    for name, weight in old.state_dict().items():
        torch.testing.assert_close(kept[name][: len(weight)], weight, rtol=0, atol=0)
    ids = torch.arange(6) % size
    layout = Layout.of_lengths(torch.tensor([6]))
    made.encoder.eval()
    with torch.no_grad():
        states = made.encoder.states(ids, layout, causal=True)
        answers = made.encoder.logits(states)[:, :size]
        torch.testing.assert_close(answers, old(ids[None]).logits[0], rtol=1e-4, atol=1e-4)
        both = made.encoder.states(ids, layout)
        later = made.encoder.states(ids.index_fill(0, torch.tensor(5), 0), layout)
    assert float((both[0] - later[0]).abs().max()) > 1e-3  # the first place sees the last


def test_what_comes_out_of_a_run_answers_at_masks(left_to_right: Path, tmp_path: Path) -> None:
    done = train(recipe(tmp_path / "out", left_to_right, schedule={"steps": 2}), quiet=True)
    lm = besag.load(done.folder / "model", device="cpu")
    assert lm.vocabulary.mask_token == causal_start.MASK
    assert lm.score("The dog sees.").total < 0


def test_a_family_of_its_own_is_its_own_twin() -> None:
    config = tiny_networks.configuration("bert", is_decoder=True)
    config.architectures = ["BertLMHeadModel"]
    found = causal_start.twin(config, "some")
    assert found.model_type == "bert"
    assert not found.is_decoder
    assert found.hidden_size == config.hidden_size


def test_a_family_without_a_twin_is_refused() -> None:
    with pytest.raises(BesagError, match=r"'some' is a left-to-right gpt2, and no family has its layers"):
        causal_start.twin(tiny_networks.configuration("gpt2"), "some")


@pytest.mark.parametrize("family", ["qwen2", "qwen3"])
def test_qwen_becomes_a_masked_model_of_its_own_layers(family: str, tmp_path: Path) -> None:
    tokenizer = tiny_networks.end_of_text_tokenizer()
    config = AutoConfig.for_model(
        family, vocab_size=len(tokenizer), **SIZES, num_key_value_heads=1, max_position_embeddings=64
    )
    old = AutoModelForCausalLM.from_config(config).eval()
    old.save_pretrained(tmp_path / "qwen")
    tokenizer.save_pretrained(tmp_path / "qwen")
    done = train(recipe(tmp_path / "out", tmp_path / "qwen", schedule={"steps": 2}), quiet=True)
    lm = besag.load(done.folder / "model", device="cpu")
    assert lm.model.config.model_type == f"a2d-{family}"
    assert lm.score("The dog sees.").total < 0
    made = build(recipe(tmp_path / "again", tmp_path / "qwen"), device=torch.device("cpu"))
    ids = torch.arange(6)
    layout = Layout.of_lengths(torch.tensor([6]))
    made.encoder.eval()
    with torch.no_grad():
        predictions = made.encoder.logits(made.encoder.states(ids, layout, causal=True))[:, : len(tokenizer)]
        torch.testing.assert_close(predictions, old(ids[None]).logits[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["llada", "a2d-qwen3"])
def test_a_published_masked_model_is_trained_on(name: str, tmp_path: Path) -> None:
    start = published.write(tmp_path / name, name)
    changes = {"schedule": {"steps": 2}, "data": {"max_length": 24}}
    done = train(recipe(tmp_path / "out", start, **changes), quiet=True)
    lm = besag.load(done.folder / "model", device="cpu")
    assert lm.vocabulary.mask_token == published.MASK
    assert lm.score("The cats sleep on the mat .").total < 0
