"""Store the logits of the published GPT-BERT: `python studies/published-models/gpt_bert.py FOLDER`, from the root.

FOLDER holds `pretraining/model_extra.py` of ltgoslo/gpt-bert as `model.py` of a package.
"""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from tests.family import published

folder = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(folder.parent))
code = importlib.import_module(f"{folder.name}.model")

model = code.Bert(SimpleNamespace(**published.MODELS["gpt_bert"].config)).eval()
weights = {key: part for key, part in published.weights("gpt_bert").items() if not key.endswith(published.POSITIONS)}
missing, unexpected = model.load_state_dict(weights, strict=False)
assert not unexpected
assert all(key.endswith(published.POSITIONS) for key in missing)
ids, mask = published.batch()
with torch.no_grad():
    found = model.get_contextualized(ids.T, mask[:, None] == 0)  # (L, N, H)
    published.keep("gpt_bert", model.classifier.nonlinearity(found).transpose(0, 1).contiguous())
