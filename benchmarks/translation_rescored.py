"""The beam's lists of `translation.py`, ranked anew: by the masked translator, which is given the source, and by the
embedded model, which is not. λ of each is tuned on the validation set and frozen.

First passes are means, log p(x, end | s) / n, so other scores are divided by their tokens too. Scores are kept, so they
can be made on one machine and judged on another. Needs sacrebleu.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import besag
from besag.files.whole import write_whole
from besag.rescoring.lists import Hypothesis, NBest

LISTS = "causal"  # whose lists
METHOD = "pll"


def rescore(study: Any) -> None:
    given = {"masked": study.model(study.best), "embedded": besag.load(device=study.options.device, progress=False)}
    told = {}
    for name, lm in given.items():
        test, dev = (
            lists(study.out / f"nbest.{LISTS}.{of}.json", sources if name == "masked" else None, references)
            for of, sources, references in (
                ("test", study.sources, study.references), ("valid", study.valid, study.valid_references)
            )
        )  # fmt: skip
        found = besag.rescore(
            lm, test, methods=METHOD, dev=dev, metric="bleu", length="length", scores=study.out / f"scores.{name}.jsonl"
        )
        told[name] = {"model": lm.name, "sentences": len(test), "facts": list(found.facts), "rows": found.table()}
        print(found, flush=True)
    write_whole(study.out / "rescored.json", json.dumps(told, indent=1, ensure_ascii=False, default=float) + "\n")


def lists(path: Path, sources: list[str] | None, references: list[str]) -> list[NBest]:
    """Texts that say the same are one hypothesis: that of the better score, which comes first."""
    found = []
    for number, own in enumerate(json.loads(path.read_text("utf-8"))["lists"]):
        best: dict[str, float] = {}
        for text, score, _ in own:
            if text:
                best.setdefault(text, score)
        hypotheses = tuple(Hypothesis(text, score) for text, score in best.items())
        source = None if sources is None else sources[number]
        found.append(NBest(f"{number}", hypotheses, references[number], source=source))
    return found
