"""Published architectures compared with what their published code returns for the same weights and tokens."""

import copy
import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.family import published
from tests.networks import vocabulary

import besag
from besag.conditionals import families
from besag.conditionals.contract import Questions
from besag.conditionals.loading import describe

IN_BLOCKS = {"llada2_moe"}  # asked block after block


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
    assert (lm.conditionals.split, lm.conditionals.sees) == (True, "both")
    assert lm.conditionals.pads is (name not in IN_BLOCKS)


def test_a_saved_model_is_in_the_published_format_again(name, lm, folder, tmp_path):
    lm.model.save_pretrained(tmp_path)
    lm.tokenizer.save_pretrained(tmp_path)
    stored, saved = published.weights(name), load_file(tmp_path / "model.safetensors")
    left_out = {key for key in stored if key in published.ALIASES or key.endswith(published.POSITIONS)}
    assert set(saved) - left_out == set(stored) - left_out
    assert all(torch.equal(part, stored[key]) for key, part in saved.items())
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["model_type"], config["architectures"]) == (name, [families.OWN[name]])
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


def test_every_weight_of_a_new_model_is_initialised(lm, monkeypatch):
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, **how: empty(*size, **how).fill_(torch.nan))
    new = type(lm.model)(type(lm.model.config).from_dict(lm.model.config.to_dict()))
    assert [key for key, part in new.named_parameters() if not part.isfinite().all()] == []
    ids, _ = published.batch()
    with torch.no_grad():
        assert new.eval()(ids).logits.isfinite().all()


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


@pytest.mark.parametrize("name", IN_BLOCKS, indirect=True)
def test_a_model_of_blocks_predicts_as_the_published_code_with_its_mask(name, folder, tmp_path):
    """Published files give no length of blocks: it is 32, and here one block; besag's own key sets another."""
    assert besag.load(folder, device="cpu").conditionals.blocks.length == 32
    published.write(name, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | {"besag_block_length": 8}
    (tmp_path / "config.json").write_text(json.dumps(config))
    who = besag.load(tmp_path, device="cpu", dtype="float32").conditionals
    ids, _ = published.batch()
    place = torch.arange(20)
    with torch.no_grad():
        found = who.head(who.rows(Questions(ids[:1], torch.zeros_like(place), place)))
        masked = who.model(ids[:1], attention_mask=published.blocks(8)[None, None]).logits[0]
    expected = published.logits(f"{name}_blocks")[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(masked, expected, atol=1e-5, rtol=0)
    assert (expected - published.logits(name)[0])[:8].abs().max() > 0.1


@pytest.mark.parametrize("name", ["gpt_bert"], indirect=True)
def test_a_shifted_model_predicts_a_token_from_the_output_before_it(name, folder):
    who = besag.load(folder, device="cpu", dtype="float32").conditionals
    ids, _ = published.batch()
    place = torch.arange(20)
    with torch.no_grad():
        found = who.head(who.rows(Questions(ids[:1], torch.zeros_like(place), place)))
    expected = published.logits(name)[0, (place - 1).clamp(min=0)]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("model", "setting", "value"),
    [
        ("llada2_moe", "n_group", 3),
        ("llada2_moe", "topk_group", 5),
        ("llada2_moe", "topk_group", 0),
        ("llada2_moe", "score_function", "softmax"),
        ("llada2_moe", "use_sliding_window", True),
        ("llada2_moe", "partial_rotary_factor", 0.3),
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


@pytest.mark.parametrize("name", ["llada_moe", "llada2_moe"], indirect=True)
def test_in_bfloat16_experts_are_chosen_in_float32(name, folder):
    """The published routers hold their bias in float32; a file without it is rejected, not filled with zeros."""
    model = besag.load(folder, device="cpu", dtype="bfloat16").model
    kept = {key: part for key, part in model.named_parameters() if part.dtype == torch.float32}
    assert {key.rpartition(".")[2] for key in kept} == {"expert_bias"}
    assert all(torch.equal(part, published.weights(name)[key]) for key, part in kept.items())
    assert model.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("name", "part"), [("llada_moe", "expert_bias"), ("ltg_bert", "relative_embedding")], indirect=["name"]
)
def test_a_folder_that_lacks_a_weight_is_rejected_with_its_name(name, part, tmp_path):
    published.write(name, tmp_path)
    stored = {key: weight for key, weight in published.weights(name).items() if not key.endswith(part)}
    save_file(stored, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(besag.BesagError, match=part):
        besag.load(tmp_path, device="cpu")


@pytest.mark.parametrize("name", ["llada_moe", "llada2_moe"], indirect=True)
def test_a_tokenizer_without_a_mask_takes_the_one_of_the_published_model(name, tmp_path):
    published.write(name, tmp_path)
    bare = copy.deepcopy(vocabulary("bert").tokenizer)
    bare.mask_token = None
    bare.save_pretrained(tmp_path)
    with pytest.raises(besag.BesagError, match="156895"):  # this small network has 96 tokens
        besag.load(tmp_path, device="cpu")
    config = json.loads((tmp_path / "config.json").read_text()) | {"mask_token_id": 7}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert besag.load(tmp_path, device="cpu").conditionals.vocabulary.mask_id == 7
