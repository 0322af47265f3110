"""Keys of a recipe that need one another, or rule one another out: tags, swaps, sub-tokens, a ramp, adapters.

What is named here is known to be there: names of laws and objectives were looked up before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from besag.errors import BesagError, quoted

if TYPE_CHECKING:
    from besag.training.recipe import Recipe


def check(recipe: Recipe) -> None:
    """Refuse what would be done in vain, or not at all."""
    if recipe.data.tags is not None:
        _check_tags(recipe, f"data.tags = {quoted(recipe.data.tags)}")
    if recipe.data.swap is not None:
        _check_swap(recipe, f"data.swap = {quoted(recipe.data.swap)}")
    if recipe.model.subtokens:
        _check_subtokens(
            recipe, f"model.subtokens = {recipe.model.subtokens} adds vectors to the table of tokens, which"
        )
    _check_apart(recipe)
    _check_models(recipe)
    if recipe.schedule.ramp and recipe.run.accumulate == 1:
        raise BesagError(
            f"schedule.ramp = {recipe.schedule.ramp:g} lets a step grow from one batch to run.accumulate of them, and "
            "that is 1: set run.accumulate to the most batches of a step, or leave the ramp out"
        )


def _check_tags(recipe: Recipe, said: str) -> None:
    from besag.masks.law import LAWS
    from besag.training.objectives import OBJECTIVES

    law, objective, classes = recipe.masking.law, recipe.objective.name, recipe.masking.options.get("classes")
    if not LAWS.find(law).tagged:
        raise BesagError(
            f"{said} is for the law 'content', and masking.law = {law!r} reads no tags: leave one of them out"
        )
    if classes is not None:
        raise BesagError(
            f"{said} and masking.options.classes = {quoted(classes)} both say which class a word is of: give one"
        )
    if not OBJECTIVES.find(objective).masks:
        raise BesagError(
            f"{said} is for masks by a law, but the objective {objective!r} hides tokens in its own way: leave them out"
        )
    if recipe.data.stream:
        raise BesagError(
            f"{said} with data.stream = true: which tags there are is known when all text was read; set data.stream = "
            "false"
        )


def _check_swap(recipe: Recipe, said: str) -> None:
    data = recipe.data
    for key, given in (("data.spans", data.spans), ("data.tags", data.tags)):
        if given is not None:
            raise BesagError(
                f"{said} moves what stands behind a word of another length, and {key} = {quoted(given)} says where "
                "things stand: leave one of them out"
            )


def _check_subtokens(recipe: Recipe, said: str) -> None:
    if recipe.adapt.method != "none":
        raise BesagError(f"{said} adapt.method = {recipe.adapt.method!r} does not train: leave one of them out")
    if recipe.model.decoder != "none":
        raise BesagError(f"{said} an encoder and its decoder share (model.decoder): it is for masked networks alone")


def _check_apart(recipe: Recipe) -> None:
    """An adapter is of one stored network, whose weights it leaves as they are."""
    from besag.training.objectives import OBJECTIVES
    from besag.training.objectives.objective import Objective
    from besag.training.recipe import is_apart

    adapt = recipe.adapt
    if adapt.method == "bottleneck" and adapt.keep == "merged":
        raise BesagError(
            "adapt.keep = 'merged' with adapt.method = 'bottleneck': what stands after a layer bends, so it is in no "
            "matrix of the network. Keep it apart, or use 'lora'"
        )
    if not is_apart(adapt):
        return
    said = f"adapt.method = {adapt.method!r}" + (" with adapt.keep = 'apart'" if adapt.keep == "apart" else "")
    if adapt.method not in ("lora", "bottleneck"):
        raise BesagError(f"{said}: kept apart are the adapters of 'lora' and 'bottleneck', which this has none of")
    if recipe.model.start is None:
        raise BesagError(f"{said} writes an adapter of a trained network: name it in model.start")
    kept = recipe.objective.name
    kind = OBJECTIVES.find(kept)
    others = {
        f"model.vocabulary = {recipe.model.vocabulary!r}": recipe.model.vocabulary != "as-is",
        "[model.config]": bool(recipe.model.config),
        f"run.weights = {recipe.run.weights!r}": recipe.run.weights != "as-trained",
        "adapt.task": adapt.task is not None,
        f"objective.name = {kept!r}": kind.save_extras is not Objective.save_extras or kind.configures,
    }
    for key, used in others.items():
        if used:
            raise BesagError(
                f"{said} writes an adapter alone, and {key} makes something else that would have to be kept with the "
                "network: leave one of them out"
            )


def _check_models(recipe: Recipe) -> None:
    """A model on the way is the network as it stands: what is put into its weights at the end would be lacking."""
    from besag.training.recipe import is_apart

    added = recipe.adapt.method != "none" and not is_apart(recipe.adapt)
    if recipe.run.models_every and (added or recipe.model.subtokens):
        said = f"adapt.method = {recipe.adapt.method!r}" if added else f"model.subtokens = {recipe.model.subtokens}"
        raise BesagError(
            f"run.models_every = {recipe.run.models_every} with {said}, which is put into the weights when the run is "
            "over: there is no model before. Leave it out, or keep an adapter apart (adapt.keep = 'apart')"
        )
