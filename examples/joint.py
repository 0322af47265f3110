"""Two masks together: why the product of fill-mask answers is wrong, and which joint keeps what the model says.

python examples/joint.py ["A text with [MASK] [MASK]."]
"""

import sys

import besag

lm = besag.load()
text = sys.argv[1] if len(sys.argv) > 1 else "He lives in [MASK] [MASK]."

for method in ("mlm", "ag"):  # each mask for itself; both together
    joint = lm.joint(text, method=method, candidates=30)
    print(f"{method}, mutual information {joint.mutual_information:.2f} nats")
    for pair in joint.top(3):
        print(f"  {pair.prob:7.2%}  {pair.text}")

print("\nA-KL: how far the conditionals of each joint are from the model's, in nats, over all contexts")
for row in joint.compare().rows:
    print(f"  {row['construction']:12} {row['all_forward']:6.3f}   likeliest {row['top_prob']:.2%} {row['top']}")
