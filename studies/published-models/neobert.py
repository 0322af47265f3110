"""Store the logits of the published NeoBERT: `python studies/published-models/neobert.py FOLDER`, from the root.

FOLDER holds `src/neobert/model` of chandar-lab/NeoBERT as a package. In that copy, replace what is not installed: the
gated layer of xformers by the same on torch (`w12`, `w3`), and remove `torch.compile` and `datasets`.
"""

import importlib
import sys
from pathlib import Path

import torch
from tests.family import published

folder = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(folder.parent))
code = importlib.import_module(f"{folder.name}.model")

sizes = {key: value for key, value in published.MODELS["neobert"].config.items() if isinstance(value, int | float)}
model = code.NeoBERTLMHead(code.NeoBERTConfig(**sizes, flash_attention=False)).eval()
model.load_state_dict(published.weights("neobert"))
ids, mask = published.batch()
with torch.no_grad():
    published.keep("neobert", model(ids, torch.zeros(mask.shape).masked_fill(mask == 0, -torch.inf))["logits"])
