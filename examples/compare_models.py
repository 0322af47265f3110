"""One sentence, word by word, under several models and methods, as a table and a plot (build/compare.png).

python examples/compare_models.py                       # the embedded model
python examples/compare_models.py bert-base-cased gpt2  # any masked or causal models, by folder or hub name
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

import besag

TEXT = "The hooligan wrecked the harpsichord."
_, ax = plt.subplots(figsize=(9, 4), layout="constrained")
for lm in [besag.load(name) for name in sys.argv[1:] or [None]]:
    for method in ("pll", "word_l2r", "chain") if lm.conditionals.sees == "both" else ("causal",):
        score = lm.score(TEXT, method, words="whitespace", base=2)  # words that every tokenizer agrees on
        words = score.by_word()
        label = f"{lm.name}, {method}"
        print(f"{label:24}", *(f"{word.text} {-word.value:.1f}  " for word in words), f"total {-score.total:.1f}")
        ax.plot([-word.value for word in words], "o-", label=label)
ax.set(xticks=range(len(words)), xticklabels=TEXT.split(), ylabel="surprisal (bits)")
ax.legend()
Path("build").mkdir(exist_ok=True)
plt.savefig("build/compare.png", dpi=120)
