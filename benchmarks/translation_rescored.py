"""The beam's lists of `translation.py`, ranked anew: by the masked translator, which is given the source, and by the
embedded model, which is not; and by both. λ of each is tuned on the validation set and frozen.

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
from besag.results.data import json_ready

LISTS = "causal"  # whose lists
METHOD = "pll"


def rescore(study: Any) -> None:
    models = [study.model(study.best), besag.load(device=study.options.device, progress=False)]
    test, dev = (
        lists(study.out / f"nbest.{LISTS}.{of}.json", sources, references)
        for of, sources, references in (
            ("test", study.sources, study.references),
            ("valid", study.valid, study.valid_references),
        )
    )
    found = besag.rescore(
        models, test, methods=METHOD, dev=dev, metric="bleu", length="length", combine=True,
        scores=study.out / "scores.nbest.jsonl",
    )  # fmt: skip
    told = {"sentences": len(test), "facts": list(found.facts), "rows": json_ready(found.table())}
    write_whole(study.out / "rescored.json", json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    print(found, flush=True)


def lists(path: Path, sources: list[str], references: list[str]) -> list[NBest]:
    """Texts that say the same are one hypothesis: that of the better score, which comes first."""
    found = []
    for number, own in enumerate(json.loads(path.read_text("utf-8"))["lists"]):
        best: dict[str, float] = {}
        for text, score, _ in own:
            if text:
                best.setdefault(text, score)
        hypotheses = tuple(Hypothesis(text, score) for text, score in best.items())
        found.append(NBest(f"{number}", hypotheses, references[number], source=sources[number]))
    return found
