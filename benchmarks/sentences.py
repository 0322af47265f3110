"""The texts that are scored: SNLI where $BESAG_DATA holds it, pseudo-English of the same lengths where it does not.

Knows no model and no contender. All sentences of a set are distinct, so that no contender gains by sharing duplicates.
Pseudo-English draws words independently from the embedded vocabulary, by the unigram probabilities stored there.
"""

from __future__ import annotations

import csv
import json
import os
from functools import cache
from pathlib import Path
from statistics import NormalDist

import numpy as np

from besag import models

# Words a sentence has in SNLI's validation split (distinct sentences): mean 13.9 in premises, 7.6 in hypotheses.
QUANTILES = (0, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1)
PREMISE = (2, 6, 7, 9, 12, 18, 22, 25, 34, 50)
HYPOTHESIS = (2, 4, 4, 5, 7, 9, 12, 13, 18, 48)


def draw(kind: str, count: int, *, longest: int = 400, seed: int = 0) -> list[str]:
    """`snli`: half premises, half hypotheses. `mixed` and `spread`: 5 to `longest` words.

    The lengths of `mixed`, many short and a few long, are the quantiles of a log-normal law (median 20 words, σ = 1)
    and always the longest; those of `spread` are even on a logarithmic scale.
    """
    if kind == "snli":
        return _snli(count, seed)
    if kind == "spread":
        lengths = np.geomspace(5, longest, count)
    else:
        lengths = (20 * np.exp([NormalDist().inv_cdf((rank + 0.5) / count) for rank in range(count)])).clip(5, longest)
        lengths[-1] = longest
    lengths = lengths.round().astype(int)
    return pseudo_english(np.random.default_rng(seed).permutation(lengths), seed)


def pseudo_english(lengths: np.ndarray, seed: int) -> list[str]:
    """One distinct sentence of so many words for each length."""
    words, probability = _lexicon()
    noise = np.random.default_rng(seed)
    made: dict[str, None] = {}
    for length in lengths:
        while True:
            text = " ".join(noise.choice(words, size=length, p=probability)) + "."
            if text not in made:
                break
        made[text] = None
    return list(made)


def _snli(count: int, seed: int) -> list[str]:
    noise = np.random.default_rng(seed)
    halves = (count + 1) // 2, count // 2
    file = Path(os.environ.get("BESAG_DATA", os.devnull)) / "snli" / "validation.tsv"
    if file.exists():
        with file.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
        premises = sorted({row["premise"] for row in rows})
        hypotheses = sorted({row["hypothesis"] for row in rows}.difference(premises))
        texts = [
            text
            for column, half in zip((premises, hypotheses), halves, strict=True)
            for text in noise.choice(column, size=half, replace=False)
        ]
        return [str(texts[i]) for i in noise.permutation(count)]
    lengths = [
        np.interp(noise.random(half), QUANTILES, words).round().astype(int)
        for half, words in zip(halves, (PREMISE, HYPOTHESIS), strict=True)
    ]
    return pseudo_english(noise.permutation(np.concatenate(lengths)), seed)


@cache
def _lexicon() -> tuple[list[str], np.ndarray]:
    """The whole words among the pieces of the embedded Unigram vocabulary, and how often they come."""
    vocabulary = json.loads((models.path() / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    frequent = {piece[1:]: score for piece, score in vocabulary if piece.startswith("▁") and piece[1:].isalpha()}
    weight = np.exp(np.array(list(frequent.values())))
    return list(frequent), weight / weight.sum()
