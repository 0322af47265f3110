"""`besag distil-translations`: from a recipe of a translator to parallel text that teachers have written."""

from __future__ import annotations

from typing import Annotated

import typer

from besag.cli import options as o
from besag.cli.exits import guarded, say
from besag.cli.groups import RunOptions, grouped

_RECIPE = "A recipe of a translator; the teachers are trained as it says, left to right."
_INTO = "A folder for the teachers, train.source and train.target; the same command goes on with it."
_PARTS = "Of the pairs, and teachers: each learns from all parts but the one that it translates."
_PART = "Do this part alone, counted from 0: several processes or machines with one folder share the work."
_SET = "A key of the recipe to change for the teachers, as schedule.steps=1000. Repeat."

RecipeFile = Annotated[str, typer.Argument(metavar="RECIPE", help=_RECIPE, show_default=False)]
Into = Annotated[str, o.of_output("--output", "-o", help=_INTO, show_default=False)]
Parts = Annotated[int, o.of_method("--parts", min=1, max=64, help=_PARTS)]
Part = Annotated[int | None, o.of_method("--part", min=0, help=_PART, show_default=False)]
Beam = Annotated[int, o.of_method("--beam", min=1, help="Of the teachers; 1 is greedy.")]
Alpha = Annotated[float, o.of_method("--alpha", min=0, help="Their scores are log p / n^alpha.")]
Set = Annotated[list[str] | None, o.of_method("--set", metavar="KEY=VALUE", help=_SET, show_default=False)]


@guarded
@grouped
def distil_translations(
    recipe: RecipeFile,
    output: Into,
    run: RunOptions,
    parts: Parts = 2,
    part: Part = None,
    beam: Beam = 5,
    alpha: Alpha = 1.0,
    set_: Set = None,
    device: o.Device = None,
) -> int:
    """Distil parallel text with cross-fitted teachers.

    Sentence pairs are split into parts. Each part is translated by a left-to-right teacher trained on the other parts.
    Run the same command to continue an interrupted run.

    Example:
        besag distil-translations translation.toml -o distilled
    """
    import besag

    done = besag.distil_translations(
        recipe, output, set_ or (), parts=parts, beam=beam, alpha=alpha, part=part, device=device,
        quiet=run.progress is False,
    )  # fmt: skip
    if done is None:
        say(f"part {part} of {parts} is written; train.source and train.target come with the last of them")
        return 0
    kept = f"; {done.kept:,} sources had no translation and keep their target" if done.kept else ""
    say(f"{done.pairs:,} pairs in {done.source} and {done.target}, {done.changed:,} of them with another target{kept}")
    return 0
