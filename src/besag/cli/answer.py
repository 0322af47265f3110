"""`besag answer`: a task as a text with a gap, asked of a model: by its labels, or by what it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from besag.checks import MOST_LENGTH
from besag.cli import options as o
from besag.cli.exits import guarded, say
from besag.cli.groups import ModelOptions, OutputOptions, RunOptions, grouped
from besag.cli.settings import settings
from besag.errors import BesagError, quoted
from besag.files.rows import read

_ROWS = "Rows of the task: JSON Lines, TSV, CSV or Parquet, with the template's columns; with a label they are judged."
_TEMPLATE = "Columns in braces, [MASK] or {target} where the answer stands."
_LABEL = "A label and the words that say it: positive=good,very good. Repeat; without it the answer is written."
_EXAMPLES = "A file of solved rows, to draw --shots from."
_METHOD = "With --label: the score that compares labels, given the prompt."
_KERNEL = "Without --label: who fills the gap; sequential continues the prompt (SAP)."
_STOP = "Without --label: the answer ends before it; if not given, a sign that follows the gap in the template."

Rows = Annotated[str, typer.Argument(metavar="ROWS", help=_ROWS, show_default=False)]
Frame = Annotated[str, o.of_method("--template", help=_TEMPLATE, show_default=False)]
Labels = Annotated[list[str] | None, o.of_method("--label", metavar="NAME=WORDS", help=_LABEL, show_default=False)]
Column = Annotated[str, o.of_input("--column", help="The column with the label, or the right answer.")]
Limit = Annotated[int | None, o.of_input("--limit", min=1, help="Ask so many rows, the first ones.")]
Examples = Annotated[str | None, o.of_input("--examples", metavar="FILE", help=_EXAMPLES, show_default=False)]
Shots = Annotated[int, o.of_method("--shots", min=0, help="Solved examples before every row.")]
Method = Annotated[str, o.of_method("--method", help=_METHOD)]
KernelName = Annotated[str, o.of_method("--kernel", "-k", help=_KERNEL)]
Tokens = Annotated[int, o.of_method("--tokens", min=1, max=MOST_LENGTH, help="Without --label: masks at the gap.")]
Stop = Annotated[str | None, o.of_method("--stop", help=_STOP, show_default=False)]


@dataclass(frozen=True)
class AskingOptions:
    """How rows become prompts, and how an answer is had."""

    template: Frame
    label: Labels = None
    column: Column = "label"
    limit: Limit = None
    examples: Examples = None
    shots: Shots = 0
    method: Method = "chain"
    kernel: KernelName = "sequential"
    tokens: Tokens = 8
    stop: Stop = None
    set_: o.Set = None

    def of_answer(self) -> dict[str, Any]:
        """As arguments of `besag.answer`."""
        kind, name = ("score", self.method) if self.label else ("kernel", self.kernel)
        [own] = settings(kind, [name], self.set_, {}).values()
        if self.shots and self.examples is None:
            raise BesagError(f"--shots {self.shots} are drawn from solved rows: name their file with --examples")
        return {
            "labels": dict(map(label_words, self.label)) if self.label else None, "label": self.column,
            "examples": [] if self.examples is None else task_rows(self.examples), "shots": self.shots,
            "method": self.method, "kernel": self.kernel, "tokens": self.tokens, "stop": self.stop, **own,
        }  # fmt: skip


@guarded
@grouped
def answer(
    rows: Rows, asking: AskingOptions, model: ModelOptions, output: OutputOptions, run: RunOptions, seed: o.Seed = None
) -> int:
    """Classify or generate with a cloze prompt.

    With --label, labels are compared by the probability of their verbalizers (NAME=WORDS); without it, the model
    generates the answer. If the rows have labels, accuracy is reported on stderr, next to chance and the majority
    class.

    Example:
        besag answer rows.tsv --template "{text} [MASK]." --label 1=good --label 0=bad
    """
    asked = asking.of_answer()  # what is wrong is told before anything is loaded
    found = task_rows(rows)[: asking.limit]
    out = output.open()

    import besag

    answers = besag.answer(model.load(run.progress), found, asking.template, seed=seed or 0, **asked)
    if output.shape == "jsonl":
        for row, one in zip(found, answers.to_dict()["rows"], strict=True):
            out.write({**one, "row": dict(row)}, {})
    else:
        for row, one in zip(found, answers, strict=True):
            share = {"share": one.shares[one.answer]} if one.log_probs else {}
            out.write({**row, "answer": one.answer, **share}, {})
    out.close()
    say(" · ".join(answers.facts))
    return 0


def label_words(said: str) -> tuple[str, Sequence[str]]:
    """A label, and what says it."""
    name, equals, words = said.partition("=")
    found = [word.strip() for word in words.split(",") if word.strip()]
    if not equals or not name.strip() or not found:
        raise BesagError(f"--label {quoted(said)}: write a label and its words, such as positive=good,great")
    return name.strip(), found


def task_rows(path: str) -> list[Mapping[str, Any]]:
    """The rows of a file with columns."""
    found = []
    for row in read(path):
        if not isinstance(row.values, Mapping):
            raise BesagError(f"{row.where} has no columns: give JSON Lines, TSV, CSV or Parquet")
        found.append(row.values)
    if not found:
        raise BesagError(f"{path} has no rows: give JSON Lines, TSV, CSV or Parquet with the template's columns")
    return found
