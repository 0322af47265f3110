"""What a larger vocabulary would be worth to `pll` on minimal pairs, with the model as it is.

    python benchmarks/vocabulary.py 'part-0[0-3].txt.xz' --pairs blimp/*.jsonl

`pll` lets the pieces of a word vouch for each other; a word in one piece cannot. So the words that a vocabulary with N
more entries would have whole, the most frequent split words of the text, are scored as `word_l2r` does, which asks what
the whole word has, and all others as `pll` does.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import Counter, defaultdict
from typing import Any

import besag
from besag.evaluation.minimal_pairs import read_pairs
from besag.training.data.sources import documents
from besag.training.recipe import Data

ADDED = (0, 2_000, 8_000, 12_288, 20_000, 60_000, math.inf)  # the last is `word_l2r`


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+", help="what the words are counted in")
    parser.add_argument("--pairs", nargs="+", required=True)
    parser.add_argument("--limit", type=int, default=100, help="pairs of each file")
    parser.add_argument("--model", default="small-en")
    parser.add_argument("--dtype", default="bfloat16")
    chosen = parser.parse_args()

    lm = besag.load(chosen.model, dtype=chosen.dtype)
    tokenizer = lm.tokenizer.backend_tokenizer
    rank = ranks(chosen.text, tokenizer)
    right: dict[float, list[float]] = defaultdict(list)  # added words → accuracy of each file
    for file in chosen.pairs:
        pairs = read_pairs(file, chosen.limit)
        texts = [text for pair in pairs for text in (pair.good, pair.bad)]
        scores = [lm.score(texts, method) for method in ("pll", "word_l2r")]
        for added in ADDED:
            totals = [total(pll, l2r, tokenizer, rank, added) for pll, l2r in zip(*scores, strict=True)]
            better = [good > bad for good, bad in zip(totals[::2], totals[1::2], strict=True)]
            right[added].append(statistics.fmean(better))
    for added, accuracies in right.items():
        print(f"{added:>7,} more words: {statistics.fmean(accuracies):.1%} of the pairs, mean over files")


def ranks(files: list[str], tokenizer: Any) -> dict[str, int]:
    """Of the words that are split, by how frequent they are: the most frequent is 0."""
    surfaces: Counter[str] = Counter()
    for document in documents(Data(train=tuple(files)), "train"):
        surfaces.update(document.text.split())
    words: Counter[str] = Counter()
    for surface, count in surfaces.items():
        for word in words_of(surface, tokenizer):
            words[word] += count
    split = (word for word, _ in words.most_common() if len(tokenizer.model.tokenize(word)) > 1)
    return {word: place for place, word in enumerate(split)}


def words_of(text: str, tokenizer: Any) -> list[str]:
    """What is never joined: the tokenizer cuts each of them into pieces by itself."""
    return [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text))]


def total(pll: Any, l2r: Any, tokenizer: Any, rank: dict[str, int], added: float) -> float:
    found, place = 0.0, 0
    for word in words_of(pll.text, tokenizer):
        pieces = len(tokenizer.model.tokenize(word))
        score = l2r if rank.get(word, len(rank)) < added else pll
        found += sum(score.log_probs[place : place + pieces])
        place += pieces
    assert place == len(pll.log_probs), pll.text
    return found


if __name__ == "__main__":
    main()
