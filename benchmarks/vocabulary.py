"""What a larger vocabulary would be worth to `pll` on minimal pairs, with the model as it is.

    python benchmarks/vocabulary.py 'part-0[0-3].txt.xz' --pairs blimp/*.jsonl

`pll` lets the pieces of a word vouch for each other; a word in one piece cannot. So the words that are whole once the
tokenizer is extended by N words of the text are scored as `word_l2r` does, which asks for the word, all others as `pll`
does.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import Counter, defaultdict

import besag
from besag.evaluation.minimal_pairs import read_pairs
from besag.scores.score import Score
from besag.training.data.sources import documents
from besag.training.recipe import Data
from besag.training.tokenizer.extending import extended
from besag.vocabulary import Vocabulary

ADDED = (0, 2_000, 8_000, 12_288, 20_000, 60_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+", help="what the words are taken from")
    parser.add_argument("--pairs", nargs="+", required=True)
    parser.add_argument("--limit", type=int, default=100, help="pairs of each file")
    parser.add_argument("--model", default="small-en")
    parser.add_argument("--dtype", default="bfloat16")
    chosen = parser.parse_args()

    lm = besag.load(chosen.model, dtype=chosen.dtype)
    texts = (document.text for document in documents(Data(train=tuple(chosen.text)), "train"))
    larger = Vocabulary(extended(lm.tokenizer, texts, max(ADDED)))
    right: dict[float, list[float]] = defaultdict(list)  # added words → accuracy of each file
    for file in chosen.pairs:
        sentences = [text for pair in read_pairs(file, chosen.limit) for text in (pair.good, pair.bad)]
        whole = [whole_from(text, larger, len(lm.tokenizer)) for text in sentences]
        pll, l2r = (lm.score(sentences, method) for method in ("pll", "word_l2r"))
        for added in (*ADDED, math.inf):
            totals = [total(*three, added) for three in zip(pll, l2r, whole, strict=True)]
            better = [good > bad for good, bad in zip(totals[::2], totals[1::2], strict=True)]
            right[added].append(statistics.fmean(better))
    for added, accuracies in right.items():
        name = "word_l2r itself" if added == math.inf else f"{added:,} more words"
        print(f"{name:>17}: {statistics.fmean(accuracies):.1%} of the pairs, mean over files")


def whole_from(text: str, larger: Vocabulary, size: int) -> dict[int, int]:
    """Word number → how many words must be added to the `size` tokens until it is one token."""
    [read] = larger.encode([text])
    words, pieces = read.words.tolist(), Counter(read.words.tolist())
    return {w: id - size + 1 for w, id in zip(words, read.ids.tolist(), strict=True) if id >= size and pieces[w] == 1}


def total(pll: Score, l2r: Score, whole: dict[int, int], added: float) -> float:
    found = 0.0
    for word, tokens in enumerate(pll.tokens_by_word()):
        score = l2r if whole.get(word, math.inf) <= added else pll
        found += float(score.log_probs[tokens].sum())
    return found


if __name__ == "__main__":
    main()
