"""`besag augment`: copies of texts in which some words are others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from besag.checks import MOST_COPIES
from besag.cli import options as o
from besag.cli.exits import INTERRUPTED, UNSCORED, CtrlC, guarded, say
from besag.cli.groups import GivenModelOptions, OutputOptions, RowsOptions, RunOptions, grouped
from besag.cli.positions import Keep, positions
from besag.cli.rows import copy_row
from besag.files.encoding import Row
from besag.files.inputs import Input, Record, records
from besag.files.writing import Writer
from besag.results.words import counted

if TYPE_CHECKING:
    from besag.language_model import LanguageModel
    from besag.samplers.editing.augment import Augmenting

Inputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="INPUT", help="A text, a file, or - for stdin.", show_default=False),
]
Copies = Annotated[int, o.of_method("--copies", min=1, max=MOST_COPIES, help="Of each text.")]
Share = Annotated[float, o.of_method("--share", help="Of the words that may change, in a round.")]
Rounds = Annotated[int, o.of_method("--rounds", min=1, help="How often a text is gone through.")]
Together = Annotated[int, o.of_method("--together", min=1, help="Words hidden at a time.")]
Distinct = Annotated[bool, o.of_method("--distinct/--repeats", help="Draw a copy again that says what another says.")]
Similarity = Annotated[float, o.of_method("--similarity", help="The least similarity to the original; -1 takes all.")]
Temperature = Annotated[float, o.of_method("--temperature", "-t", help="1 draws from the model's own law.")]
TopK = Annotated[int | None, o.of_method("--top-k", help="Draw from the k likeliest tokens.")]
TopP = Annotated[float | None, o.of_method("--top-p", help="Draw from the fewest tokens that hold this share.")]
Seed = Annotated[int, o.of_method("--seed", help="Of all draws.")]


@dataclass(frozen=True)
class CopyOptions:
    """How far a copy may go from its text."""

    copies: Copies = 1
    share: Share = 0.3
    rounds: Rounds = 1
    together: Together = 1
    similarity: Similarity = 0.9
    distinct: Distinct = True
    temperature: Temperature = 1.0
    top_k: TopK = None
    top_p: TopP = None
    seed: Seed = 0


@dataclass(frozen=True)
class AugmentOptions(CopyOptions):
    """And what stays."""

    keep: Keep = None

    def build(self) -> Augmenting:
        from besag.samplers.editing.augment import Augmenting

        return Augmenting(**{**asdict(self), "keep": tuple(positions(self.keep) or ())})


@guarded
@grouped
def augment(
    method: AugmentOptions,
    model: GivenModelOptions,
    rows: RowsOptions,
    output: OutputOptions,
    run: RunOptions,
    input: Inputs = None,
) -> int:
    """Generate similar variants of texts.

    Some words are resampled, one after the other, as long as the text stays similar. Other columns of a table are
    copied. Samples depend only on the seed, the row and the copy, so --skip gives the same rows as a full run. Exit
    code 3: some texts could not be changed (see the column "status").

    Example:
        besag augment "The film was long and rather dull." --copies 3 --keep film
    """
    out = output.open()
    sources = rows.sources(input, "augment", output.output)
    how = method.build()
    lm = model.load(run.progress)
    work = Copying(how, lm, sources, rows)
    ctrl_c = CtrlC()
    with ctrl_c.watched():
        try:
            work.run(out, ctrl_c)
        except KeyboardInterrupt:
            again = rows.skip + work.done
            say(
                f"interrupted after {counted(work.done, 'text')}; go on with --skip {again} (and --output another file)"
            )
            return INTERRUPTED
        finally:
            with ctrl_c.held_back():
                out.close()
    say(f"{how.guard(lm.conditionals)} · seed {method.seed} · {lm.name}")
    if work.unchanged:
        say(f"{counted(work.unchanged, 'copy')} could not be changed: see status and reason")
    return UNSCORED if work.unchanged else 0


class Copying:
    """Texts on their way in, copies on their way out, and how many there were."""

    def __init__(self, how: Augmenting, lm: LanguageModel, sources: list[Input], rows: RowsOptions) -> None:
        self.how, self.lm, self.sources, self.rows = how, lm, sources, rows
        self.waiting: list[Record] = []  # those whose copies have not come back yet, in order
        self.done = self.unchanged = 0

    def run(self, out: Writer, ctrl_c: CtrlC) -> None:
        ready: list[Row] = []  # copies of one text, written together so that --skip repeats none of them
        for row in self.how.run(self.lm.engine, self._given(), first=self.rows.skip):
            record = self.waiting[0]
            ready.append(copy_row(record.number, row))
            self.unchanged += row.status != "ok"
            if len(ready) < self.how.copies:
                continue
            with ctrl_c.held_back():
                for found in ready:
                    out.write(found, {"original": row.original, **record.others})
                ready.clear()
                self.waiting.pop(0)
                self.done += 1

    def _given(self) -> Iterator[str]:
        for record in records(self.sources, skip=self.rows.skip, limit=self.rows.limit):
            if record is not None:
                self.waiting.append(record)
                yield record.text
