"""Held-out pairs by plain forward passes; a correction shows what is written, a line hides its target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.a_run import MODEL

import besag
from besag import models
from besag.evaluation.pair_monitor import PairMonitor
from besag.training import recipe
from besag.training.run.build import build

PAIRS = [("the old god saw the cat", "the old dog saw the cat"), ("a bird hears me", "a bird hears me")] * 6


def built(folder: Path, **data: Any) -> Any:
    rows = folder / "pairs.tsv"
    rows.write_text("text\tcorrect\n" + "".join(f"{a} {n}\t{b} {n}\n" for n, (a, b) in enumerate(PAIRS)))
    table = {
        "data": {"train": [str(rows)], "valid": [str(rows)], "source_field": "text", "field": "correct",
                 "batch_tokens": 256, "max_length": 48, **data},
        "tokenizer": {"path": str(models.path())}, "model": {"config": MODEL}, "schedule": {"steps": 2},
        "run": {"output": str(folder / "run"), "device": "cpu", "plot": False}, "evaluation": {"sentences": 8},
    }  # fmt: skip
    if data["pairs"] == "in-place":
        table["masking"] = {"law": "error_aware", "rate": 0.2}
    return build(recipe.of_table(table, "test"), device=torch.device("cpu"))


@pytest.mark.parametrize("pairs", ["in-place", "line"])
def test_the_numbers_are_those_of_plain_forward_passes(tmp_path: Path, pairs: str) -> None:
    made = built(tmp_path, pairs=pairs)
    monitor, model = PairMonitor(made), made.model.eval()
    assert len(monitor.questions) == 8
    losses, first, wrong, whole = [], [], [], []
    for question, errors in zip(monitor.questions, monitor.wrong, strict=True):
        with torch.no_grad():
            logits = model(input_ids=torch.from_numpy(question.ids)).logits[0].double().log_softmax(-1)
        at, target = torch.from_numpy(question.place), torch.from_numpy(question.target)
        losses.append(-logits[at, target])
        first.append(logits[at].argmax(-1) == target)
        whole.append(bool(first[-1].all()))
        wrong.append(torch.from_numpy(errors))
    found = monitor(made.model, 3)
    assert found["heldout_loss"] == pytest.approx(float(torch.cat(losses).mean()), rel=1e-5)
    if pairs == "line":
        assert found["answers_right"] == pytest.approx(sum(whole) / 8)
        assert all((question.ids[0, question.place] == made.vocabulary.mask_id).all() for question in monitor.questions)
        return
    right, error = torch.cat(first), torch.cat(wrong)
    assert int(error.sum()) in range(3, 6)  # one in every second text
    assert found["errors_mended"] == pytest.approx(float(right[error].float().mean()))
    assert found["right_kept"] == pytest.approx(float(right[~error].float().mean()))
    assert not any((question.ids == made.vocabulary.mask_id).any() for question in monitor.questions)


def test_a_run_learns_to_mend_and_says_so(tmp_path: Path) -> None:
    rows = tmp_path / "pairs.tsv"
    rows.write_text("text\tcorrect\n" + "".join(f"{a}\t{b}\n" for a, b in PAIRS))
    result = besag.train(
        {"data": {"train": [str(rows)], "valid": [str(rows)], "source_field": "text", "field": "correct",
                  "pairs": "in-place", "batch_tokens": 256, "max_length": 32},
         "model": {"start": models.EMBEDDED}, "masking": {"law": "error_aware", "rate": 0.2},
         "optimizer": {"lr": 3e-4}, "schedule": {"steps": 12}, "evaluation": {"sentences": 12},
         "run": {"output": str(tmp_path / "run"), "device": "cpu", "plot": False}},
        quiet=True,
    )  # fmt: skip
    assert result.metrics["errors_mended"] == 1.0
    assert result.metrics["heldout_loss"] < result.before["heldout_loss"]
    lm = besag.load(result.model, device="cpu")
    assert lm.correct([a for a, _ in PAIRS[:2]]).texts == [b for _, b in PAIRS[:2]]
    card = (result.model / "README.md").read_text(encoding="utf-8")
    assert "pairs of a text as it is written and as it should be" in card
