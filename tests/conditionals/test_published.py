"""Published formats on networks of transformers: the published code's logits, the shift, masks, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests import published
from transformers import LlamaConfig, LlamaForCausalLM

import besag
from besag.conditionals import network
from besag.conditionals.loading import describe, load_conditionals, with_adapter
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError
from besag.family.both_sides import A2DQwen2LMHeadModel
from besag.prompting.likelihood import Likelihood
from besag.prompting.template import Asked
from besag.training.run.rounding import export
from besag.vocabulary import Vocabulary

LOGITS = Path(__file__).with_name("published_logits.npz")  # of studies/published-models/make_logits.py
TEXT = "The cats sleep on the mat ."


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("published")
    return {name: published.write(root / name, name) for name in published.CONFIGURATIONS}


def logits(lm: besag.LanguageModel, ids: np.ndarray) -> np.ndarray:
    """Of the whole network, unshifted."""
    with torch.no_grad():
        found: np.ndarray = lm.model(input_ids=torch.from_numpy(ids)).logits.numpy()
    return found


@pytest.mark.parametrize("name", published.CONFIGURATIONS)
def test_the_logits_are_those_of_the_published_code(name: str, folders: dict[str, Path]) -> None:
    with np.load(LOGITS) as stored:
        wanted = stored[name]
    lm = besag.load(folders[name], device="cpu", dtype="float32")
    assert lm.conditionals.split
    np.testing.assert_allclose(logits(lm, published.IDS), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", published.CONFIGURATIONS)
def test_a_description_names_the_mask_and_the_shift(name: str, folders: dict[str, Path]) -> None:
    facts = describe(folders[name])
    assert (facts["usable"], facts["why_not"]) == (True, "")
    assert (facts["kind"], facts["mask_token"], facts["shift"]) == ("masked", published.MASK, name == "dream")


@pytest.mark.parametrize("name", ["dream", "llada"])
def test_scores_are_a_plain_loop_over_the_published_rule(name: str, folders: dict[str, Path]) -> None:
    lm = besag.load(folders[name], device="cpu", dtype="float32")
    ids = np.array(lm.vocabulary.tokenizer(TEXT)["input_ids"])
    terms, chain, left = [], [], np.full_like(ids, published.MASK_ID)
    for place, token in enumerate(ids):
        hidden = ids.copy()
        hidden[place] = published.MASK_ID
        output = max(place - 1, 0) if name == "dream" else place
        for found, shown in ((terms, hidden), (chain, left)):
            law = torch.from_numpy(logits(lm, shown[None])[0, output]).double().log_softmax(-1)
            found.append(float(law[token]))
        left[place] = token
    score = lm.score(TEXT, "pll")
    np.testing.assert_allclose(score.log_probs, terms, atol=1e-5)
    assert lm.score(TEXT, "chain", order="left-to-right").total == pytest.approx(sum(chain), abs=1e-4)


FAST_DLLM = {"model_type": "Fast_dLLM_Qwen", "architectures": ["Fast_dLLM_QwenForCausalLM"], "bd_size": 3}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("a2d-qwen3", {"besag_block_length": 3}),
        ("llada", {"besag_block_length": 3}),
        ("dream", {"besag_block_length": 3}),
        ("dream", FAST_DLLM),
    ],
)
def test_a_model_of_blocks_is_a_plain_loop_with_a_mask(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    folder = published.write(tmp_path / name, name, **changes)
    lm = besag.load(folder, device="cpu", dtype="float32")
    ids = torch.tensor(lm.vocabulary.tokenizer(TEXT)["input_ids"])
    block = torch.arange(len(ids)) // 3
    hidden_from = (block[None, :] > block[:, None])[None, None]  # a later block
    mask = torch.zeros(hidden_from.shape).masked_fill(hidden_from, torch.finfo(torch.float32).min)
    wanted = []
    for place, token in enumerate(ids):
        shown = ids.index_fill(0, torch.tensor(place), published.MASK_ID)[None]
        with torch.no_grad():
            rows = lm.model(input_ids=shown, attention_mask=mask).logits[0].double()
        output = max(place - 1, 0) if name == "dream" else place
        wanted.append(float(rows[output].log_softmax(-1)[token]))
    np.testing.assert_allclose(lm.score(TEXT, "pll").log_probs, wanted, atol=1e-5)


class Rolled(A2DQwen2LMHeadModel):
    """The same model without a declared shift: it moves its logits itself."""

    def forward(self, *args: Any, **inputs: Any) -> Any:
        answer = super().forward(*args, **inputs)
        answer.logits = torch.cat([answer.logits[:, :1], answer.logits[:, :-1]], 1)
        return answer


@pytest.fixture(scope="module")
def both(folders: dict[str, Path]) -> tuple[besag.LanguageModel, besag.LanguageModel]:
    """A model whose configuration declares the shift, and one whose logits are moved."""
    declared = besag.load(folders["dream"], device="cpu", dtype="float32")
    config = type(declared.model.config).from_dict(declared.model.config.to_dict())
    config.besag_shift = False
    moved = Rolled(config)
    moved.load_state_dict(declared.model.state_dict())
    return declared, besag.load((moved, published.tokenizer(mask=True)), name="moved")


def test_scores_joints_and_samples_need_not_know_the_shift(
    both: tuple[besag.LanguageModel, besag.LanguageModel],
) -> None:
    declared, moved = both
    assert (declared.conditionals.shift, moved.conditionals.shift) == (True, False)
    for method in ("pll", "chain", "unmasked", "whole_word", "word_l2r"):
        wanted = moved.score(TEXT, method).total
        assert declared.score(TEXT, method).total == pytest.approx(wanted, abs=1e-4), method
    gap = f"The {published.MASK} {published.MASK} on the mat ."
    for method in ("mlm", "ag", "order"):
        one, other = (lm.joint(gap, method=method, candidates=8).top(5) for lm in both)
        assert [pair.text for pair in one] == [pair.text for pair in other]
        np.testing.assert_allclose([pair.prob for pair in one], [pair.prob for pair in other], atol=1e-5)
    for kernel in ("gibbs", "ancestral"):
        one, other = (lm.sample(gap, kernel, chains=4, seed=1).texts for lm in both)
        assert list(one) == list(other), kernel
    [one], [other] = (lm.fill(gap, k=1) for lm in both)
    assert one.text == other.text
    row = Asked(np.array([5, 2, 2, 8, 9]), np.array([1]), 2)
    one, other = (Likelihood.of_network(lm.conditionals).answers([row], [np.array([7])], np.array([6])) for lm in both)
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_shift_can_be_declared_otherwise(tmp_path: Path) -> None:
    for name, shift in (("dream", False), ("llada", True)):
        folder = published.write(tmp_path / name, name, besag_shift=shift)
        assert load_conditionals(folder, device="cpu").shift is shift


@pytest.mark.parametrize(
    ("name", "changes", "quoted"),
    [
        ("llada", {"include_qkv_bias": True}, "include_qkv_bias=True"),
        ("llada", {"block_type": ...}, "block_type='sequential'"),
        ("llada", {"architectures": ["LLaDAVisionModelLM"]}, "'LLaDAVisionModelLM'"),
        ("llada", {"d_model": ...}, "d_model"),
        ("llada", {"mask_token_id": ...}, "126336"),
        ("llada", {"mask_token_id": 46}, "46"),
        ("llada", {"mask_token_id": "two"}, "'two'"),
        ("dream", {"besag_shift": "yes"}, "'yes'"),
        ("dream", FAST_DLLM | {"bd_size": 0}, "besag_block_length=0"),
        ("a2d-qwen3", {"besag_mask_token_id": True}, "besag_mask_token_id=True"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, changes: dict[str, Any], quoted: str, tmp_path: Path) -> None:
    folder = published.write(tmp_path / name, name, **changes)
    with pytest.raises(BesagError, match=quoted):
        load_conditionals(folder, device="cpu")
    assert quoted in describe(folder)["why_not"]


def test_a_checkpoint_in_eight_bits_is_found_by_its_published_names(folders: dict[str, Path], tmp_path: Path) -> None:
    export(folders["llada"], tmp_path / "small", "int8", texts=[TEXT], most=100)
    stored = load_conditionals(tmp_path / "small", device="cpu", dtype="float32")
    whole = load_conditionals(folders["llada"], device="cpu", dtype="float32")
    for name, weight in whole.model.state_dict().items():
        own = stored.model.state_dict()[name]
        assert float((own - weight).abs().max()) < 0.01, name


# ---- attention to both sides


def causal_again(model: Any) -> Any:
    """The configuration alone says that both sides are seen; newer releases of transformers tell each layer so."""
    assert model.config.is_causal is False
    for module in model.modules():
        if hasattr(module, "is_causal"):
            module.is_causal = True
            module.forward = untold(module.forward)
    return model


def untold(forward: Any) -> Any:
    def run(*args: Any, is_causal: Any = None, **inputs: Any) -> Any:
        return forward(*args, **inputs)

    return run


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("name", ["a2d-qwen2", "a2d-qwen3"])
def test_a_model_that_only_claims_to_see_both_sides_is_refused(name: str, dtype: str, folders: dict[str, Path]) -> None:
    broken = causal_again(load_conditionals(folders[name], device="cpu", dtype="float32").model)
    with pytest.raises(BesagError, match="is_causal=false"):
        besag.load((broken, published.tokenizer(mask=True)), dtype=dtype)


@pytest.mark.filterwarnings("ignore:8-bit products are slower")
@pytest.mark.parametrize("change", ["adapter", "int8", "compiled"])
def test_a_model_that_turns_causal_later_is_refused(
    change: str, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    conditionals = load_conditionals(folders["a2d-qwen2"], device="cpu", dtype="float32")
    assert isinstance(conditionals, Transformer)
    causal_again(conditionals.model)
    monkeypatch.setattr(network, "compile_layers", lambda *_, **__: [])
    changes: dict[str, Any] = {
        "adapter": lambda: with_adapter(conditionals, None),
        "int8": conditionals.round_to_eight_bits,
        "compiled": conditionals.compile,
    }
    with pytest.raises(BesagError, match="is_causal=false"):
        changes[change]()


def test_a_causal_family_that_says_it_sees_both_sides_is_refused(tmp_path: Path) -> None:
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48, is_causal=False
    )
    LlamaForCausalLM(config).save_pretrained(tmp_path)
    published.tokenizer(mask=True).save_pretrained(tmp_path)
    with pytest.raises(BesagError, match="'a2d-llama'"):
        load_conditionals(tmp_path, device="cpu")
    said = json.loads((tmp_path / "config.json").read_text())
    said["model_type"] = "a2d-llama"
    del said["architectures"]
    (tmp_path / "config.json").write_text(json.dumps(said))
    found = load_conditionals(tmp_path, device="cpu")
    assert (type(found.model).__name__, found.sees) == ("EuroBertForMaskedLM", "both")


# ---- tokenizers


def test_dreams_tokenizer_is_qwens(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = published.write(tmp_path / "dream", "dream")
    (folder / "tokenizer.json").unlink()
    tokens = [published.PAD, published.UNKNOWN, published.MASK, *"acht"]
    letters = {token: index for index, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(letters | {"at": 7, "cat": 8, "Ġ": 9, "Ġcat": 10}), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\na t\nc at\nĠ cat\n", encoding="utf-8")
    said = {
        "tokenizer_class": "DreamTokenizer", "auto_map": {"AutoTokenizer": ["tokenization_dream.DreamTokenizer", None]},
        "mask_token": published.MASK, "pad_token": published.PAD, "eos_token": published.PAD,
        "added_tokens_decoder": {"2": {"content": published.MASK, "special": True}},
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(said), encoding="utf-8")
    vocabulary = load_conditionals(folder, device="cpu").vocabulary
    assert isinstance(vocabulary, Vocabulary)
    assert vocabulary.tokenizer(f"cat cat{published.MASK}h")["input_ids"] == [8, 10, 2, 5]
