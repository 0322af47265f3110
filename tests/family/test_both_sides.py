"""Qwen2 and Qwen3 with attention to both sides, saved and loaded as any family of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

from besag.family import both_sides

SHAPE: dict[str, Any] = {
    "vocab_size": 24, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 48, "initializer_range": 0.5, "max_position_embeddings": 32,
}  # fmt: skip
IDS = torch.arange(7)[None]


@pytest.mark.parametrize("family", ["a2d-qwen2", "a2d-qwen3"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_every_position_sees_every_other(family: str, attention: str, tmp_path: Path) -> None:
    AutoModelForMaskedLM.from_config(AutoConfig.for_model(family, **SHAPE)).save_pretrained(tmp_path)
    model = AutoModelForMaskedLM.from_pretrained(tmp_path, attn_implementation=attention).eval()
    changed = IDS.clone()
    changed[0, -1] = 20
    with torch.no_grad():
        for mask in (None, torch.ones_like(IDS)):
            one, other = (model(input_ids=ids, attention_mask=mask).logits for ids in (IDS, changed))
            assert float((one - other)[0].abs().amax(-1).min()) > 1e-3
    assert not any(getattr(module, "is_causal", False) for module in model.modules())


@pytest.mark.parametrize("family", ["a2d-qwen2", "a2d-qwen3"])
def test_padding_changes_nothing_and_the_body_is_the_same(family: str) -> None:
    model = AutoModelForMaskedLM.from_config(AutoConfig.for_model(family, **SHAPE)).eval()
    body = AutoModel.from_config(model.config).eval()
    body.load_state_dict(model.model.state_dict())
    shown = torch.ones_like(IDS)
    shown[0, 5:] = 0
    with torch.no_grad():
        padded = model(input_ids=IDS, attention_mask=shown).logits[:, :5]
        alone = model(input_ids=IDS[:, :5]).logits
        states = body(input_ids=IDS[:, :5]).last_hidden_state
    torch.testing.assert_close(padded, alone, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(model.lm_head(states), alone, rtol=1e-5, atol=1e-5)


def test_names_are_those_of_the_published_classes() -> None:
    config = both_sides.A2DQwen3Config(**SHAPE)
    assert (config.model_type, both_sides.A2DQwen3LMHeadModel(config).config.is_causal) == ("a2d-qwen3", False)
