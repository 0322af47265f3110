"""`besag predict`: labels of texts, or of their words, by a head that was tuned."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import OutputOptions, RowsOptions, grouped
from besag.files.inputs import Record, records
from besag.results.words import counted

if TYPE_CHECKING:
    from besag.heads.head import Labelled

TOGETHER = 1024  # texts

Inputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="INPUT", show_default=False, help="A text, a file of texts, or - for stdin."),
]
Folder = Annotated[
    str,
    o.of_model("--head", help="Folder of a classifier or a tagger: `besag train head` writes one.", show_default=False),
]
Every = Annotated[bool, o.of_result("--all", help="The probability of every label, a column each.")]


@guarded
@grouped
def predict(
    head: Folder,
    rows: RowsOptions,
    output: OutputOptions,
    input: Inputs = None,
    device: o.Device = None,
    all_: Every = False,
) -> int:
    """Label texts with a fine-tuned head.

    Each row is a text (classifier) or a whitespace-separated word (tagger), with its most probable label. Other columns
    of a table are copied. Exit code 3: some rows are empty or too long for the model (see the column "status").

    Example:
        besag predict reviews.tsv --head head --all -o labelled.tsv
    """
    out = output.open()
    sources = rows.sources(input, "predict", output.output)

    from besag.heads.head import Classifier
    from besag.heads.loading import load_head

    found = load_head(head, device=device)
    refused = 0
    given = filter(None, records(sources, skip=rows.skip, limit=rows.limit))
    while some := list(islice(given, TOGETHER)):
        texts = [record.text for record in some]
        said = [[one] for one in found.predict(texts)] if isinstance(found, Classifier) else found.predict(texts)
        for record, labelled in zip(some, said, strict=True):
            refused += any(one.status != "ok" for one in labelled)
            for row, others in _rows(record, labelled, found.labels if all_ else (), isinstance(found, Classifier)):
                out.write(row, others)
    out.close()
    if refused:
        say(f"{counted(refused, 'text')} without a label: see status")
    return UNSCORED if refused else 0


def _rows(
    record: Record, labelled: list[Labelled], labels: tuple[str, ...], whole: bool
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for place, one in enumerate(labelled, 1):
        where = {"text_id": record.number} | ({} if whole else {"word": place})
        every = {f"p({label})": float(prob) for label, prob in zip(labels, one.probs, strict=bool(labels))}
        row = {**where, "text": one.text, "label": one.label, "prob": one.prob, **every, "status": str(one.status)}
        yield row, dict(record.others) if whole else {}
