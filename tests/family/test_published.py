"""Published architectures compared with what their published code returns for the same weights and tokens."""

import json

import pytest
import torch
from safetensors.torch import load_file
from tests.family import published

import besag
from besag.conditionals.loading import describe


@pytest.fixture(scope="module", params=published.MODELS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def folder(name, tmp_path_factory):
    return published.write(name, tmp_path_factory.mktemp(name) / "published")


@pytest.fixture(scope="module")
def lm(folder):
    return besag.load(folder, device="cpu", dtype="float32")


def test_logits_are_those_of_the_published_code(name, lm):
    ids, mask = published.batch()
    expected = published.logits(name)[mask > 0]
    with torch.no_grad():
        found = lm.model(ids, attention_mask=mask).logits[mask > 0]
        alone = lm.model(ids[:1]).logits[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(alone, expected[: len(alone)], atol=1e-5, rtol=0)
    assert expected.std() > 0.5
    assert (lm.conditionals.split, lm.conditionals.pads, lm.conditionals.sees) == (True, True, "both")


def test_a_saved_model_is_in_the_published_format_again(name, lm, folder, tmp_path):
    lm.model.save_pretrained(tmp_path)
    lm.tokenizer.save_pretrained(tmp_path)
    stored, saved = published.weights(name), load_file(tmp_path / "model.safetensors")
    left_out = {key for key in stored if key in published.ALIASES or key.endswith(published.POSITIONS)}
    assert set(saved) - left_out == set(stored) - left_out
    assert all(torch.equal(part, stored[key]) for key, part in saved.items())
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == published.MODELS[name].config["architectures"]
    again = besag.load(tmp_path, device="cpu", dtype="float32")
    ids, _ = published.batch()
    with torch.no_grad():
        assert torch.equal(again.model(ids).logits, lm.model(ids).logits)


def test_attention_and_hidden_states_are_returned(lm):
    ids, _ = published.batch()
    with torch.no_grad():
        plain = lm.model(ids).logits
        own = lm.model.config._attn_implementation
        lm.model.set_attn_implementation("eager")
        found = lm.model(ids, output_attentions=True, output_hidden_states=True)
        lm.model.set_attn_implementation(own)
    torch.testing.assert_close(found.logits, plain, atol=1e-5, rtol=0)
    depth, heads = lm.model.config.num_hidden_layers, lm.model.config.num_attention_heads
    assert [part.shape for part in found.attentions] == [(3, heads, 20, 20)] * depth
    torch.testing.assert_close(torch.stack(found.attentions).sum(-1), torch.ones(depth, 3, heads, 20))
    assert len(found.hidden_states) == depth + 1


def test_a_folder_is_described_without_loading(name, folder):
    said = describe(folder)
    assert said["usable"], said["why_not"]
    assert (said["kind"], said["width"], said["max_length"]) == ("masked", published.WORDS, 40)


@pytest.mark.parametrize("fewer", [{"num_hidden_layers": 1}])
def test_a_config_with_fewer_layers_than_stored_is_rejected(name, folder, tmp_path, fewer):
    published.write(name, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | fewer
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(besag.BesagError):
        besag.load(tmp_path, device="cpu", dtype="float32")


@pytest.mark.parametrize(
    ("model", "setting", "value"),
    [
        ("llada_moe", "clip_qkv", 8.0),
        ("llada_moe", "norm_topk_prob", True),
        ("llada_moe", "moe_router_score_function", "sigmoid"),
        ("llada_moe", "routed_scaling_factor", 2.5),
        ("llada_moe", "num_experts_per_tok", 9),
        ("llada_moe", "num_key_value_heads", 3),
        ("ltg_bert", "num_attention_heads", 5),
        ("ltg_bert", "position_bucket_size", 1),
        ("ltg_bert", "max_position_embeddings", 5),
        ("neobert", "ngpt", True),
        ("neobert", "rope", False),
        ("neobert", "rms_norm", False),
        ("neobert", "hidden_act", "gelu"),
        ("neobert", "num_attention_heads", 5),
        ("neobert", "max_length", 0),
        ("neobert", "intermediate_size", 1),
    ],
)
def test_a_setting_that_is_not_computed_is_rejected_with_its_value(model, setting, value, tmp_path):
    published.write(model, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | {setting: value}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(besag.BesagError, match=rf"{setting} = '?{value}'?|{value} heads"):
        besag.load(tmp_path, device="cpu")


@pytest.mark.filterwarnings("ignore:8-bit products")
def test_int8_scores_are_close(folder, lm):
    rounded = besag.load(folder, device="cpu", dtype="int8")
    text = "the dogs sleep on a mat"
    assert rounded.score(text).total == pytest.approx(lm.score(text).total, rel=0.05)
