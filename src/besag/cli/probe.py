"""`besag probe`: can a label be read from vectors of texts by a linear map?"""

from __future__ import annotations

from typing import Annotated

import typer

from besag.cli import options as o
from besag.cli.embed import Layer, Pool, vectors
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import ModelOptions, PlotOptions, RowsOptions, RunOptions, grouped
from besag.errors import BesagError
from besag.files import columns
from besag.files.inputs import records

File = Annotated[str, typer.Argument(metavar="FILE", show_default=False, help="A table of texts and their labels.")]
Label = Annotated[str, o.of_input("--label", help="The column with the label.")]
Folds = Annotated[int, o.of_method("--folds", min=2, help="Parts that take turns to be held out.")]
Penalty = Annotated[float, o.of_method("--penalty", min=0, help="Of squared weights.")]
Seed = Annotated[int, o.of_method("--seed", help="Of which text is in which fold.")]


@guarded
@grouped
def probe(
    file: File,
    model: ModelOptions,
    rows: RowsOptions,
    output: PlotOptions,
    run: RunOptions,
    label: Label = "label",
    layer: Layer = None,
    pool: Pool = "mean",
    folds: Folds = 5,
    penalty: Penalty = 1.0,
    seed: Seed = 0,
) -> int:
    """Cross-validate a linear probe.

    A linear classifier is fitted to text embeddings. Each row is a label, with its number of texts and its recall. Exit
    code 3: rows without an embedding were left out, see stderr.

    Example:
        besag probe reviews.tsv --label label
    """
    out = output.open()
    found = [one for one in records(rows.sources([file], "probe", output.output)) if one is not None]
    found = found[rows.skip :][: rows.limit]
    labels = [str(columns.value(record.others, label, record.where)) for record in found]
    from besag.embedding.probe import probe as fit

    lm = model.load(run.progress)
    made = list(vectors(lm, found, layer, pool))
    for record, vector, status in made:
        if vector is None:
            say(f"{record.where} is left out: {status.sentence}")
    seen = [(vector, name) for (_, vector, _), name in zip(made, labels, strict=True) if vector is not None]
    if not seen:
        raise BesagError(f"{file!r}: none of its {len(made):,} rows has a vector")
    told = fit([vector for vector, _ in seen], [name for _, name in seen], folds=folds, penalty=penalty, seed=seed)
    if output.shape == "jsonl":
        out.write(told.to_dict(), {})
    else:
        for name, (count, share) in told.by_label().items():
            out.write({"label": name, "examples": count, "found": share}, {})
    out.close()
    output.save(told)
    say(" · ".join(told.facts))
    return UNSCORED if len(seen) < len(made) else 0
