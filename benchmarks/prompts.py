"""What triggers buy: AutoPrompt on relations of BEAR, beside the relation's own template, on subjects not seen before.

    PYTHONPATH=src python3 benchmarks/prompts.py --data FOLDER/bear/BEAR P30 P103

Of a relation the subjects whose answer is one token are taken, in an order drawn by a seed: 60 % to search on, 20 % to
choose the round by, 20 % to judge on. Every prompt is asked for the same labels, so chance is the same for both.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import besag
from besag.errors import BesagError
from besag.prompting.likelihood import Likelihood
from besag.prompting.template import Template


def one_token(lm: besag.LanguageModel, word: str) -> bool:
    try:
        return len(Template("a [MASK].", lm.vocabulary).words({}, [word])) == 1
    except BesagError:
        return False


def by_hand(lm: besag.LanguageModel, template: str, labels: list[str], rows: list[dict[str, str]]) -> float:
    """Accuracy of a template without triggers."""
    frame = Template(template, lm.vocabulary)
    words = [frame.words(rows[0], [label]) for label in labels]
    asking = Likelihood(lm.model, lm.conditionals.device)
    laws = asking.answers([frame.asked(row) for row in rows], words, words[0][:0])
    return sum(labels[best] == row["label"] for best, row in zip(laws.argmax(1), rows, strict=True)) / len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("relations", nargs="+")
    parser.add_argument("--data", type=Path, required=True, help="the folder of BEAR's relations")
    parser.add_argument("--model", help="if not given, the embedded one")
    parser.add_argument("--triggers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=6)
    chosen = parser.parse_args()
    lm = besag.load(*filter(None, [chosen.model]), progress=False)
    about = json.loads((chosen.data / "metadata_relations.json").read_text(encoding="utf-8"))
    for name in chosen.relations:
        lines = (chosen.data / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        found = [(one["sub_label"], one["obj_label"]) for one in map(json.loads, lines)]
        rows = [{"subject": subject, "label": label} for subject, label in found if one_token(lm, label)]
        random.Random(0).shuffle(rows)
        known, test = rows[: len(rows) * 4 // 5], rows[len(rows) * 4 // 5 :]
        labels = {row["label"]: [row["label"]] for row in rows}
        template = "{subject} " + "[T] " * chosen.triggers + "[MASK]."
        prompt = besag.autoprompt(lm, known, template, labels, rounds=chosen.rounds, held_out=0.25, quiet=True)
        right = [one["label"] == row["label"] for one, row in zip(prompt.answer(test), test, strict=True)]
        own = about[name]["templates"][0].replace("[X]", "{subject}").replace("[Y]", "[MASK]")
        told = {"rows": len(rows), "labels": len(labels), "test": len(test), "template": own, "prompt": prompt.text}
        print(json.dumps({"relation": name, **told, "by_hand": by_hand(lm, own, list(labels), test),
                          "found": sum(right) / len(right)}, ensure_ascii=False))  # fmt: skip


if __name__ == "__main__":
    main()
