"""`besag edit`: replace a word, and let the rest follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from besag.cli import options as o
from besag.cli.exits import guarded, say
from besag.cli.positions import Keep, position, positions
from besag.cli.writing import choose_format, writer
from besag.errors import BesagError

if TYPE_CHECKING:
    from besag.places.positions import Position

Text = Annotated[str, typer.Argument(metavar="TEXT", help="The text to edit.", show_default=False)]
Replacements = Annotated[
    list[str],
    typer.Argument(
        metavar="OLD=NEW …",
        help="A place (as for --keep) and what stands there now; OLD= draws it anew.",
        show_default=False,
    ),
]
Strength = Annotated[float, o.of_method("--strength", help="0: only the text's own noise; 1: only fresh noise.")]
Depth = Annotated[float, o.of_method("--depth", help="The share of the text that is hidden at a time.")]
Temperature = Annotated[float, o.of_method("--temperature", "-t", help="1 draws from the model's own law.")]
Seed = Annotated[int, o.of_method("--seed", help="Of the path and of fresh noise.")]


@guarded
def edit(
    text: Text,
    changes: Replacements,
    strength: Strength = 0.0,
    keep: Keep = None,
    depth: Depth = 0.2,
    temperature: Temperature = 1.0,
    seed: Seed = 0,
    model: o.Model = None,
    device: o.Device = None,
    dtype: o.Dtype = None,
    revision: o.Revision = None,
    allow_pickle: o.AllowPickle = False,
    format: o.Format = None,
    output: o.Output = None,
    force: o.Force = False,
    batch_tokens: o.BatchTokens = None,
    progress: o.Progress = None,
) -> int:
    """Replace words of a text; the others are drawn again with the noise that made them, so most of them stay.

    besag edit "The boy lost his keys." boy=girl
    """
    shape = choose_format(format, output)
    out = writer(shape, output, force)
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

    import besag

    lm = besag.load(
        model, device=device, dtype=dtype, revision=revision, allow_pickle=allow_pickle, batch_tokens=batch_tokens,
        progress=progress,
    )  # fmt: skip
    found = lm.edit(
        text, wanted, strength=strength, keep=positions(keep) or (), depth=depth, temperature=temperature, seed=seed
    )
    if shape == "jsonl":
        out.write(found.to_dict(), {})
    else:
        out.write({"original": found.original, "text": found.text, "changed": len(found.flips), "free": found.free}, {})
    out.close()
    say(" · ".join(found.told))
    return 0
