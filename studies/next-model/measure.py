"""Measure both halves of a model: minimal pairs by `word_l2r`, `pll` and `causal`, bits a character by all four scores.

    python studies/next-model/measure.py model --pairs blimp/*.jsonl --texts valid.txt.xz --limit 100

A pair counts 1 where the acceptable sentence scores higher, 1/2 where both are equal; accuracy is the mean over files,
its standard error the binomial one. `chain` is log p(x | n) of the masked half, `causal` log p(x | n) of the causal
half; `pll` is not a probability. Prints one JSON object a model; with --save, the result of each pair as well.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

import besag
from besag.evaluation.pair_files import read_pairs
from besag.training.data.sentences import sentences
from besag.training.data.sources import documents
from besag.training.network.batch import Layout
from besag.training.network.encoder import Encoder
from besag.training.recipe import Data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--pairs", nargs="*", default=[])
    parser.add_argument("--limit", type=int, default=100, help="pairs of each file")
    parser.add_argument("--methods", nargs="+", default=["word_l2r", "pll", "causal"], help="of the pairs")
    parser.add_argument("--texts", nargs="*", default=[], help="held-out text, one sentence a document")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--scores", nargs="+", default=["pll", "chain", "causal"], help="of the held-out text")
    parser.add_argument("--device")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--save", type=Path, help="folder for one JSON file a model")
    chosen = parser.parse_args()
    for model in chosen.models:
        lm = besag.load(model, device=chosen.device, dtype=chosen.dtype, progress=False)
        found: dict[str, Any] = {"model": model, "dtype": chosen.dtype, "minimal_pairs": {}, "bits_per_character": {}}
        results = {}
        for method in chosen.methods if chosen.pairs else ():
            results[method] = pairs(lm, method, chosen.pairs, chosen.limit)
            accuracies = [float(np.mean(each)) for each in results[method].values()]
            errors = [a * (1 - a) / len(each) for a, each in zip(accuracies, results[method].values(), strict=True)]
            found["minimal_pairs"][method] = {
                "accuracy": round(100 * float(np.mean(accuracies)), 2),
                "se": round(100 * math.sqrt(sum(errors)) / len(errors), 2),
                "pairs": sum(map(len, results[method].values())),
            }
        for file in chosen.texts:
            texts = first_sentences(file, chosen.sentences)
            bits = {
                method: -sum(totals(lm, method, texts)) / sum(map(len, texts)) / math.log(2) for method in chosen.scores
            }
            found["bits_per_character"][Path(file).name] = {
                "sentences": len(texts),
                **{method: round(each, 4) for method, each in bits.items()},
            }
        print(json.dumps(found), flush=True)
        if chosen.save:
            chosen.save.mkdir(parents=True, exist_ok=True)
            name = f"{Path(model).parent.name}-{Path(model).name}.json"
            (chosen.save / name).write_text(json.dumps({**found, "results": results}) + "\n", encoding="utf-8")


def pairs(lm: Any, method: str, files: list[str], limit: int) -> dict[str, list[float]]:
    """Return for each file which of its pairs are right: 1, 1/2 or 0."""
    read = {Path(file).stem: read_pairs(file, limit) for file in sorted(files)}
    texts = [text for some in read.values() for pair in some for text in (pair.good, pair.bad)]
    scores = iter(totals(lm, method, texts))
    return {name: [float((np.sign(next(scores) - next(scores)) + 1) / 2) for _ in some] for name, some in read.items()}


def first_sentences(file: str, count: int) -> list[str]:
    """Return the first sentence of 40 to 200 characters of each document, `count` in all."""
    found: list[str] = []
    for document in documents(Data(train=(file,)), "train"):
        whole = (document.text[start:end] for start, end in sentences(document.text))
        found += [text for text in [next((text for text in whole if 40 <= len(text) <= 200), "")] if text]
        if len(found) == count:
            break
    return found


def totals(lm: Any, method: str, texts: list[str]) -> list[float]:
    """Return the score of each text in nats."""
    if method == "causal":
        return causal(lm, texts)
    return [score.total for score in lm.score(texts, method)]


@torch.no_grad()
def causal(lm: Any, texts: list[str], tokens: int = 8192) -> list[float]:
    """Return Σ_t log p(x_t | [CLS] x_<t) of the causal half: each position predicts the next one."""
    words, network = lm.vocabulary, lm.model
    encoder = Encoder(
        network, mask_id=words.mask_id, pad_id=words.pad_id, special_ids=frozenset(words.special_ids), ragged=False
    ).eval()
    device = next(network.parameters()).device
    encoded = [torch.as_tensor(each.ids) for each in words.encode(texts)]
    found, start = [], 0
    while start < len(texts):
        end = start + 1
        while end < len(texts) and (end + 1 - start) * max(map(len, encoded[start : end + 1])) <= tokens:
            end += 1
        ids = torch.cat(encoded[start:end]).to(device)
        layout = Layout.of_lengths(torch.tensor([len(each) for each in encoded[start:end]], device=device))
        special = torch.isin(ids, torch.tensor(sorted(words.special_ids), device=device))
        target = (~special & (layout.column > 0)).nonzero()[:, 0]
        states = encoder.states(ids, layout, causal=True)
        log_probs = -encoder.losses(states[target - 1], ids[target]).double()
        sums = torch.zeros(end - start, dtype=torch.float64, device=device)
        found += sums.index_add_(0, layout.row[target], log_probs).tolist()
        start = end
    return found


if __name__ == "__main__":
    main()
