"""Held-out pairs of a translator: of all lengths, whatever their batches."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.translation import pairs

from besag.evaluation.translating import TranslationMonitor
from besag.training.recipe import recipe_of
from besag.training.run.build import build


@pytest.mark.parametrize(("sentences", "looked_at"), [(20, 20), (1000, 40), (0, 0)])
def test_all_lengths_are_looked_at(tmp_path: Path, sentences: int, looked_at: int) -> None:
    """Half of the pairs have one word and half have five, so that no batch holds both."""
    pairs.write(tmp_path)
    for side, word in (("s", "cat"), ("t", "dogs")):
        (tmp_path / f"valid.{side}").write_text("".join(f"{' '.join([word] * size)}\n" for size in [1, 5] * 20))
    files = {f"data.valid_{name}": [str(tmp_path / f"valid.{name[0]}")] for name in ("source", "target")}
    changes = {**files, "data.batch_tokens": 32, "evaluation.sentences": sentences, "run.device": "cpu"}
    monitor = TranslationMonitor(build(recipe_of(pairs.recipe(tmp_path), changes), device=torch.device("cpu")))
    sizes = torch.cat([batch.layout.bounds.diff() for batch in monitor.batches] or [torch.zeros(0)])
    assert len(sizes) == looked_at
    assert int((sizes == 3).sum()) == int((sizes == 7).sum()) == looked_at // 2  # with two special tokens
