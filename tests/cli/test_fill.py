"""`besag fill`: all masks together, and how sure it is."""

from __future__ import annotations

import json

import pytest
from tests.cli.conftest import Run, column, table

TEXT = "She put the [MASK] on the [MASK]."


def test_two_masks_are_filled_together(run: Run) -> None:
    result = run("fill", TEXT, "--k", 3, "--candidates", 12)
    assert result.exit_code == 0, result.stderr
    rows = table(result.stdout)
    assert list(rows[0]) == ["text", "prob", "log_prob", "token_1", "token_2"]
    assert len(rows) == 3
    assert column(result.stdout, "prob") == sorted(column(result.stdout, "prob"), reverse=True)
    assert rows[0]["text"] == f"She put the {rows[0]['token_1'].strip('▁')} on the {rows[0]['token_2'].strip('▁')}."
    assert "exact over candidate sets of 12 × 12, which hold " in result.stderr


def test_a_search_is_labelled(run: Run) -> None:
    result = run("fill", "The [MASK] [MASK] [MASK] 🙂.", "--beam", 2, "--candidates", 3, "--format", "jsonl")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["how"].startswith("beam search over the chain of AG pair blocks: not guaranteed")
    assert found["lost"] is None
    assert all(row["text"].endswith("🙂.") for row in found["fillings"])
    assert "not guaranteed" in result.stderr


def test_one_mask_is_the_row_of_the_model(run: Run) -> None:
    result = run("fill", "The capital of France [MASK] Paris.", "-k", 2)
    assert result.exit_code == 0, result.stderr
    assert table(result.stdout)[0]["token_1"] == "▁is"
    assert "exact over all 12,283 text tokens" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["No mask here."], "has no mask"),
        ([TEXT, "--candidates", "many"], "--candidates 'many'"),
        ([TEXT, "--method", "agg"], "no joint construction 'agg'"),
        ([TEXT, "--set", "box=4"], "no option 'box'"),
    ],
)
def test_what_is_wrong_is_said(run: Run, arguments: list[str], message: str) -> None:
    result = run("fill", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
