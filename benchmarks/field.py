"""Small real runs of what papers say, on captions of Multi30k: the figures in docs/training/ and docs/generation/.

    python benchmarks/field.py tags runs/field --data MULTI30K         # content: by tags in context, by frequency
    python benchmarks/field.py subtokens runs/field --data MULTI30K    # AMLM's vectors of sub-tokens, and none
    python benchmarks/field.py ramp runs/field --data MULTI30K         # Cramming's steps that grow, and full ones
    python benchmarks/field.py speculative                             # passes one after the other, embedded model

A run of the first three takes about a minute of one core; they show that a thing works, not what it is worth at size.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

SMALL = {"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 192}
CLOSED = {
    "DET": "a an the some two three four five several many his her their its another this",
    "ADP": "in on at of with by to from through down into over near along up off behind under around across for",
    "CONJ": "and while as or that who",
    "AUX": "is are has have be being",
    "PRON": "he she it they him them something",
}
KNOWN = {word: tag for tag, words in CLOSED.items() for word in words.split()}


def tagged(line: str) -> list[list[Any]]:
    """Parts of speech by a few rules, in context: "a building" is a noun, "is building" a verb."""
    spans, at = [], 0
    for word in line.split():
        start = line.index(word, at)
        at = start + len(word)
        bare = word.strip(".,\"'!").lower()
        if bare:
            begin = start + word.lower().index(bare)
            spans.append([begin, begin + len(bare), bare])
    tags: list[str] = []
    for number, (_, _, word) in enumerate(spans):
        before = tags[-1] if tags else ""
        after = spans[number + 1][2] if number + 1 < len(spans) else "."
        ends_phrase = after in KNOWN or after == "." or (after.endswith("ing") and before in ("DET", "ADJ"))
        if word in KNOWN:
            tags.append(KNOWN[word])
        elif before in ("DET", "ADJ"):
            tags.append("NOUN" if ends_phrase else "ADJ")
        elif word.endswith(("ing", "ed")) or (before == "NOUN" and word.endswith("s")):
            tags.append("VERB")
        else:
            tags.append("NOUN" if ends_phrase else "ADJ")
    return [[start, end, tag] for (start, end, _), tag in zip(spans, tags, strict=True)]


def rows(source: Path, target: Path) -> str:
    with target.open("w", encoding="utf-8") as file:
        for line in source.read_text(encoding="utf-8").splitlines():
            file.write(json.dumps({"text": line, "pos": tagged(line)}, ensure_ascii=False) + "\n")
    return str(target)


def trained(
    train: str, valid: str, folder: Path, changes: dict[str, Any], schedule: dict[str, Any] | None = None
) -> Any:
    import besag

    recipe = {
        "data": {"train": [train], "valid": [valid], "unit": "documents", "max_length": 64, "batch_tokens": 1024},
        "tokenizer": {"size": 4000},
        "model": {"config": SMALL},
        "optimizer": {"lr": 2e-3},
        "schedule": schedule or {"steps": 400},
        "run": {"plot": False, "threads": 1, "log_every": 100, "checkpoint_every": 10_000},
        "evaluation": {"sentences": 300},
    }
    begun = time.monotonic()
    result = besag.train(recipe, changes, output=folder, quiet=True)
    told = {name: round(result.metrics[name], 4) for name in ("heldout_loss", "pseudo_perplexity")}
    told = {"run": folder.name, "steps": result.step, **told, "seconds": round(time.monotonic() - begun)}
    print(json.dumps(told), flush=True)
    return result


def tags(folder: Path, data: Path) -> None:
    """Held-out loss of three laws, and what the law has learned of each part of speech."""
    from besag.training.run.checkpoint import Checkpoints

    train, valid = (rows(data / f"{name}.en", folder / f"{name}.jsonl") for name in ("train", "val"))
    lines = Path(train).read_text(encoding="utf-8").splitlines()
    both = Counter(form for line in lines for form in _forms(json.loads(line)))
    for word in ("building", "standing", "climbing"):
        print(json.dumps({"word": word, **{tag: count for (one, tag), count in both.items() if one == word}}))
    hidden = {"masking.rate": 0.3}
    trained(train, valid, folder / "uniform", {**hidden, "masking.law": "whole_word"})
    trained(train, valid, folder / "frequency", {**hidden, "masking.law": "content"})
    trained(train, valid, folder / "tags", {**hidden, "masking.law": "content", "data.tags": "pos"})
    newest = Checkpoints(folder / "tags" / "checkpoints", keep=1).newest()
    assert newest is not None
    losses = newest.read()["law"]["losses"]
    [cache] = (folder / "tags" / "cache").glob("train-*")
    names = [*json.loads((cache / "meta.json").read_text())["tags"], "none"]
    weights = 1 / (1 + (-2 * (losses - losses.mean()) / losses.std(unbiased=False)).exp())
    for loss, weight, name in sorted(zip(losses.tolist(), weights.tolist(), names, strict=True)):
        print(json.dumps({"tag": name, "loss": round(loss, 2), "weight": round(weight, 2)}))


def _forms(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(row["text"][start:end].lower(), tag) for start, end, tag in row["pos"]]


def subtokens(folder: Path, data: Path) -> None:
    """German: held-out loss of all tokens, and of those that the training text has at most twenty times."""
    import besag

    lines = (data / "val.de").read_text(encoding="utf-8").splitlines()[:300]
    for longest in (0, 3):
        result = trained(str(data / "train.de"), str(data / "val.de"), folder / f"runs-of-{longest}",
                         {"model.subtokens": longest, "tokenizer.size": 6000})  # fmt: skip
        lm = besag.load(result.model, progress=False)
        counts: Counter[str] = Counter()
        for encoded in lm.vocabulary.encode((data / "train.de").read_text(encoding="utf-8").splitlines()):
            counts.update(lm.vocabulary.token(id) for id in encoded.ids.tolist())
        scored = [(counts[token], log_prob) for one in lm.score(lines) for token, log_prob in
                  zip(one.tokens, one.log_probs, strict=True)]  # fmt: skip
        for name, low, high in (("rare", 0, 20), ("others", 21, 10**9)):
            some = [log_prob for count, log_prob in scored if low <= count <= high]
            told = {"runs": longest, "tokens": name, "count": len(some), "nats": round(-sum(some) / len(some), 3)}
            print(json.dumps(told), flush=True)


def ramp(folder: Path, data: Path) -> None:
    """The same tokens, the same full batch: steps that grow over 0.6 of the run, and full ones from the first on."""
    for share in (0.0, 0.6):
        schedule = {"tokens": 400_000, "ramp": share}
        trained(
            str(data / "train.en"), str(data / "val.en"), folder / f"ramp-{share:g}", {"run.accumulate": 8}, schedule
        )


def speculative() -> None:
    """Mean passes one after the other of a filling, over 50 chains; `ordered` has as many as there are places."""
    import numpy as np

    import besag

    lm = besag.load(progress=False)
    for temperature in (1.0, 0.5):
        for places in (4, 8, 16):
            text = "The old man " + " ".join(["[MASK]"] * places) + "."
            chains = lm.sample(text, "speculative", chains=50, seed=0, temperature=temperature)
            waits, passes = np.nansum(chains.numbers["sequential"], 1), chains.passes
            told = {"waits": round(float(waits.mean()), 2), "most": int(waits.max()), "passes": float(passes.mean())}
            print(json.dumps({"places": places, "temperature": temperature, **told}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tags", "subtokens", "ramp", "speculative"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--data", type=Path)
    chosen = parser.parse_args()
    if chosen.what == "speculative":
        speculative()
        return
    chosen.folder.mkdir(parents=True, exist_ok=True)
    {"tags": tags, "subtokens": subtokens, "ramp": ramp}[chosen.what](chosen.folder, chosen.data)


if __name__ == "__main__":
    main()
