"""`besag export`: a model with its weights in other numbers, once it is known what that costs."""

from __future__ import annotations

from typing import Annotated

import typer

from besag.characters import is_text
from besag.cli import options as o
from besag.cli.exits import guarded, say
from besag.cli.groups import LayoutOptions, grouped
from besag.errors import BesagError
from besag.files.inputs import Layout, Record, file_input, records

_MODEL = "Folder or hub name; small-en is the embedded English model."
_WEIGHTS = "float32, bfloat16, float16, or int8: matrices in eight bits, a scale a row."
_TEXTS = "Texts to measure the cost on, in any format `besag score` reads; if not given, a few English sentences."
_SOURCE = "Of a translator: the column of --texts with the source that each text is given."
_PAIRS = "Minimal pairs, as `besag eval minimal_pairs` reads them: how many are decided otherwise. Repeat."
_MOST = "Refuse, and write nothing, where it costs more: nats a token, on average."

Which = Annotated[str, typer.Argument(metavar="MODEL", help=_MODEL, show_default=False)]
Into = Annotated[str, typer.Argument(metavar="OUT", help="The folder to write.", show_default=False)]
Weights = Annotated[str, o.of_output("--weights", help=_WEIGHTS)]
Texts = Annotated[str | None, o.of_input("--texts", help=_TEXTS, show_default=False)]
Pairs = Annotated[list[str] | None, o.of_input("--pairs", help=_PAIRS, show_default=False)]
SourceColumn = Annotated[str | None, o.of_input("--source-column", help=_SOURCE, show_default=False)]
Limit = Annotated[int | None, o.of_input("--limit", min=1, help="At most the first N texts, and pairs of each file.")]
Most = Annotated[float, o.of_output("--most", help=_MOST)]
Force = Annotated[bool, o.of_output("--force", help="Write over an existing folder.")]


@guarded
@grouped
def export(
    model: Which,
    output: Into,
    rows: LayoutOptions,
    weights: Weights = "int8",
    most: Most = 0.05,
    texts: Texts = None,
    source_column: SourceColumn = None,
    pairs: Pairs = None,
    limit: Limit = None,
    revision: o.Revision = None,
    force: Force = False,
) -> int:
    """Convert or quantise weights; report the cost.

    The cost is the mean absolute difference of PLL per token, in nats. It is written to the model card, OUT/README.md.

    Example:
        besag export runs/small/model small-int8 --texts held-out.txt
    """
    from besag.evaluation.pair_files import read_pairs
    from besag.models import is_bundled, path
    from besag.training.run.rounding import SENTENCES, check
    from besag.training.run.rounding import export as write

    check(weights, most)
    if texts is None and source_column is not None:
        raise BesagError(f"--source-column {source_column!r} is one of the table that --texts names: name it")
    layout = rows.layout()._replace(sources=source_column)
    read = None if texts is None else _read(texts, layout)[:limit]
    chosen = SENTENCES if read is None else tuple(one.text for one in read)
    given = None if read is None or source_column is None else [one.sources or "" for one in read]
    if not chosen:
        raise BesagError(f"{texts} holds no text to measure the cost on")
    both = [(one.good, one.bad) for file in pairs or () for one in read_pairs(file, limit)]
    source = path() if is_bundled(model) else model
    cost = write(
        source, output, weights, texts=chosen, sources=given, pairs=both, most=most, revision=revision, force=force
    )
    print(cost.words)
    say(f"written to {output}")
    return 0


def _read(file: str, layout: Layout) -> list[Record]:
    """The texts of a file; rows without one, and what cannot be decoded, are no texts to measure on."""
    found = records(file_input(file, layout))
    return [one for one in found if one is not None and one.text.strip() and is_text(one.text)]
