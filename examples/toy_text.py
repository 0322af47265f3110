"""A small language to train on: some 5,000 sentences with agreement, and 200 minimal pairs, in toy/ or FOLDER.

python examples/toy_text.py [FOLDER]
"""

import random
import sys
from pathlib import Path

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "toy")
folder.mkdir(exist_ok=True)
draw = random.Random(0)
ADJECTIVES, PLACES, ENDS = ["", "old ", "young ", "small "], ["near", "behind", "beside"], ["", " today", " at night"]
NOUNS, VERBS = ["cat", "dog", "girl", "boy", "bird", "farmer", "teacher"], ["sleep", "run", "sing", "smile", "wait"]


def pair(subject: str, other: str) -> tuple[str, str]:
    # a sentence, and the same with the wrong verb: it agrees with the subject ("" or "s"), not with the other noun
    nouns = [f"the {draw.choice(ADJECTIVES)}{draw.choice(NOUNS)}{number}" for number in (subject, other)]
    front, verb, end = f" {draw.choice(PLACES)} ".join(nouns).capitalize(), draw.choice(VERBS), draw.choice(ENDS)
    return tuple(f"{front} {verb}{'' if plural else 's'}{end}." for plural in (subject == "s", subject == ""))


numbers = [(subject, other) for subject in ("", "s") for other in ("", "s")]
pairs = [(*pair(*both), "same number" if both[0] == both[1] else "another between") for both in numbers * 50]
text = {pair(*draw.choice(numbers))[0] for _ in range(5000)} - {good for good, _, _ in pairs}
(folder / "text.txt").write_text("\n".join(sorted(text)) + "\n", encoding="utf-8")
table = [("good", "bad", "paradigm"), *pairs]
(folder / "pairs.tsv").write_text("".join("\t".join(line) + "\n" for line in table), encoding="utf-8")
print(f"{len(text):,} sentences in {folder / 'text.txt'}, {len(pairs)} pairs in {folder / 'pairs.tsv'}")
