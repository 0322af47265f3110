"""Store the logits of the published LTG-BERT: `python studies/published-models/ltg_bert.py FOLDER`, from the root.

FOLDER holds `training/model.py` and `training/config.py` of ltgoslo/ltg-bert as a package.
"""

import importlib
import sys
from pathlib import Path

import torch
from tests.family import published

folder = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(folder.parent))
code = importlib.import_module(f"{folder.name}.model")
settings = importlib.import_module(f"{folder.name}.config")

model = code.Bert(settings.BertConfig(dict(published.MODELS["ltg_bert"].config))).eval()
weights = {key: part for key, part in published.weights("ltg_bert").items() if not key.endswith(published.POSITIONS)}
missing, unexpected = model.load_state_dict(weights, strict=False)
assert not unexpected
assert all(key.endswith(published.POSITIONS) for key in missing)
ids, mask = published.batch()
with torch.no_grad():
    found = model(ids.T, mask == 0)[0]  # (L, N, V)
published.keep("ltg_bert", found.transpose(0, 1).contiguous())
