"""Folders, hub names and pairs: what loads, what is refused and why, and what is said without loading."""

from __future__ import annotations

import gc
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.networks import end_of_text_tokenizer, tiny, vocabulary
from transformers import BertForPreTraining, BertForSequenceClassification, BertLMHeadModel, BertModel, T5Config
from transformers.utils import logging

from besag.conditionals import loading
from besag.conditionals.causal import Causal
from besag.conditionals.contract import Questions
from besag.conditionals.loading import describe, load_conditionals
from besag.conditionals.network import gap
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError

ROUND_TRIPS = ("bert", "roberta", "albert", "modernbert", "esm", "deberta-v2", "electra", "besag")


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch):
    """Every name that is no folder meets a hub that cannot be reached, whatever the machine."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


def save(model, folder: Path, tokenizer=None) -> Path:
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    logging.enable_progress_bar()
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
    return folder


def saved(family: str, folder: Path, **changes) -> Path:
    return save(tiny(family, **changes), folder, vocabulary(family).tokenizer)


@pytest.fixture
def bert(tmp_path) -> Path:
    return saved("bert", tmp_path / "bert")


def pickled(folder: Path) -> Path:
    """The same weights as a pickle."""
    weights = folder / "model.safetensors"
    torch.save(load_file(weights), folder / "pytorch_model.bin")
    weights.unlink()
    return folder


def edit(folder: Path, **changes) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return folder


def drop_weights(folder: Path, *ends: str) -> Path:
    weights = load_file(folder / "model.safetensors")
    kept = {name: weight for name, weight in weights.items() if not name.endswith(ends)}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def refusal(model, **options) -> str:
    with pytest.raises(BesagError) as caught:
        load_conditionals(model, device="cpu", **options)
    return str(caught.value)


def answers(who) -> torch.Tensor:
    ids = torch.arange(5, 12)[None]
    ids[0, 3] = who.vocabulary.mask_id if who.sees == "both" else 0
    with torch.no_grad():
        return who.head(who.rows(Questions(ids, torch.tensor([0]), torch.tensor([3]))))


@pytest.mark.parametrize("family", ROUND_TRIPS)
def test_a_folder_says_what_the_network_that_was_saved_says(family, tmp_path):
    model = tiny(family)
    save(model, tmp_path, vocabulary(family).tokenizer)
    who = load_conditionals(tmp_path, device="cpu")
    assert isinstance(who, Transformer)
    assert (who.name, who.dtype, who.device) == (str(tmp_path), torch.float32, torch.device("cpu"))
    assert gap(answers(who), answers(Transformer(model, vocabulary(family)))) < 1e-5


@pytest.mark.parametrize("part", ["gate", "layer_weights"])
def test_a_config_that_switches_a_stored_part_off_is_refused(part, tmp_path):
    said = refusal(edit(saved("besag", tmp_path), **{part: False}))
    assert "stored weights out" in said
    assert "fewer layers or parts than there are" in said


def test_a_part_that_is_not_stored_is_not_made_up(tmp_path):
    assert "lacks 2 weights" in refusal(drop_weights(saved("besag", tmp_path), "mixes.0.weight", "0.attn.gate.bias"))


def test_a_causal_folder(tmp_path):
    who = load_conditionals(str(saved("gpt2", tmp_path)), device="cpu", name="mine")
    assert isinstance(who, Causal)
    assert (who.name, who.sees, who.bos_id) == ("mine", "left", who.vocabulary.size - 1)


def test_a_bert_saved_as_a_causal_model_is_causal(tmp_path):
    config = tiny("bert", is_decoder=True).config
    save(BertLMHeadModel(config), tmp_path, vocabulary("bert").tokenizer)
    assert load_conditionals(tmp_path, device="cpu").sees == "left"


def test_a_network_with_more_heads_than_are_used(tmp_path):
    save(BertForPreTraining(tiny("bert").config), tmp_path, vocabulary("bert").tokenizer)
    assert load_conditionals(tmp_path, device="cpu").sees == "both"
    assert describe(tmp_path)["usable"]


def test_the_dtype_is_the_one_asked_for(bert):
    assert load_conditionals(bert, device="cpu", dtype="float64").dtype == torch.float64


def test_the_embedded_model():
    from besag import models

    who = load_conditionals(models.path(), device="cpu")
    facts = describe(models.path())
    assert facts["usable"]
    assert (facts["width"], facts["max_length"], facts["kind"]) == (who.width, who.max_length, "masked")


def test_sharded_weights(tmp_path):
    tiny("bert").save_pretrained(tmp_path, max_shard_size="20KB")
    vocabulary("bert").tokenizer.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors.index.json").is_file()
    assert load_conditionals(tmp_path, device="cpu").split
    assert describe(tmp_path)["parameters"] == sum(weight.numel() for weight in tiny("bert").parameters())


def test_a_pair():
    model = tiny("bert")
    who = load_conditionals((model, vocabulary("bert").tokenizer))
    assert isinstance(who, Transformer)
    assert who.model is model
    assert who.dtype == torch.float32
    doubled = load_conditionals((model, vocabulary("bert").tokenizer), dtype="float64", device="cpu")
    assert doubled.dtype == torch.float64
    assert isinstance(load_conditionals((tiny("gpt2"), end_of_text_tokenizer())), Causal)


def test_a_pair_in_a_precision_that_this_processor_cannot_run(monkeypatch):
    monkeypatch.setattr("besag.hardware.cpu_failure", lambda dtype: "the trial died")
    with pytest.warns(UserWarning, match="the trial died"):
        found = load_conditionals((tiny("bert").bfloat16(), vocabulary("bert").tokenizer))
    assert found.dtype == torch.float32


def test_a_pair_that_is_none():
    words = vocabulary("bert").tokenizer
    assert "a tuple of 3" in refusal((tiny("bert"), words, words))
    assert "and a tokenizer" in refusal((tiny("bert"), words), tokenizer=words)
    assert "a str is none of either" in refusal((tiny("bert"), "bert"))
    assert "a str is none of either" in refusal(("bert", words))
    assert "not a BertForMaskedLM" in refusal(tiny("bert"))
    assert "no head" in refusal((BertModel(tiny("bert").config), words))


@pytest.mark.parametrize("how", ["built", "folder"])
def test_a_tokenizer_from_elsewhere(tmp_path, how):
    folder = save(tiny("bert"), tmp_path / "network")
    words = vocabulary("bert").tokenizer
    words.save_pretrained(tmp_path / "words")
    who = load_conditionals(folder, tokenizer=words if how == "built" else tmp_path / "words", device="cpu")
    assert who.vocabulary.size == len(words)


def test_missing_head_weights_are_named_not_made_up(tmp_path):
    save(BertModel(tiny("bert").config), tmp_path, vocabulary("bert").tokenizer)
    message = refusal(tmp_path)
    assert "random numbers" in message
    assert "cls.predictions.transform.dense.weight" in message
    assert "It was saved from a BertModel." in message
    assert describe(tmp_path)["why_not"] == message


def test_a_missing_weight_of_the_body_is_refused(bert):
    drop_weights(bert, "layer.1.attention.self.key.weight")
    message = refusal(bert)
    assert "lacks 1 weights" in message
    assert "bert.encoder.layer.1.attention.self.key.weight" in message


def test_a_missing_decoder_that_is_not_tied_is_refused(tmp_path):
    folder = saved("bert", tmp_path, tie_word_embeddings=False)
    assert load_conditionals(folder, device="cpu")
    assert "cls.predictions.decoder.weight" in refusal(drop_weights(folder, "cls.predictions.decoder.weight"))


def test_a_missing_pooler_is_no_harm(tmp_path):
    save(tiny("megatron-bert"), tmp_path, vocabulary("megatron-bert").tokenizer)
    assert load_conditionals(tmp_path, device="cpu")


def test_weights_of_another_shape_are_refused(bert):
    message = refusal(edit(bert, intermediate_size=64))
    assert "(48, 32)" in message or "(48,)" in message
    assert "do not belong together" in message
    assert describe(bert)["why_not"] == message


def test_a_classifier_is_refused(tmp_path):
    save(BertForSequenceClassification(tiny("bert").config), tmp_path, vocabulary("bert").tokenizer)
    assert "It was saved from a BertForSequenceClassification." in refusal(tmp_path)


def test_an_encoder_decoder_without_a_head_is_refused(tmp_path):
    T5Config(architectures=["T5ForSequenceClassification"]).save_pretrained(tmp_path)
    message = refusal(tmp_path)
    assert "(T5ForSequenceClassification) cannot be used: it is an encoder-decoder without a head" in message
    assert describe(tmp_path)["kind"] == "neither"


def test_a_family_without_a_language_model_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "vit"}))
    assert "the family 'vit' has no masked or causal language model" in refusal(tmp_path)


def test_a_pickle_is_refused_and_then_allowed(bert):
    before = answers(load_conditionals(bert, device="cpu"))
    pickled(bert)
    message = refusal(bert)
    assert "only as a pickle" in message
    assert "can run any program" in message
    assert "allow_pickle=True" in message
    facts = describe(bert)
    assert (facts["usable"], facts["why_not"]) == (False, message)
    assert gap(answers(load_conditionals(bert, device="cpu", allow_pickle=True)), before) < 1e-5


def test_a_pickle_beside_safetensors_is_not_read(bert):
    (bert / "pytorch_model.bin").write_bytes(b"no pickle at all")
    assert load_conditionals(bert, device="cpu", allow_pickle=True)


def test_no_weights(bert):
    (bert / "model.safetensors").unlink()
    assert "has no weights as safetensors" in refusal(bert)
    assert "has no weights as safetensors" in refusal(bert, allow_pickle=True)


def test_broken_weights(bert):
    (bert / "model.safetensors").write_bytes(b"nothing of the kind")
    assert "the weights of" in refusal(bert)
    assert describe(bert)["why_not"] == refusal(bert)


def test_no_tokenizer(tmp_path):
    save(tiny("bert"), tmp_path)
    message = refusal(tmp_path)
    assert "holds no tokenizer" in message
    assert "tokenizer=" in message


def test_a_tokenizer_that_lost_its_vocabulary(bert):
    for file in ("tokenizer.json", "vocab.txt"):
        (bert / file).unlink(missing_ok=True)
    assert "its vocabulary is missing" in refusal(bert)


def test_a_tokenizer_that_cannot_be_read(bert):
    (bert / "tokenizer.json").write_text("{")
    assert "the tokenizer of" in refusal(bert)


def test_a_tokenizer_of_another_network(tmp_path):
    folder = saved("bert", tmp_path)
    folder = save(tiny("bert", vocab_size=vocabulary("bert").size - 5), folder)
    message = refusal(folder)
    assert f"the id {vocabulary('bert').size - 1}" in message
    assert f"0 … {vocabulary('bert').size - 6}" in message
    assert not describe(folder)["usable"]


def test_a_masked_network_whose_tokenizer_has_no_mask(tmp_path):
    save(tiny("bert", vocab_size=300), tmp_path, end_of_text_tokenizer())
    assert "no mask token" in refusal(tmp_path)
    assert "no mask token" in describe(tmp_path)["why_not"]


def test_no_config(bert):
    (bert / "config.json").unlink()
    assert "holds no config.json" in refusal(bert)
    assert "its folder 'inner' has one" in refusal(saved("bert", bert.parent / "outer" / "inner").parent)


@pytest.mark.parametrize("content", ["{", "{}", '{"model_type": "nonesuch"}'])
def test_a_config_that_cannot_be_used(bert, content):
    (bert / "config.json").write_text(content)
    assert "the config.json of" in refusal(bert)


def test_code_that_comes_with_a_model_is_not_run(bert):
    (bert / "trap.py").write_text("raise SystemExit('this was run')")
    edit(bert, model_type="nonesuch", auto_map={"AutoConfig": "trap.Trap", "AutoModelForMaskedLM": "trap.Trap"})
    assert "besag never runs code" in refusal(bert)


def test_a_file_is_no_folder(bert):
    assert "is a file; give the folder that holds it" in refusal(bert / "config.json")


def test_a_folder_that_does_not_exist_gets_the_nearest(bert):
    message = refusal(bert.parent / "brt")
    assert "there is no folder" in message
    assert "Did you mean 'bert'?" in message
    assert "there is no folder './no/such/thing'" in refusal("./no/such/thing")
    assert "there is no folder 'a sentence" in refusal("a sentence " * 500)


@pytest.mark.parametrize("revision", [None, "v2"])
def test_a_hub_name_that_cannot_be_reached_is_quoted(revision):
    message = refusal("nobody/no-such-model", revision=revision)
    assert "'nobody/no-such-model'" in message
    assert "could not be fetched from the Hugging Face hub" in message
    assert (revision is None) or "'v2'" in message
    assert describe("nobody/no-such-model")["usable"] is False


def test_a_hub_name_becomes_its_cached_folder(bert, monkeypatch):
    asked = {}

    def download(name, *, revision, allow_patterns):
        asked.update(name=name, revision=revision, patterns=allow_patterns)
        return str(bert)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    who = load_conditionals("owner/model", revision="v2", device="cpu")
    assert who.name == "owner/model"
    assert (asked["name"], asked["revision"]) == ("owner/model", "v2")
    assert "model.safetensors" in asked["patterns"]
    assert not any(pattern.endswith(".bin") for pattern in asked["patterns"])
    describe("owner/model")
    assert "model.safetensors" not in asked["patterns"]
    load_conditionals("owner/model", device="cpu", allow_pickle=True)
    assert "pytorch_model.bin" not in asked["patterns"]
    pickled(bert)
    load_conditionals("owner/model", device="cpu", allow_pickle=True)
    assert "pytorch_model.bin" in asked["patterns"]


def test_a_hub_name_is_described_from_the_headers_of_its_weights(bert, monkeypatch):
    weights = load_file(bert / "model.safetensors")
    (bert / "model.safetensors").unlink()
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(bert))
    assert "what weights 'owner/model' has could not be asked" in describe("owner/model")["why_not"]
    file = SimpleNamespace(tensors={key: SimpleNamespace(shape=list(weight.shape)) for key, weight in weights.items()})
    headers = SimpleNamespace(files_metadata={"model.safetensors": file})
    monkeypatch.setattr(huggingface_hub, "get_safetensors_metadata", lambda *_, **__: headers)
    facts = describe("owner/model")
    assert facts["usable"]
    assert facts["parameters"] == sum(weight.numel() for weight in weights.values())

    def none(*_, **__):
        raise huggingface_hub.errors.NotASafetensorsRepoError("none")

    monkeypatch.setattr(huggingface_hub, "get_safetensors_metadata", none)
    monkeypatch.setattr(huggingface_hub, "file_exists", lambda *_, **__: False)  # nor in eight bits
    assert "has no weights as safetensors" in describe("owner/model")["why_not"]


def test_describe(bert):
    size = vocabulary("bert").size
    assert describe(bert) == {
        "name": str(bert),
        "architecture": "BertForMaskedLM",
        "kind": "masked",
        "parameters": sum(weight.numel() for weight in tiny("bert").parameters()),
        "vocabulary": size,
        "width": size,
        "max_length": 40,
        "mask_token": "[MASK]",
        "shift": False,
        "usable": True,
        "why_not": "",
    }


@pytest.mark.parametrize("family", [*ROUND_TRIPS, "gpt2"])
def test_describe_agrees_with_loading(family, tmp_path):
    folder = saved(family, tmp_path, vocab_size=vocabulary(family).size + 7)
    facts, who = describe(folder), load_conditionals(folder, device="cpu")
    assert facts["usable"]
    assert facts["kind"] == ("masked" if who.sees == "both" else "causal")
    assert (facts["width"], facts["max_length"]) == (who.width, who.max_length)
    assert facts["vocabulary"] == who.vocabulary.size


def test_loading_is_silent_and_leaves_the_users_settings(bert, capfd):
    logging.set_verbosity_info()
    try:
        load_conditionals(bert, device="cpu")
        describe(bert)
        drop_weights(bert, "layer.1.attention.self.key.weight")
        refusal(bert)
        assert logging.get_verbosity() == logging.INFO
        assert logging.is_progress_bar_enabled()
    finally:
        logging.set_verbosity_warning()
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_progress_bars_that_were_off_stay_off(bert):
    logging.disable_progress_bar()
    try:
        load_conditionals(bert, device="cpu")
        assert not logging.is_progress_bar_enabled()
        assert huggingface_hub.utils.are_progress_bars_disabled()
    finally:
        logging.enable_progress_bar()


def test_a_home_folder_is_found(bert, monkeypatch):
    monkeypatch.setenv("HOME", str(bert.parent))
    shutil.move(bert, bert.parent / "there")
    assert load_conditionals("~/there", device="cpu").name == "~/there"


def test_no_garbage_is_looked_for_while_loading_and_afterwards_as_before(bert, monkeypatch):
    collecting: list[bool] = []
    read_config = loading.read_config
    monkeypatch.setattr(loading, "read_config", lambda *a: [collecting.append(gc.isenabled()), read_config(*a)][1])
    load_conditionals(bert)
    assert gc.isenabled()
    (bert / "config.json").unlink()
    with pytest.raises(BesagError, match=r"holds no config\.json"):
        load_conditionals(bert)
    assert gc.isenabled()
    gc.disable()
    try:
        with pytest.raises(BesagError):
            load_conditionals(bert)
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert collecting == [False] * 3
