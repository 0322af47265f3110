"""Why a pseudo-log-likelihood is no probability: sum it over every sequence there is, where the truth is known.

python examples/exact_table.py
"""

import itertools
import math

import besag

table = besag.Table.random(width=3, places=3, seed=1)  # a joint law of three symbols in a row: 27 sequences
lm = besag.load(table, progress=False)
texts = [" ".join(symbols) for symbols in itertools.product(["s0", "s1", "s2"], repeat=3)]
truth = table.log_probs.flatten().tolist()

print("sum over all 27 sequences (a probability gives 1), and the largest error against log p(x)")
for method, options in [("pll", {}), ("chain", {}), ("chain", {"order": "confident"}), ("elbo", {"samples": "all"})]:
    totals = [score.total for score in lm.score(texts, method, **options)]
    error = max(abs(total - true) for total, true in zip(totals, truth, strict=True))
    print(f"{method:6} {options.get('order', ''):10} sum {sum(map(math.exp, totals)):8.6f}   error {error:8.1e}")
