"""A tiny network from nothing, in a few seconds: text, recipe, run, model; and whole-word masks for any other loop.

python examples/train.py
"""

import tempfile
from pathlib import Path

import besag

folder = Path(tempfile.mkdtemp())
subjects = {"The cat": "s", "The cats": "", "A dog": "s", "Two dogs": "", "The girl": "s", "Girls": ""}
rest = [(verb, place) for verb in ("sleep", "run", "sing", "wait") for place in ("today", "at home", "again", "inside")]
lines = [f"{subject} {verb}{s} {place}." for verb, place in rest for subject, s in subjects.items()]
(folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 96}
recipe = {"data": {"train": [str(folder / "text.txt")], "unit": "sentences", "batch_tokens": 1024},
          "tokenizer": {"size": 300}, "masking": {"law": "whole_word", "rate": 0.3}, "schedule": {"steps": 150},
          "model": {"config": small}, "optimizer": {"name": "muon", "lr": 3e-3},
          "run": {"output": str(folder / "run"), "threads": 1}}  # fmt: skip
result = besag.train(recipe, quiet=True)  # or a file: besag.train("recipe.toml")
print(f"{result.step} steps, loss {result.metrics['loss']:.2f} nats a hidden token: {result.model}")
lm = besag.load(result.model, progress=False)
for score in lm.score(["The cats sleep again.", "The cats sleeps again."]):
    print(f"{score.total:7.2f}  {score.text}")

collator = besag.MaskingCollator(lm.tokenizer, law="whole_word", rate=0.5, seed=1)  # for a Trainer or a DataLoader
examples = [lm.tokenizer(text) | {"draw": number} for number, text in enumerate(lines[2:5])]
print(*("".join(lm.tokenizer.convert_ids_to_tokens(ids)) for ids in collator(examples)["input_ids"]), sep="\n")
