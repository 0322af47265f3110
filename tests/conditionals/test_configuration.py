"""What a config may say: nothing that fetches or runs code, nothing without end; whatever else it says is refused."""

from __future__ import annotations

import json
import math
import shutil
import sys
import warnings
from pathlib import Path
from types import ModuleType

import huggingface_hub
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.configuration import MOST_BYTES, clean, read_json, reason, tokenizer_settings
from besag.conditionals.loading import describe, load_conditionals, read_vocabulary
from besag.errors import BesagError

SMALL = ("config.json", "tokenizer_config.json", "tokenizer.json")


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


@pytest.fixture(autouse=True)
def _no_kernels(monkeypatch):
    """Whoever asks for a kernel, or for code of a repository, fails the test."""

    def reached(*_, **__):
        pytest.fail("code was asked for")

    kernels = ModuleType("kernels")
    for name in ("get_kernel", "load_kernel", "kernelize", "get_local_kernel"):
        setattr(kernels, name, reached)
    monkeypatch.setitem(sys.modules, "kernels", kernels)
    from transformers.integrations import hub_kernels

    for name in ("get_kernel", "load_and_register_attn_kernel", "lazy_load_kernel"):
        monkeypatch.setattr(hub_kernels, name, reached, raising=False)
    for name in ("lazy_import_flash_attention",):
        monkeypatch.setattr(transformers.modeling_utils, name, reached)
    monkeypatch.setattr(transformers.dynamic_module_utils, "get_class_from_dynamic_module", reached)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "model"
    tiny("bert").save_pretrained(folder)
    vocabulary("bert").tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(whole, tmp_path) -> Path:
    shutil.copytree(whole, tmp_path / "model")
    return tmp_path / "model"


def edit(folder: Path, name: str = "config.json", **changes) -> Path:
    file = folder / name
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return folder


def refused(folder: Path) -> str:
    """By loading and by describing, with the same words."""
    with pytest.raises(BesagError) as caught:
        besag.load(folder, device="cpu")
    assert describe(folder)["why_not"] == str(caught.value)
    assert len(str(caught.value)) < 1000
    assert "\n" not in str(caught.value)
    return str(caught.value)


KERNELS = ["owner/kernel", "kernels-community/flash-attn", "flash_attention_2", "paged|sdpa", {"": "owner/kernel"}, 5]


@pytest.mark.parametrize("key", ["_attn_implementation", "attn_implementation", "_attn_implementation_internal"])
@pytest.mark.parametrize("value", KERNELS, ids=str)
def test_a_kernel_is_not_asked_for(folder, key, value):
    with pytest.warns(UserWarning, match=f"asks for {key}=.*besag fetches no code"):
        lm = besag.load(edit(folder, **{key: value}), device="cpu")
    assert lm.model.config._attn_implementation in ("sdpa", "eager")


@pytest.mark.parametrize("value", ["owner/kernel", "deepgemm"])
def test_kernels_of_experts_and_of_parts_are_not_asked_for(value):
    said = {"experts_implementation": value, "text_config": {"_attn_implementation": "owner/kernel", "hidden_size": 8}}
    with pytest.warns(UserWarning, match="besag fetches no code"):
        assert clean(said, "it") == {"text_config": {"hidden_size": 8}}


def test_attention_of_torch_is_left_alone(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert besag.load(edit(folder, _attn_implementation="eager"), device="cpu").model.config._attn_implementation


def test_what_leads_to_code_or_other_files_is_left_out(folder):
    edit(
        folder, auto_map={"AutoModelForMaskedLM": "owner/code--trap.Trap"}, transformers_weights="adapter_model.bin",
        kernel_config={"a": "owner/kernel"}, use_kernels=True, fusion_config={"x": True}, num_labels=10**9,
        trust_remote_code=True, configuration_files=["config.9.json"], base_model_name_or_path="owner/other",
    )  # fmt: skip
    config = besag.load(folder, device="cpu").model.config
    assert not hasattr(config, "auto_map")
    assert not hasattr(config, "transformers_weights")
    assert len(config.id2label) == 2


def test_quantised_weights_are_refused(folder):
    assert "quantised" in refused(edit(folder, quantization_config={"quant_method": "gptq", "bits": 4}))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"num_hidden_layers": 20_000}, "num_hidden_layers=20000, where besag takes 0 to 1,000"),
        ({"num_hidden_layers": -3}, "num_hidden_layers=-3"),
        ({"num_hidden_layers": 1}, "asks for fewer layers or parts than there are"),
        ({"num_attention_heads": 10**9}, "num_attention_heads=1000000000"),
        ({"vocab_size": 10**9}, "asks for 3"),
        ({"vocab_size": 10**18}, "cannot be built"),
        ({"vocab_size": -5}, "cannot be"),
        ({"hidden_size": 10**7}, "do not belong together"),
        ({"intermediate_size": 10**12}, "do not belong together"),
        ({"max_position_embeddings": 10**10}, "do not belong together"),
        ({"hidden_size": 10**30}, "cannot be"),
        ({"text_config": {"num_hidden_layers": 10**9}}, "num_hidden_layers=1000000000"),
        ({"hidden_size": "many"}, "cannot be"),
        ({"architectures": 5}, "architectures=5, not a list of names"),
        ({"architectures": [5]}, "not a list of names"),
        ({"model_type": 5}, "model_type=5"),
        ({"model_type": None}, "model_type=None"),
        ({"model_type": "nonesuch"}, "model_type='nonesuch'"),
        ({"tokenizer_class": "BertModel"}, "is no tokenizer"),
    ],
    ids=str,
)
def test_sizes_and_kinds_that_cannot_be(folder, said, words):
    assert words in refused(edit(folder, **said))


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "5", "null", "[" * 3000, '{"a":' * 3000, '{"hidden_size": ' + "9" * 5000 + "}", "\ufeff{}", "{}"],
    ids=lambda content: content[:9],
)
@pytest.mark.parametrize("name", SMALL)
def test_files_that_hold_something_else(folder, name, content):
    if (name, content) == ("tokenizer_config.json", "{}"):
        pytest.skip("says nothing, which is fine")
    (folder / name).write_text(content)
    assert refused(folder)


def test_bytes_that_are_no_text(folder):
    (folder / "config.json").write_bytes(b"\xff\xfe\x00")
    assert "the config.json of" in refused(folder)


def test_a_file_that_is_too_large(tmp_path):
    with open(tmp_path / "config.json", "wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(BesagError, match="over 64 MiB"):
        read_json(tmp_path / "config.json", "it")


def test_nested_deeply_but_readable(folder):
    nested: dict = {}
    for _ in range(200):
        nested = {"a": nested}
    assert "nested too deeply" in refused(edit(folder, deep=nested))


@pytest.mark.parametrize(("length", "words"), [("a", "no number"), (1, "no text fits"), ([], "no number")])
def test_a_length_that_is_none(folder, length, words):
    assert words in refused(edit(folder, "tokenizer_config.json", model_max_length=length))


@pytest.mark.parametrize(
    "said",
    [
        {"tokenizer_class": "AutoModel"},
        {"tokenizer_class": "BertModel"},
        {"tokenizer_class": "os.system"},
        {"tokenizer_class": 5},
        {"init_inputs": ["/etc/passwd"]},
        {"vocab": "/etc/passwd"},
        {"gguf_file": "../x.gguf"},
        {"fast_tokenizer_files": ["../tokenizer.4.json"]},
    ],
    ids=str,
)
def test_a_tokenizer_that_wants_something_else(folder, said):
    assert "the tokenizer_config.json of" in refused(edit(folder, "tokenizer_config.json", **said))


def test_a_tokenizer_with_code_of_its_own_is_read_without_it(folder):
    edit(folder, "tokenizer_config.json", auto_map={"AutoTokenizer": ["owner/code--trap.Trap", None]})
    assert describe(folder)["why_not"] == "" or "cannot be read" in describe(folder)["why_not"]


def test_files_of_a_tokenizer_are_those_of_its_folder(folder, tmp_path):
    (tmp_path / "secret.txt").write_text("[MASK]\nsecret\n")
    said = {"vocab_file": str(tmp_path / "secret.txt"), "tokenizer_file": "/home/someone/tokenizer.json"}
    edit(folder, "tokenizer_config.json", **said)
    assert tokenizer_settings(folder, "it") == {"vocab_file": None, "tokenizer_file": str(folder / "tokenizer.json")}
    assert "secret" not in read_vocabulary(folder, "it").tokenizer.get_vocab()


def test_a_tokenizer_of_other_tokens_than_the_network(folder):
    file = folder / "tokenizer.json"
    said = json.loads(file.read_text())
    said["model"]["vocab"]["further"] = 5_000
    file.write_text(json.dumps(said))
    with pytest.raises(BesagError, match="they do not belong together"):
        besag.load(folder, device="cpu")
    assert "they do not belong together" in describe(folder)["why_not"]


@pytest.mark.parametrize("path", ["a\0b", "\0", "./a\0b", "~nobody-of-that-name/x", "a" * 5000, ""])
@pytest.mark.parametrize("kind", [str, Path])
def test_names_that_no_folder_has(path, kind):
    with pytest.raises(BesagError):
        besag.load(kind(path), device="cpu")
    assert not describe(kind(path))["usable"] or path == ""


def test_a_reason_is_one_short_line():
    assert reason(ValueError("one\ntwo")) == "one"
    assert reason(ValueError()) == "ValueError"
    assert len(reason(ValueError("x" * 10_000))) < 310


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from([10**9, -1, 0]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def outcome(whole: Path, folder: Path, data: st.DataObject) -> str:
    """What comes of a model with other values in one of its files: why it is refused, or the status of a score."""
    name = data.draw(st.sampled_from(SMALL))
    said = json.loads((whole / name).read_text())
    keys = data.draw(st.lists(st.sampled_from(sorted(said)) | st.text(max_size=8), min_size=1, max_size=2))
    said.update({key: data.draw(VALUES) for key in keys})
    shutil.copytree(whole, folder)
    (folder / name).write_text(json.dumps(said))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        usable = describe(folder)["usable"]
        try:
            score = besag.load(load_conditionals(folder, device="cpu"), progress=False).score("The cat sat.")
        except BesagError as refused:
            return str(refused)
    if not usable:  # what can be loaded and is called unusable has a tokenizer that does not reach its vocabulary
        assert describe(folder)["why_not"]
    return "a number" if score.status == "ok" and math.isfinite(score.total) else f"no number: {score.status}"


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_any_value_in_any_file_is_used_or_refused(whole, tmp_path_factory, data):
    told = outcome(whole, tmp_path_factory.mktemp("mutant") / "model", data)
    assert told
    assert told != "no number: ok"
    assert len(told.splitlines()) == 1


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_many_values_in_any_file_are_used_or_refused(whole, tmp_path_factory, data):
    told = outcome(whole, tmp_path_factory.mktemp("mutant") / "model", data)
    assert told
    assert told != "no number: ok"
    assert len(told.splitlines()) == 1
