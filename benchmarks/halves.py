"""Is a text's first state an embedding of it? Halves of documents find each other, by models side by side.

    PYTHONPATH=src python3 benchmarks/halves.py valid.txt tried/runs/*/model

Of every document (blank lines stand between them) the words 1 to 60 and 61 to 120 are embedded by the first state of
the last layer; the vectors are centred and compared by cosine. Told is how often the other half of the same document is
the nearest of all, the mean of one over its rank, and what chance would give.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import besag

WORDS = 60  # of a half


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--most", type=int, default=200, help="documents")
    chosen = parser.parse_args()
    documents = [part.split() for part in chosen.text.read_text(encoding="utf-8").split("\n\n")]
    long = [words for words in documents if len(words) >= 2 * WORDS][: chosen.most]
    halves = [[" ".join(words[start : start + WORDS]) for words in long] for start in (0, WORDS)]
    for name in chosen.models:
        lm = besag.load(name, progress=False)
        found = [lm.embed(texts, pool="first") for texts in halves]  # (N, H) each
        first, second = (side - side.mean(0) for side in found)
        first, second = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (first, second))
        nearer = (first @ second.T) > (first * second).sum(1, keepdims=True)  # than the true one
        rank = 1 + nearer.sum(1)
        print(f"{name}: {len(long)} documents, {(rank == 1).mean():.1%} found, MRR {(1 / rank).mean():.3f}; "
              f"by chance {1 / len(long):.1%}")  # fmt: skip


if __name__ == "__main__":
    main()
