"""`besag edit`: replace a word, and let the rest follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import GivenModelOptions, OutputOptions, RunOptions, grouped
from besag.cli.positions import Keep, position, positions
from besag.errors import BesagError

if TYPE_CHECKING:
    from besag.places.positions import Position

Text = Annotated[str, typer.Argument(metavar="TEXT", help="The text to edit.", show_default=False)]
Replacements = Annotated[
    list[str],
    typer.Argument(
        metavar="OLD=NEW …", help="A word and what stands there now; OLD= draws it anew.", show_default=False
    ),
]
Strength = Annotated[float, o.of_method("--strength", help="0: only the text's own noise; 1: only fresh noise.")]
Depth = Annotated[float, o.of_method("--depth", help="The share of the text that is hidden at a time.")]
Temperature = Annotated[float, o.of_method("--temperature", "-t", help="1 draws from the model's own law.")]
Seed = Annotated[int, o.of_method("--seed", help="Of the path and of fresh noise.")]


@guarded
@grouped
def edit(
    text: Text,
    changes: Replacements,
    model: GivenModelOptions,
    output: OutputOptions,
    run: RunOptions,
    strength: Strength = 0.0,
    keep: Keep = None,
    depth: Depth = 0.2,
    temperature: Temperature = 1.0,
    seed: Seed = 0,
) -> int:
    """Replace words and adapt their context.

    Other tokens are resampled with the random numbers that produce the original text, so most of them stay. Exit code
    3: the new text is tokenised differently from the sampled tokens (see the column "status").

    Example:
        besag edit "The boy lost his keys." boy=girl
    """
    out = output.open()
    wanted = _replacements(changes)
    lm = model.load(run.progress)
    found = lm.edit(
        text, wanted, strength=strength, keep=positions(keep) or (), depth=depth, temperature=temperature, seed=seed
    )
    if output.shape == "jsonl":
        out.write(found.to_dict(), {})
    else:
        row = {"original": found.original, "text": found.text, "changed": len(found.flips), "free": found.free}
        out.write({**row, "status": str(found.status)}, {})
    out.close()
    say(" · ".join(found.facts))
    return 0 if found.status.fine else UNSCORED


def _replacements(changes: list[str]) -> dict[Position, str | None]:
    """OLD=NEW, or OLD= where a word is to be drawn anew."""
    wanted: dict[Position, str | None] = {}
    said: dict[Position, str] = {}
    for one in changes:
        old, equals, new = one.partition("=")
        if not old or not equals:
            raise BesagError(f"{one!r}: write OLD=NEW, such as boy=girl, or OLD= to draw a word anew")
        where = position(old)
        if where in said:
            raise BesagError(f"{said[where]!r} and {one!r} both say what becomes of {old!r}: give one of them")
        wanted[where], said[where] = new or None, one
    return wanted
