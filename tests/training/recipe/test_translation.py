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


LINE: dict[str, Any] = {
    "train": ["a.tsv"], "pairs": "line", "field": "label", "template": "{premise} So {hypothesis} {target}.",
}  # fmt: skip


def on_a_line(masking: dict[str, Any] | None = None, objective: str = "mlm", **data: Any) -> dict[str, Any]:
    table = {"data": {**LINE, **data}, "schedule": {"steps": 1}, "objective": {"name": objective}}
    return {**table, "masking": {"rate": 1.0, **(masking or {})}}


def test_columns_in_a_template_are_pairs() -> None:
    assert is_parallel(of_table(on_a_line(), "here").data)
    assert of_table(on_a_line(answers={"0": "yes"}, plain=0.2), "here").data.plain == 0.2
    assert is_parallel(of_table(on_a_line(template="{source} {x} {target}", source_field="text"), "here").data)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (on_a_line(template="{premise} and no gap"), "must hold {source} or a column, and {target} once"),
        (on_a_line(template="{target} alone"), "must hold {source} or a column"),
        (on_a_line(template="{source} {target}"), "needs pairs: .* columns of theirs"),
        (on_a_line(train=[], source=["a"], target=["b"]), "wants {premise}, and pairs of two files"),
        (on_a_line(answers={"0": ""}), "data.answers.0 = ''"),
        (on_a_line(answers={"0": 3}), "data.answers.0 = 3: give the text"),
        (on_a_line({"rate": 0.5}, plain=0.1), "data.plain = 0.1 .* masking.rate = 1"),
        (on_a_line(objective="mdlm", plain=0.1), "data.plain = 0.1 .* an objective that hides"),
        ({"data": {"train": ["a.txt"], "answers": {"0": "no"}}, "schedule": {"steps": 1}}, "set data.pairs = 'line'"),
    ],
)
def test_lines_that_make_no_sense(table: dict[str, Any], words: str) -> None:
    with pytest.raises(BesagError, match=words):
        of_table(table, "here")
