"""`besag autoprompt`: trigger tokens for a task, found by gradients; and what the prompt answers."""

from __future__ import annotations

from typing import Annotated

import typer

from besag.cli import options as o
from besag.cli.answer import label_words, task_rows
from besag.cli.exits import guarded
from besag.cli.groups import ModelOptions, OutputOptions, RunOptions, grouped
from besag.results.tables import shown

_ROWS = "Rows of the task: JSON Lines, TSV, CSV or Parquet, with the template's columns and the label."
_TEMPLATE = "Columns in braces, [T] for each trigger, [MASK] where the label stands."
_LABEL = "A label and the words of one token that say it: positive=good,great. Repeat; without it labels are words."
_COLUMN = "The column with the label."
_ANSWER = "A file of other rows, to be answered with the prompt."

Rows = Annotated[str, typer.Argument(metavar="ROWS", help=_ROWS, show_default=False)]
Frame = Annotated[str, o.of_method("--template", help=_TEMPLATE, show_default=False)]
Labels = Annotated[list[str] | None, o.of_method("--label", metavar="NAME=WORDS", help=_LABEL, show_default=False)]
Column = Annotated[str, o.of_input("--column", help=_COLUMN)]
Answer = Annotated[str | None, o.of_input("--answer", metavar="FILE", help=_ANSWER, show_default=False)]
Rounds = Annotated[int, o.of_method("--rounds", min=1, help="Each tries every trigger once.")]
Candidates = Annotated[int, o.of_method("--candidates", min=1, help="Tokens that are tried for a trigger.")]
Batch = Annotated[int, o.of_method("--batch", min=1, help="Rows of a gradient, and others to try candidates on.")]
HeldOut = Annotated[float, o.of_method("--held-out", help="Share of the rows, the last ones, that judge.")]


@guarded
@grouped
def autoprompt(
    rows: Rows,
    template: Frame,
    model: ModelOptions,
    output: OutputOptions,
    run: RunOptions,
    label: Labels = None,
    column: Column = "label",
    answer: Answer = None,
    rounds: Rounds = 10,
    candidates: Candidates = 10,
    batch: Batch = 32,
    held_out: HeldOut = 0.2,
    seed: o.Seed = None,
) -> int:
    """Search trigger tokens by gradient.

    AutoPrompt (Shin et al. 2020): the model stays as it is, and the tokens at [T] are optimised.

    Example:
        besag autoprompt capitals.tsv --template "{text} [T] [T] [MASK]."
    """
    labels = dict(map(label_words, label)) if label else None
    found, asked = task_rows(rows), None if answer is None else task_rows(answer)
    out = output.open()

    import besag

    prompt = besag.autoprompt(
        model.load(run.progress), found, template, labels, label=column, rounds=rounds, candidates=candidates,
        batch=batch, held_out=held_out, seed=seed or 0, quiet=run.progress is False,
    )  # fmt: skip
    if asked is not None:
        for row, one in zip(asked, prompt.answer(asked), strict=True):
            out.write({**row, "answer": one["label"], "share": one["shares"][one["label"]]}, {})
    elif output.shape == "jsonl":
        out.write(prompt.to_dict(), {})
    elif not output.on_screen:
        for one in prompt.to_dict()["rounds"]:
            out.write(one, {})
    else:
        print(shown(str(prompt)))
    out.close()
    return 0
