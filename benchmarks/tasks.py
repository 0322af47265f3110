"""Tasks as texts with a gap, before and after tuning: what it buys, beside chance and the most frequent answer.

    export PYTHONPATH=src
    python3 benchmarks/tasks.py agreement --data FOLDER/blimp --work WORK      # writes WORK/train.tsv …
    python3 -m besag train recipes/instruct.toml --set data.train=WORK/train.tsv --set data.valid=WORK/valid.tsv -o WORK/run
    python3 benchmarks/tasks.py agreement --judge --work WORK --shots 0 4
    python3 benchmarks/tasks.py agreement --judge --work WORK --model WORK/run/model

    python3 benchmarks/tasks.py numbers --work WORK; the same with recipes/task-diffusion.toml
    python3 benchmarks/tasks.py numbers --judge --work WORK --model WORK/run/model

    python3 benchmarks/tasks.py bear --judge --data FOLDER/bear/BEAR --relation P30 --shots 0 4

agreement: is a sentence of BLiMP's paradigms of agreement right or wrong? Both sentences of a pair are in one part.
numbers: two numbers in words; right are their digits in either order, half of the rows each, so that places depend on
each other: what is drawn in one pass mixes the two. bear: SAP, answers written freely, zero and few shots. Every line
that is printed is JSON.
"""  # noqa: E501

from __future__ import annotations

import argparse
import csv
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import besag

TASK = "{sentence} That is {target}."
SAID = {"good": ["right"], "bad": ["wrong"]}
PARTS = {"test": 25, "valid": 5, "train": 250}  # pairs of each paradigm
ONES = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
KERNELS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ancestral", {"grid": 1}), ("ancestral", {"grid": 2}), ("ancestral", {"grid": 6}), ("first_hitting", {}),
    ("ordered", {}), ("entropy_bound", {"bound": 0.1}),
)  # fmt: skip


def write(folder: Path, name: str, rows: Sequence[dict[str, str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(cells) for cells in (rows[0], *(row.values() for row in rows))]
    (folder / f"{name}.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def told(found: besag.Answers, **about: Any) -> None:
    figures = {name: getattr(found, name) for name in ("accuracy", "majority", "chance", "shots", "how")}
    print(json.dumps({**about, "rows": len(found), **figures}, ensure_ascii=False), flush=True)


def cut_agreement(data: Path, work: Path, train: int = PARTS["train"]) -> None:
    parts: dict[str, list[dict[str, str]]] = {part: [] for part in PARTS}
    for file in sorted(data.glob("*agreement*.jsonl")):
        pairs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        random.Random(0).shuffle(pairs)
        for part, count in {**PARTS, "train": train}.items():
            own, pairs = pairs[:count], pairs[count:]
            parts[part] += [{"sentence": one[f"sentence_{label}"], "label": label} for one in own for label in SAID]
    for part, rows in parts.items():
        random.Random(1).shuffle(rows)
        write(work, part, rows)
    print(json.dumps({part: len(rows) for part, rows in parts.items()}))


def judge_agreement(lm: besag.LanguageModel, work: Path, shots: Sequence[int], limit: int) -> None:
    train, test = read(work / "train.tsv"), read(work / "test.tsv")[:limit]
    for count in shots:
        found = besag.answer(lm, test, TASK, SAID, examples=train, shots=count, between=" ")
        told(found, task="agreement", model=lm.conditionals.name)


def said(number: int) -> str:
    """A number from 20 to 99 in words."""
    tens, ones = divmod(number, 10)
    return TENS[tens - 2] + f" {ONES[ones]}" * bool(ones)


def make_numbers(work: Path) -> None:
    drawn = random.Random(0)
    pairs = sorted({tuple(sorted(drawn.sample(range(20, 100), 2))) for _ in range(4000)})
    drawn.shuffle(pairs)
    rows = []
    for one, other in pairs:
        asked, answer = [one, other], [one, other]
        drawn.shuffle(asked)
        drawn.shuffle(answer)
        rows.append({"text": f"{said(asked[0])} and {said(asked[1])}", "answer": f"{answer[0]} {answer[1]}"})
    for part, some in (("test", rows[:200]), ("valid", rows[200:300]), ("train", rows[300:])):
        write(work, part, some)
    print(json.dumps({"train": len(rows) - 300, "valid": 100, "test": 200}))


def judge_numbers(lm: besag.LanguageModel, work: Path, limit: int) -> None:
    test = read(work / "test.tsv")[:limit]
    for kernel, options in KERNELS:
        found = besag.answer(lm, test, "{text} = {target}", label="answer", kernel=kernel, tokens=6, seed=1, **options)
        either = [
            sorted(one.answer.split()) == sorted(row["answer"].split()) for one, row in zip(found, test, strict=True)
        ]
        mixed = [sorted(one.answer.replace(" ", "")) == sorted(row["answer"].replace(" ", ""))
                 for one, row in zip(found, test, strict=True)]  # fmt: skip
        told(found, task="numbers", model=lm.conditionals.name, either_order=sum(either) / len(either),
             digits_right=sum(mixed) / len(mixed))  # fmt: skip


def judge_bear(lm: besag.LanguageModel, data: Path, relation: str, shots: Sequence[int], limit: int) -> None:
    about = json.loads((data / "metadata_relations.json").read_text(encoding="utf-8"))[relation]
    template = about["templates"][0].replace("[X]", "{sub_label}").replace("[Y]", "[MASK]")
    rows = [json.loads(line) for line in (data / f"{relation}.jsonl").read_text(encoding="utf-8").splitlines()]
    random.Random(0).shuffle(rows)
    examples, test = rows[:30], rows[30 : 30 + limit]
    asked: dict[str, Any] = {"label": "obj_label", "examples": examples, "between": " "}
    for count in shots:
        for kernel, options in [*(("sequential", {"fresh": fresh}) for fresh in (1, 2, 4)), ("ordered", {})]:
            found = besag.answer(
                lm, test, template, kernel=kernel, tokens=4, pick="argmax", shots=count, **asked, **options
            )
            told(found, task=relation, template=template, model=lm.conditionals.name)
        named = sorted({row["obj_label"] for row in rows})
        told(besag.answer(lm, test, template, named, shots=count, **asked), task=relation, model=lm.conditionals.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["agreement", "numbers", "bear"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("work"))
    parser.add_argument("--judge", action="store_true", help="ask a model; without it the files are made")
    parser.add_argument("--model", help="if not given, the embedded one")
    parser.add_argument("--relation", default="P30")
    parser.add_argument("--shots", type=int, nargs="*", default=[0])
    parser.add_argument("--limit", type=int, default=400)
    said = parser.parse_args()
    if said.task == "agreement" and not said.judge:
        return cut_agreement(said.data, said.work)
    if said.task == "numbers" and not said.judge:
        return make_numbers(said.work)
    lm = besag.load(*filter(None, [said.model]), progress=False)
    if said.task == "agreement":
        judge_agreement(lm, said.work, said.shots, said.limit)
    elif said.task == "numbers":
        judge_numbers(lm, said.work, said.limit)
    else:
        judge_bear(lm, said.data, said.relation, said.shots, said.limit)
    return None


if __name__ == "__main__":
    main()
