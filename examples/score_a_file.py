"""Score every line of a file, as it is read, and sum up the corpus: constant memory, however long the file.

python examples/score_a_file.py [FILE] [METHOD]
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import besag

path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("sentences.txt")
method = sys.argv[2] if len(sys.argv) > 2 else "pll"


def shown(scores: Iterator[besag.Score]) -> Iterator[besag.Score]:
    for score in scores:
        print(f"{score.total:9.3f}\t{len(score):3}\t{score.text if score.status == 'ok' else score.status}")
        yield score


with path.open(encoding="utf-8") as lines:
    print("\n", besag.corpus(shown(besag.load().score((line.rstrip("\n") for line in lines), method))), sep="")
