"""Store the logits of the published LLaDA-MoE: `python studies/published-models/llada_moe.py FOLDER`, from the root.

FOLDER holds `configuration_lladamoe.py` and `modeling_lladamoe.py` as a package. In that copy, replace
`rope_config_validation`, which newer versions of transformers lack. Their default frequencies of rotary positions are
given here, under the name by which that file looks them up.
"""

import importlib
import sys
from pathlib import Path

import torch
from tests.family import published
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS


def frequencies(config, device=None, **_):
    size = int(config.hidden_size // config.num_attention_heads * config.partial_rotary_factor)
    return 1.0 / config.rope_theta ** (torch.arange(0, size, 2, device=device).float() / size), 1.0


ROPE_INIT_FUNCTIONS.setdefault("default", frequencies)
folder = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(folder.parent))
code = importlib.import_module(f"{folder.name}.modeling_lladamoe")

settings = {key: part for key, part in published.MODELS["llada_moe"].config.items() if key not in ("auto_map",)}
config = code.LLaDAMoEConfig(**settings)
config.rope_scaling, config.rope_theta, config._attn_implementation = None, settings["rope_theta"], "eager"
model = code.LLaDAMoEModelLM(config).eval()
model.load_state_dict(published.weights("llada_moe"))
ids, mask = published.batch()
with torch.no_grad():
    found = model.model(ids, attention_mask=mask, return_dict=True)
    published.keep("llada_moe", model.lm_head(found.last_hidden_state))
