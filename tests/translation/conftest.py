"""What the tests of this folder share: one toy language, and a translator of each kind that has learnt it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.translation import pairs

import besag


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parallel files and a tokenizer."""
    made = tmp_path_factory.mktemp("pairs")
    pairs.write(made)
    return made


@pytest.fixture(scope="session")
def masked(folder: Path) -> Any:
    result = besag.train(pairs.recipe(folder), quiet=True)
    assert result.metrics["heldout_loss"] < 0.3
    assert result.metrics["length_accuracy"] > 0.8
    return besag.load(result.model, device="cpu", progress=False)


@pytest.fixture(scope="session")
def causal(folder: Path) -> Any:
    """One word changes the recipe; here with a deeper encoder, and averaged weights."""
    changes = {"model.decoder": "causal", "model.config.encoder_layers": 2, "run.ema": 0.9}
    result = besag.train(pairs.recipe(folder, smoothing=0.05), changes, output=folder / "causal", quiet=True)
    assert result.metrics["heldout_loss"] < 0.3
    return besag.load(result.model, device="cpu", progress=False)
