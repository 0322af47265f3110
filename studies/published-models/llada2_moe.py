"""Store the logits of the published LLaDA2-MoE: `python studies/published-models/llada2_moe.py FOLDER`, from the root.

FOLDER holds `configuration_llada2_moe.py` and `modeling_llada2_moe.py` as a package. In that copy, replace
`is_torch_fx_available`, which newer versions of transformers lack. Their default frequencies of rotary positions are
given here, under the name by which that file looks them up. Every token attends to both sides, and in a second file, to
its own block of 8 tokens and those before it.
"""

import importlib
import sys
from pathlib import Path

import torch
from tests.family import published
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS


def frequencies(config, device=None, **_):
    size = int(config.head_dim * config.partial_rotary_factor)
    return 1.0 / config.rope_theta ** (torch.arange(0, size, 2, device=device).float() / size), 1.0


ROPE_INIT_FUNCTIONS.setdefault("default", frequencies)
folder = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(folder.parent))
code = importlib.import_module(f"{folder.name}.modeling_llada2_moe")

settings = {
    key: part for key, part in published.MODELS["llada2_moe"].config.items() if key not in ("auto_map", "dtype")
}
config = code.LLaDA2MoeConfig(**settings)
config.rope_scaling, config.rope_theta, config._attn_implementation = None, settings["rope_theta"], "sdpa"
model = code.LLaDA2MoeModelLM(config).float().eval()
model.load_state_dict(published.weights("llada2_moe"))
ids, mask = published.batch()
seen = {"llada2_moe": (mask[:, None, None] > 0).expand(-1, 1, ids.shape[1], -1), "llada2_moe_blocks": None}
seen["llada2_moe_blocks"] = published.blocks(8)[None, None].expand(len(ids), -1, -1, -1)
for name, pattern in seen.items():
    with torch.no_grad():
        found = model.model(ids, attention_mask=pattern, use_cache=False, return_dict=True).last_hidden_state
        published.keep(name, model.lm_head(found))
