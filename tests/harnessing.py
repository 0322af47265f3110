"""The real lm-evaluation-harness on choices of our own, for tests of both ways into it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

TASK = """
task: choices
dataset_path: json
dataset_kwargs:
  cache_dir: {folder}
  data_files:
    test: {folder}/items.jsonl
output_type: multiple_choice
test_split: test
doc_to_text: "{{{{context}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{label}}}}"
metric_list:
  - metric: acc
"""


def evaluated(
    folder: Path, items: Sequence[Mapping[str, Any]], model: str, arguments: Any
) -> tuple[list[list[float]], float]:
    """What a model of the harness says of each choice of each item, and how many of these were right: label 0 is."""
    lm_eval = pytest.importorskip("lm_eval", reason="lm-evaluation-harness is missing: pip install 'besag[harness]'")
    importlib.import_module("lm_eval.models")  # its own, which it looks for only where nobody has registered one before
    from lm_eval.tasks import TaskManager

    lines = [json.dumps({"label": 0, **item}) for item in items]
    (folder / "items.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "choices.yaml").write_text(TASK.format(folder=folder), encoding="utf-8")
    results = lm_eval.simple_evaluate(
        model=model, model_args=arguments, tasks=["choices"], log_samples=True, bootstrap_iters=0,
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
    )  # fmt: skip
    samples = sorted(results["samples"]["choices"], key=lambda one: one["doc_id"])
    told = [[float(answer[0]) for answer in one["filtered_resps"]] for one in samples]
    return told, results["results"]["choices"]["acc,none"]
