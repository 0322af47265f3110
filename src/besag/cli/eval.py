"""`besag eval`: how good a model is, by suites (`suites.py`); and does training text hold what it is judged on?"""

from __future__ import annotations

import sys
from typing import Annotated, TextIO

import typer

from besag.cli import options as o
from besag.cli.exits import guarded
from besag.cli.groups import OutputOptions, RunOptions, grouped
from besag.cli.suites import RUN, Suites, compare, list_suites, run
from besag.errors import BesagError
from besag.results.tables import shown

_SENTENCE = "Where the {} sentence is: a name, a number from 1, or a path as in hyps.0.text."
Good = Annotated[str | None, o.of_input("--good", help=_SENTENCE.format("acceptable"), show_default=False)]
Bad = Annotated[str | None, o.of_input("--bad", help=_SENTENCE.format("other"), show_default=False)]
_HEADER = "Does a TSV or CSV begin with names of columns? If not said, these must be known ones, or named here."
Header = Annotated[bool | None, o.of_input("--header/--no-header", help=_HEADER, show_default=False)]

_TRAIN = "Text, JSON Lines, TSV, CSV or Parquet, packed or not, as `besag train` reads them; globs; - for stdin."
_AGAINST = "What the model is judged on: minimal pairs, or plain text, a line each. Repeat."
Train = Annotated[list[str], typer.Argument(metavar="TRAIN…", help=_TRAIN, show_default=False)]
Against = Annotated[list[str], o.of_input("--against", help=_AGAINST, show_default=False)]
Length = Annotated[int, o.of_method("--length", min=4, help="Words in a row.")]
Field = Annotated[
    str, o.of_input("--field", help="Of rows: where the training text is, a name or a path as in page.text.")
]

_HELP = "Run benchmarks; detect test contamination."
evaluate = typer.Typer(name="eval", cls=Suites, help=_HELP, no_args_is_help=True)
evaluate.command(RUN)(run)
evaluate.command("list")(list_suites)
evaluate.command("compare")(compare)


@evaluate.command("overlap")
@guarded
@grouped
def overlap(
    train: Train,
    against: Against,
    output: OutputOptions,
    run: RunOptions,
    length: Length = 12,
    field: Field = "text",
    good: Good = None,
    bad: Bad = None,
    header: Header = None,
) -> int:
    """Find evaluation texts in a training corpus.

    A text is found if --length consecutive words of it occur in one document; a shorter text, if all its words do. Each
    row is an evaluation text that was found.

    Example:
        besag eval overlap corpus.txt --against pairs.tsv -o overlap.tsv
    """
    out = output.open()

    from tqdm.auto import tqdm

    from besag.evaluation.overlap import overlap as compare
    from besag.evaluation.pair_files import read_texts
    from besag.training.data.sources import documents
    from besag.training.recipe import Data

    texts = [one for file in against for one in read_texts(file, good=good, bad=bad, header=header)]
    if not texts:
        raise BesagError(f"{', '.join(against)} holds no text to look for")
    corpus = ((one.text, one.origin) for one in documents(Data(train=tuple(train), held_out=0.0, field=field)))
    hidden = None if run.progress is None else not run.progress
    bar = tqdm(corpus, unit="document", file=sys.stderr, delay=1, leave=False, dynamic_ncols=True, disable=hidden)
    found = compare(bar, [text for text, _ in texts], length=length)
    try:
        for one in found.seen:
            row = {"text": one.text, "in": texts[one.place][1], "corpus": one.where, "run": one.run}
            out.write({**row, "runs": one.runs, "of": one.of}, {})
    finally:
        out.close()
    before = "\n" if output.shape == "table" and found.seen else ""
    print(before + shown(" · ".join(found.facts)), file=_for_words(output))
    return 0


def _for_words(output: OutputOptions) -> TextIO:
    """Where the closing lines go: below a table on stdout, otherwise to stderr."""
    return sys.stdout if output.on_screen else sys.stderr
