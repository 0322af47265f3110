"""Whether a run may go on here: with this text, this tokenizer and so many processes, and in batches laid as they were.

A checkpoint says what it belongs to (`belonging`); the rest of a recipe is compared by `recipe.refuse_changes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from besag.errors import BesagError
from besag.training.data.cache import tokenizer_digest
from besag.training.data.stream import StreamBatches
from besag.training.recipe import Recipe
from besag.training.run.checkpoint import Checkpoint

if TYPE_CHECKING:
    from besag.training.run.build import Built


def belonging(built: Built) -> dict[str, Any]:
    """What a checkpoint says of its text: a checksum; of a stream nothing, or the version of its dataset."""
    about: dict[str, Any] = {"tokenizer": tokenizer_digest(built.vocabulary), "lengths": built.lengths}
    if built.train is not None:
        return {"text": str(built.train.meta["arrays"]["tokens"]["sha256"]), **about}
    if built.recipe.data.dataset is not None:
        about["dataset"] = cast(StreamBatches, built.batches).version
    return {"text": None, **about}


def refuse_other_text(start: Checkpoint, built: Built) -> None:
    now = belonging(built)
    data, tokenizer = built.recipe.data, built.recipe.tokenizer
    changed = start.meta.get("dataset", now.get("dataset")) != now.get("dataset")
    if changed or start.meta.get("text") != now["text"]:
        raise BesagError(
            f"the text in {', '.join(data.train) or data.dataset} is not what it was when this run began: bring the "
            "old one back, or begin a new run in another folder (run.output)"
        )
    if start.meta.get("tokenizer", now["tokenizer"]) != now["tokenizer"]:
        raise BesagError(
            f"the tokenizer {tokenizer.path or 'of this run'!r} is not what it was when this run began: bring the old "
            "one back, or begin a new run in another folder (run.output)"
        )


def refuse_other_steps(accumulate: int, start: Checkpoint, recipe: Recipe, world: int) -> None:
    """A batch has its number from the batches of a step: with others of them, text would be skipped or repeated."""
    with start.fitting():
        processes = int(start.meta["processes"])
    before, now = accumulate * processes, recipe.run.accumulate * world
    if recipe.schedule.ramp and (accumulate, processes) != (recipe.run.accumulate, world):
        raise BesagError(
            f"with schedule.ramp = {recipe.schedule.ramp:g} a run goes on with run.accumulate = {accumulate} and "
            f"{processes} processes, as it began, and not with {recipe.run.accumulate} and {world}: a step begins with "
            "one batch of each process"
        )
    if before != now:
        raise BesagError(
            f"a step had {before} batches (run.accumulate = {accumulate}, {processes} processes), and would now "
            f"have {now} ({recipe.run.accumulate}, {world}): keep their product as it was"
        )
