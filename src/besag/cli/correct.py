"""`besag correct`: texts with the tokens replaced that a corrector finds wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from besag.cli import options as o
from besag.cli.exits import INTERRUPTED, UNSCORED, CtrlC, guarded, say
from besag.cli.groups import GivenModelOptions, OutputOptions, RowsOptions, RunOptions, grouped
from besag.files.inputs import Record, records
from besag.results.words import counted

if TYPE_CHECKING:
    from besag.samplers.editing.correct import Corrected

Inputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="INPUT", help="A text, a file, or - for stdin.", show_default=False),
]
Margin = Annotated[
    float, o.of_method("--margin", help="Nats by which another token must be likelier than the written.")
]
Spans = Annotated[bool, o.of_method("--spans", help="Also say where tokens were replaced, with their log odds.")]


@guarded
@grouped
def correct(
    model: GivenModelOptions,
    rows: RowsOptions,
    output: OutputOptions,
    run: RunOptions,
    input: Inputs = None,
    margin: Margin = 0.0,
    spans: Spans = False,
) -> int:
    """Correct spelling errors.

    Needs a model trained on corrections (data.pairs = "in-place"). Tokens are replaced one for one, in one forward
    pass; other columns of a table are copied. Exit code 3: some texts could not be read (see the column "status").

    Example:
        besag correct essays.txt --model runs/spelling/model -o corrected.tsv
    """
    out = output.open()
    sources = rows.sources(input, "correct", output.output)
    from besag.samplers.editing.correct import Correcting

    how = Correcting(margin)
    lm = model.load(run.progress)
    if model.model is None:
        say(f"{lm.name} has not learnt to correct: --model names one that has")
    waiting: list[Record] = []  # whose corrections have not come back yet, in order
    done = changed = unread = 0

    def texts() -> Iterator[str]:
        for record in records(sources, skip=rows.skip, limit=rows.limit):
            if record is not None:
                waiting.append(record)
                yield record.text

    ctrl_c = CtrlC()
    with ctrl_c.watched():
        try:
            for row in how.run(lm.engine, texts()):
                with ctrl_c.held_back():
                    record = waiting.pop(0)
                    out.write(_row(record, row, spans), {"original": row.original, **record.others})
                    done, changed, unread = done + 1, changed + bool(row.edits), unread + (row.status != "ok")
        except KeyboardInterrupt:
            again = rows.skip + done
            say(f"interrupted after {counted(done, 'text')}; go on with --skip {again} (and --output another file)")
            return INTERRUPTED
        finally:
            with ctrl_c.held_back():
                out.close()
    say(f"{changed:,} of {counted(done, 'text')} changed · margin {margin:g} nats · {lm.name}")
    if unread:
        say(f"{counted(unread, 'text')} could not be read: see status")
    return UNSCORED if unread else 0


def _row(record: Record, row: Corrected, spans: bool) -> dict[str, object]:
    from besag.samplers.editing.correct import told

    found: dict[str, object] = {"row": record.number, "text": row.text, "changed": told(row)}
    if spans:
        found["spans"] = " ".join(f"{edit.start}-{edit.end}:{edit.log_odds:.4g}" for edit in row.edits)
    return {**found, "status": row.status}
