"""Parallel text and a decoder go together, and what does not go with them is refused with its key."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from tests.translation import pairs

from besag.errors import BesagError
from besag.training.recipe import is_parallel, of_table


def changed(**changes: dict[str, Any]) -> dict[str, Any]:
    table = copy.deepcopy(pairs.recipe(Path("here")))
    for section, keys in changes.items():
        table.setdefault(section, {}).update(keys)
    return table


def test_what_makes_sense() -> None:
    recipe = of_table(changed(), "here")
    assert is_parallel(recipe.data)
    assert of_table(changed(model={"decoder": "causal"}), "here").objective == recipe.objective
    rows = {"source": [], "target": [], "train": ["a.tsv"], "source_field": "de", "field": "en"}
    assert is_parallel(of_table(changed(data=rows), "here").data)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": {"decoder": "none", "family": "modernbert", "config": {}}}, "is parallel text"),
        ({"data": {"source": [], "target": [], "train": ["a.txt"]}}, "needs parallel text"),
        ({"data": {"target": []}}, "data.target names none"),
        ({"data": {"valid_source": ["v.de"]}}, "data.valid_target names none"),
        ({"data": {"source": [], "target": [], "valid_source": ["v"], "valid_target": ["w"]}}, "of nothing|no files"),
        ({"data": {"source_field": "de"}}, "give one of the two"),
        ({"data": {"train": ["a.txt"]}}, "data.train does not go with pairs"),
        ({"data": {"stream": True}}, "data.stream does not go with pairs"),
        ({"masking": {"copies": 2, "rate_law": "constant"}}, "masking.copies does not go"),
        ({"adapt": {"method": "lora"}}, "adapt.method does not go"),
        ({"run": {"weights": "int8"}}, "int8' does not go"),
        ({"objective": {"name": "mae"}}, "'mae' is not for a decoder that sees both sides: .*mlm.* are"),
        ({"objective": {"name": "causal"}}, "'causal' is not for a decoder that sees both sides"),
        ({"objective": {"smoothing": 1.0}}, "smoothing"),
        ({"model": {"family": "bert", "config": {}}}, "that has an encoder and a decoder"),
    ],
)  # fmt: skip
def test_what_does_not(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BesagError, match=words):
        of_table(changed(**changes), "here")


def test_one_text_is_trained_as_ever() -> None:
    plain: dict[str, Any] = {"data": {"train": ["a.txt"]}, "schedule": {"steps": 1}}
    with pytest.raises(BesagError, match="the objective 'mae' takes labels as they are"):
        of_table({**plain, "objective": {"name": "mae", "smoothing": 0.1}}, "here")
    with pytest.raises(BesagError, match="is of a left-to-right decoder"):
        of_table({**plain, "objective": {"name": "causal"}}, "here")
    assert of_table({**plain, "objective": {"smoothing": 0.1}}, "here").objective.smoothing == 0.1


AVERAGES = [({"average": 3}, "keep as many"), ({"average": 2, "ema": 0.9}, "two averages")]


@pytest.mark.parametrize(("run", "words"), AVERAGES)
def test_averages_that_cannot_be(run: dict[str, Any], words: str) -> None:
    with pytest.raises(BesagError, match=words):
        of_table(changed(run=run), "here")
