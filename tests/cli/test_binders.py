"""`besag binders`: peptides on the line or in a file, and proposed ones, as Python ranks them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Run, column, put, table

import besag
from besag.variants.mutations import RESIDUES


@pytest.fixture
def lm(run: Run, monkeypatch: pytest.MonkeyPatch) -> besag.LanguageModel:
    """A protein model of three residues, which every --model is."""
    weights = np.random.default_rng(0).gamma(0.5, size=(20, 20, 20)) + 1e-3
    from besag.load_model import load

    found = load(besag.Table(weights, symbols=list(RESIDUES)))

    def loaded(*given: Any, **options: Any) -> besag.LanguageModel:
        return found

    monkeypatch.setattr(besag, "load", loaded, raising=False)
    return found


def test_ranks_are_those_of_python(run: Run, lm: besag.LanguageModel, tmp_path: Path) -> None:
    file, target = put(tmp_path / "peptides.txt", "GG\nAC\nCA\n"), put(tmp_path / "t.fasta", ">target\nA\n")
    result = run("binders", target, file, "--format", "tsv")
    assert result.exit_code == 0, result.stderr
    found = lm.binders("A", ["GG", "AC", "CA"])
    assert [row["peptide"] for row in table(result.stdout)] == [one.peptide for one in found.binders]
    assert column(result.stdout, "perplexity") == pytest.approx([one.perplexity for one in found.binders], rel=1e-3)
    assert "pseudo-perplexity of a peptide's residues" in result.stderr
    line = run("binders", "A", "GG", "AC", "CA", "--format", "tsv")
    assert line.stdout == result.stdout


def test_proposals_are_those_of_python(run: Run, lm: besag.LanguageModel) -> None:
    result = run("binders", "A", "--length", "2", "-n", "5", "--set", "top_k=2", "--seed", "1", "--format", "tsv")
    assert result.exit_code == 0, result.stderr
    found = lm.binders("A", length=2, number=5, top_k=2, seed=1)
    assert [row["peptide"] for row in table(result.stdout)] == [one.peptide for one in found.binders]
    assert {row["proposed"] for row in table(result.stdout)} == {"true"}


def test_what_is_missing_is_said(run: Run, lm: besag.LanguageModel) -> None:
    result = run("binders", "A")
    assert result.exit_code == 2
    assert "give some, or the length" in result.stderr
    result = run("binders", "A", "GG", "--set", "top_k=2")
    assert result.exit_code == 2
    assert "(--length)" in result.stderr
    result = run("binders", "A", "G1")
    assert result.exit_code == 2
    assert "holds '1'" in result.stderr
