"""`besag embed`: a vector for each text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import ModelOptions, OutputOptions, RowsOptions, RunOptions, grouped
from besag.errors import BesagError
from besag.files.inputs import Record, records
from besag.results.words import counted

if TYPE_CHECKING:
    from besag.language_model import LanguageModel
    from besag.results.status import Status

TOGETHER = 1024  # texts

Inputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="INPUT", show_default=False, help="A text, a file of texts, or - for stdin."),
]
Layer = Annotated[
    int | None,
    o.of_method("--layer", help="0 is the table of tokens, -1 the last; the last if not given.", show_default=False),
]
Pool = Annotated[Literal["mean", "first"], o.of_method("--pool", help="The mean over tokens, or the first token.")]


@guarded
@grouped
def embed(
    model: ModelOptions,
    rows: RowsOptions,
    output: OutputOptions,
    run: RunOptions,
    input: Inputs = None,
    layer: Layer = None,
    pool: Pool = "mean",
) -> int:
    """Compute mean-pooled text embeddings.

    Dimensions are written as columns v1, v2, … next to the other columns of a table, or as a list in JSON Lines. Exit
    code 3: some texts have no embedding (see the column "status").

    Example:
        besag embed texts.tsv -o embeddings.parquet
    """
    if (output.output or "").endswith((".npy", ".npz")):
        raise BesagError(
            f"{output.output} would be a table with such a name: write .parquet, or numpy.save(file, lm.embed(texts))"
        )
    shape, out = output.shape, output.open()
    sources = rows.sources(input, "embed", output.output)
    lm = model.load(run.progress)
    from besag.embedding.embed import dimensions

    given, lacking = filter(None, records(sources, skip=rows.skip, limit=rows.limit)), 0
    nothing = [None] * dimensions(lm.engine)
    while some := list(islice(given, TOGETHER)):
        for record, vector, status in vectors(lm, some, layer, pool):
            lacking += vector is None
            values = nothing if vector is None else vector
            numbers = {"vector": vector} if shape == "jsonl" else {f"v{at}": one for at, one in enumerate(values, 1)}
            out.write({"text_id": record.number, **numbers, "status": str(status)}, record.others)
    out.close()
    if lacking:
        say(f"{counted(lacking, 'text')} without a vector: see status")
    return UNSCORED if lacking else 0


def vectors(
    lm: LanguageModel, some: list[Record], layer: int | None, pool: Literal["mean", "first"]
) -> Iterator[tuple[Record, list[float] | None, Status]]:
    """Yield each record with its vector, None where there is none, and with its status."""
    from besag.embedding.embed import statuses
    from besag.results.status import Status

    found = statuses(lm.engine, [record.text for record in some])
    texts = [record.text for record, status in zip(some, found, strict=True) if status == Status.OK]
    made = iter(lm.embed(texts, layer, pool=pool).tolist())
    for record, status in zip(some, found, strict=True):
        yield record, next(made) if status == Status.OK else None, status
