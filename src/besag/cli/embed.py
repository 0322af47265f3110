"""`besag embed`: a vector for each text."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Literal

import typer

from besag.cli import options as o
from besag.cli.exits import guarded
from besag.cli.groups import ModelOptions, OutputOptions, RowsOptions, RunOptions, grouped
from besag.errors import BesagError
from besag.files.inputs import records

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
    given = filter(None, records(sources, skip=rows.skip, limit=rows.limit))
    while some := list(islice(given, TOGETHER)):
        for record, vector in zip(some, lm.embed([one.text for one in some], layer, pool=pool).tolist(), strict=True):
            numbers = {"vector": vector} if shape == "jsonl" else {f"v{at}": one for at, one in enumerate(vector, 1)}
            out.write({"text_id": record.number, **numbers}, record.others)
    out.close()
    return 0
