"""The page of samples: 20 texts from every kernel, the first 20 of seed 0, none left out, none chosen.

python docs/samples.py            # writes docs/generation/samples.md
"""

from __future__ import annotations

import sys
from pathlib import Path

import besag
from besag.samplers import kernel

PAGE = Path(__file__).parent / "generation" / "samples.md"
LENGTH, CHAINS, SEED = 14, 20, 0
RUNS: list[tuple[str, dict[str, object], int | None]] = [  # kernel, options, steps
    ("ordered", {}, None),
    ("ordered", {"order": "confidence"}, None),
    ("ordered", {"top_p": 0.9}, None),
    ("speculative", {}, None),
    ("first_hitting", {}, None),
    ("ancestral", {"grid": 64}, None),
    ("ancestral", {"grid": 4}, None),
    ("remask", {"grid": 32}, None),
    ("block_diffusion", {"size": 4}, None),
    ("entropy_bound", {}, None),
    ("threshold", {}, None),
    ("adaptive", {}, None),
    ("grouped", {"size": 2}, None),
    ("g_ipd", {"groups": 4}, None),
    ("mask_predict", {"iterations": 7, "pick": "sample"}, None),
    ("refine", {"pick": "sample"}, None),
    ("semi_ar", {"window": 8}, None),
    ("sequential", {}, None),
    ("gibbs", {}, 280),
    ("gibbs", {"top_k": 100}, 280),
    ("block_gibbs", {}, 140),
    ("block_gibbs", {"inner": "independent"}, 140),
    ("metropolis", {}, 140),
    ("tempering", {}, 40),
]
HEAD = f"""# Samples

{CHAINS} texts from every kernel: {LENGTH} tokens from nothing and a full stop, chains 0 to {CHAINS - 1} of seed {SEED},
as they came. None was chosen and none left out. The embedded model is small; look at the differences between
kernels, not at the sense. `python docs/samples.py` writes this page.

[`spindle`](diffusion.md) is missing: it is for models that were trained with its schedules.
"""


def main() -> None:
    lm = besag.load(progress=False)
    parts = [HEAD]
    for name, options, steps in RUNS:
        chain = lm.sample(
            kernel=name,
            length=LENGTH,
            end=".",
            chains=CHAINS,
            steps=steps,
            seed=SEED,
            **options,  # type: ignore[arg-type]
        )
        spent = f"{chain.passes.mean():.0f} forward passes a text"
        lines = "\n".join(chain.texts)
        parts.append(f"## {kernel(name, **options).label}\n\n{spent[0].upper()}{spent[1:]}.\n\n```\n{lines}\n```\n")
        print(f"{kernel(name, **options).label}: {spent}", file=sys.stderr)
    PAGE.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
