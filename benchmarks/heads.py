"""Heads, explanations and probes on real text, small enough for a CPU.

    BESAG_DATA=… PYTHONPATH=src python3 benchmarks/heads.py [--train 3000] [--texts 60] [--work FOLDER] [--out FILE]

Labels of SNLI from the hypothesis alone (entailment, neutral, contradiction): what can be learned there is how
hypotheses were written, and an explanation should find the words that give a label away. Two classifiers on the
embedded model, one tuned as usual, one on masked texts too; of each, the faithfulness of three ways to explain its
labels of texts held out. A tagger of errors on JFLEG (the words that a corrector changed). And which layer of the
embedded model a linear probe reads the SNLI label from.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import besag

RESULTS = Path(__file__).parent / "results"
LABELS = ("entailment", "neutral", "contradiction")
GRID = np.linspace(0, 1, 11)
METHODS = ("marginalise", "mask", "delete")


def snli(data: Path, work: Path, count: int) -> tuple[Path, Path, list[tuple[str, str]]]:
    """The first hypotheses to learn from, the last 1,000 held out: no premise is on both sides."""
    lines = (data / "snli" / "validation.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [(line.split("\t")[1], LABELS[int(line.split("\t")[2])]) for line in lines]
    rows = [(text, label) for text, label in rows if text.strip()]
    parts = work / "train.tsv", work / "valid.tsv"
    for path, some in zip(parts, (rows[:count], rows[-1000:]), strict=True):
        path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in some), encoding="utf-8")
    return *parts, rows[-1000:]


def jfleg(data: Path, work: Path) -> Path:
    """A word is wrong if the first corrector did not keep it."""
    rows = []
    pairs = zip(
        *((data / "jfleg" / name).read_text(encoding="utf-8").splitlines() for name in ("dev.src", "dev.ref0")),
        strict=True,
    )
    for source, target in pairs:
        words, right = source.split(), target.split()
        if not words:
            continue
        tags = ["wrong"] * len(words)
        for block in difflib.SequenceMatcher(None, words, right, autojunk=False).get_matching_blocks():
            tags[block.a : block.a + block.size] = ["kept"] * block.size
        rows.append({"words": words, "tags": tags})
    path = work / "jfleg.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def tuned(work: Path, name: str, task: dict[str, Any], tuning: dict[str, Any]) -> tuple[Path, dict[str, float]]:
    print(name, flush=True)
    result = besag.train_head(
        {"task": task, "tuning": tuning}, output=work / name, tell=lambda line: print(line, flush=True)
    )
    return result.model, {key: round(value, 4) for key, value in result.metrics.items()}


def faithfulness(lm: besag.LanguageModel, head: Any, texts: list[str], method: str) -> dict[str, Any]:
    """The mean curve of labels of texts, on a common grid, and the relative areas."""
    began, found = time.perf_counter(), []
    for text in texts:
        found.append(lm.explain(text, classifier=head, method=method, curve=True, orders=10))
    relative = [one.curve.relative for one in found if not np.isnan(one.curve.relative)]
    probs, random = (
        np.mean([np.interp(GRID, one.curve.shares, getattr(one.curve, name)) for one in found], 0)
        for name in ("probs", "random")
    )
    whole = float(np.trapezoid(random - probs, GRID) / np.trapezoid(random - probs[-1], GRID))
    error = float(np.std(relative) / np.sqrt(len(relative)))
    return {
        "probs": probs.round(4).tolist(), "random": random.round(4).tolist(), "of_the_mean_curves": round(whole, 4),
        "mean": round(float(np.mean(relative)), 4), "standard_error": round(error, 4), "texts": len(relative),
        "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip


def loudest(lm: besag.LanguageModel, head: Any, texts: list[str]) -> dict[str, list[str]]:
    """The words that speak loudest for each label, by their mean importance where they stand at least twice."""
    heard: dict[str, dict[str, list[float]]] = {label: {} for label in head.labels}
    for text in texts:
        found = lm.explain(text, classifier=head, method="mask")
        label = found.prediction.split("'")[1]
        for one in found.pieces():
            heard[label].setdefault(one.text.lower(), []).append(one.value)
    return {
        label: sorted((word for word in words if len(words[word]) > 1), key=lambda word: -np.mean(words[word]))[:8]
        for label, words in heard.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=int, default=3000)
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--work", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=RESULTS / "heads.json")
    given = parser.parse_args()
    data, work = Path(os.environ["BESAG_DATA"]), given.work or Path(tempfile.mkdtemp())
    work.mkdir(exist_ok=True, parents=True)
    train, valid, held_out = snli(data, work, given.train)
    task = {"train": str(train), "valid": str(valid), "max_length": 64}
    told: dict[str, Any] = {"train": given.train, "heads": {}, "faithfulness": {}}
    lm = besag.load(progress=False)
    texts = [text for text, _ in held_out[:: max(1, len(held_out) // given.texts)]][: given.texts]
    for name, masked in (("plain", False), ("masked", True)):
        folder, told["heads"][name] = tuned(work, name, task, {"epochs": 2, "masked": masked})
        head = besag.load_head(folder)
        told["faithfulness"][name] = {method: faithfulness(lm, head, texts, method) for method in METHODS}
        if masked:
            told["loudest"] = loudest(lm, head, [text for text, _ in held_out[:300]])
        given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    tags = {
        "kind": "tag",
        "train": str(jfleg(data, work)),
        "text": "words",
        "label": "tags",
        "max_length": 96,
        "held_out": 0.2,
    }
    _, told["heads"]["errors"] = tuned(work, "errors", tags, {"epochs": 4})
    probed = held_out + [tuple(line.split("\t")) for line in train.read_text(encoding="utf-8").splitlines()[1:1001]]
    layers = range(int(lm.model.config.num_hidden_layers) + 1)
    told["probe"] = {}
    for layer in layers:
        found = besag.probe(
            lm.embed([text for text, _ in probed], layer), [label for _, label in probed], penalty=100.0
        )
        told["probe"][layer] = [round(found.accuracy, 4), round(found.usual_accuracy, 4)]
    given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: told[key] for key in ("heads", "probe", "loudest")}, indent=1))


if __name__ == "__main__":
    main()
