"""Whether a recipe of pairs makes sense: parallel text and a decoder go together, or pairs are read without one.

What is made for one text (copies of a passage, streams, a labelled task …) is refused beside them, not passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from besag import templates
from besag.errors import BesagError, quoted

if TYPE_CHECKING:
    from besag.training.recipe import Data, Recipe

KEYS = ("source", "target", "valid_source", "valid_target", "source_field")


def check(recipe: Recipe) -> None:
    pairs, decoder, read_as = _said(recipe.data), recipe.model.decoder, recipe.data.pairs
    if read_as != "line" and (recipe.data.answers or recipe.data.plain):
        raise BesagError("data.answers and data.plain are of pairs on one line: set data.pairs = 'line'")
    if not pairs and read_as != "beside":
        raise BesagError(
            f"data.pairs = {read_as!r} needs pairs: name files in data.source and data.target, or a data.source_field "
            "of the rows in data.train, or in data.template = '{text} It was {target}.' columns of theirs"
        )
    if decoder != "none" and read_as != "beside":
        raise BesagError(f"data.pairs = {read_as!r} is of a network without a decoder: set model.decoder = 'none'")
    if decoder == "none":
        if pairs and read_as == "beside":
            raise BesagError(
                f"{pairs} is parallel text, which a decoder learns from: set model.decoder = 'masked' or 'causal'; or "
                "say how a network without one reads it: data.pairs = 'line' or 'in-place'"
            )
        if pairs:
            _check_pairs(recipe.data)
            _refuse_beside(recipe)
            _check_alone(recipe)
        if recipe.objective.smoothing and not _kind(recipe).translates:
            raise BesagError(
                f"the objective {recipe.objective.name!r} takes labels as they are: objective.smoothing = 0"
            )
        return
    if not pairs:
        raise BesagError(
            f"model.decoder = {decoder!r} needs parallel text: name files in data.source and data.target, or a "
            "data.source_field of the rows in data.train"
        )
    _check_pairs(recipe.data)
    _refuse_beside(recipe)
    if decoder == "masked" and (not _kind(recipe).translates or recipe.objective.name == "causal"):
        raise BesagError(
            f"the objective {recipe.objective.name!r} is not for a decoder that sees both sides: {_translating()} are"
        )


def in_rows(data: Data) -> bool:
    """Do pairs stand in the rows of data.train: a column for the source, or several that a template names?"""
    own = data.pairs == "line" and not data.source and templates.columns(data.template) != ["source"]
    return data.source_field is not None or own


def _said(data: Data) -> str:
    """The key by which text is parallel; empty where it is not."""
    named = next((f"data.{key} = {quoted(getattr(data, key))}" for key in KEYS if getattr(data, key)), "")
    return named or (f"data.template = {quoted(data.template)}" if in_rows(data) else "")


def _check_pairs(data: Data) -> None:
    named = any(getattr(data, key) for key in KEYS[:-1])
    if in_rows(data):
        if named:
            raise BesagError("data.source_field is of rows in data.train, data.source of files: give one of the two")
        return
    for source, target in (("source", "target"), ("valid_source", "valid_target")):
        if bool(getattr(data, source)) != bool(getattr(data, target)):
            missing = target if getattr(data, source) else source
            raise BesagError(f"sources and targets belong together, file by file: data.{missing} names none")
    if not data.source:
        raise BesagError("data.valid_source is held out of nothing: name files in data.source and data.target")


def _refuse_beside(recipe: Recipe) -> None:
    data = recipe.data
    beside = {
        "data.train": bool(data.train and data.source), "data.valid": bool(data.valid and data.source),
        "data.train = '-'": "-" in data.train, "data.dataset": data.dataset is not None, "data.stream": data.stream,
        "data.spans": data.spans is not None, "data.tags": data.tags is not None,
        "data.densest": data.densest is not None, "data.swap": data.swap is not None,
        "data.lengths = 'unpadded'": data.lengths == "unpadded",
        "masking.copies": recipe.masking.copies > 1, "adapt.method": recipe.adapt.method != "none",
        "adapt.task": recipe.adapt.task is not None, "run.weights = 'int8'": recipe.run.weights == "int8",
        "evaluation.minimal_pairs": bool(recipe.evaluation.minimal_pairs),
        "evaluation.general": bool(recipe.evaluation.general),
    }  # fmt: skip
    alone = ("data.lengths = 'unpadded'", "adapt.method", "run.weights = 'int8'", "evaluation.minimal_pairs",
             "evaluation.general")  # fmt: skip
    for key, is_there in beside.items():
        if is_there and not (recipe.model.decoder == "none" and key in alone):
            raise BesagError(f"{key} does not go with pairs of a source and its target: leave it out")


def _check_alone(recipe: Recipe) -> None:
    """Of pairs without a decoder."""
    data, masking, objective = recipe.data, recipe.masking, recipe.objective.name
    if data.pairs == "line":
        _check_line(recipe)
        return
    if objective != "mlm":
        raise BesagError(
            f"data.pairs = 'in-place' asks at every place what should stand there, and the objective {objective!r} "
            "makes questions of its own: set objective.name = 'mlm'"
        )
    if masking.predict < 1:
        raise BesagError(
            f"data.pairs = 'in-place' asks at every place, hidden or not: masking.predict = {masking.predict:g} must "
            "be 1"
        )
    if data.lengths == "unpadded":
        raise BesagError("data.lengths = 'unpadded' does not go with data.pairs = 'in-place': leave it out")


def _check_line(recipe: Recipe) -> None:
    data, masking = recipe.data, recipe.masking
    columns = templates.columns(data.template)
    if data.template.count(templates.TARGET) != 1 or not columns:
        raise BesagError(
            f"data.template = {quoted(data.template)} must hold {{source}} or a column, and {{target}} once: "
            "'{source} It was {target}.'"
        )
    if data.source and columns != ["source"]:
        other = next(name for name in columns if name != "source")
        raise BesagError(
            f"data.template wants {{{other}}}, and pairs of two files have {{source}} and {{target}} alone"
        )
    for label, answer in data.answers.items():
        if not isinstance(answer, str) or not answer.strip():
            raise BesagError(f"data.answers.{label} = {quoted(answer)}: give the text that is written for {label!r}")
    if masking.law == "error_aware":
        raise BesagError("masking.law = 'error_aware' spares errors: set data.pairs = 'in-place'")
    if data.plain and not (_kind(recipe).masks and masking.rate == 1 and masking.rate_law == "constant"):
        raise BesagError(
            f"data.plain = {data.plain:g} hides a share of its own of some lines, which needs an objective that hides "
            "nothing by itself, and masking.rate = 1 for the answers of the others"
        )


def _kind(recipe: Recipe) -> Any:
    from besag.training.objectives import OBJECTIVES

    return OBJECTIVES.find(recipe.objective.name)


def _translating() -> str:
    from besag.training.objectives import OBJECTIVES

    return ", ".join(name for name, kind in OBJECTIVES.items() if kind.translates and name != "causal")
