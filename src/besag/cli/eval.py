"""`besag eval`: how good a model is. Suites by their names (`suites.py`); `minimal-pairs` compares sentences of files,
`overlap` looks for them in training text.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from besag.cli import options as o
from besag.cli.comparing import Comparing, items
from besag.cli.config import Config
from besag.cli.exits import INTERRUPTED, UNSCORED, guarded, say
from besag.cli.groups import ModelsOptions, OutputOptions, PlotOptions, RunOptions, grouped
from besag.cli.settings import MethodsOptions
from besag.cli.suites import RUN, Suites, compare, list_suites, run
from besag.errors import BesagError
from besag.results.tables import shown

if TYPE_CHECKING:
    from besag.cli.side_by_side import Scorer

_FILES = (
    "BLiMP's JSON Lines, TSV, CSV, Parquet (acceptable sentence, other one, perhaps paradigm and phenomenon); .xz …"
)
_REDUCTION = "Compare sums over tokens, or means."
_PER = "What a row of the result is; overall: the mean over paradigms, and over pairs."

Files = Annotated[list[str], typer.Argument(metavar="FILE…", help=_FILES, show_default=False)]
Reduction = Annotated[Literal["sum", "mean"], o.of_method("--reduction", help=_REDUCTION)]
Per = Annotated[Literal["paradigm", "phenomenon", "overall", "pair"], o.of_result("--per", help=_PER)]
_SENTENCE = "Where the {} sentence is: a name, a number from 1, or a path as in hyps.0.text."
Good = Annotated[str | None, o.of_input("--good", help=_SENTENCE.format("acceptable"), show_default=False)]
Bad = Annotated[str | None, o.of_input("--bad", help=_SENTENCE.format("other"), show_default=False)]
_HEADER = "Does a TSV or CSV begin with names of columns? If not said, these must be known ones, or named here."
Header = Annotated[bool | None, o.of_input("--header/--no-header", help=_HEADER, show_default=False)]
Limit = Annotated[
    int | None, o.of_input("--limit", min=1, help="At most the first N pairs of each file.", show_default=False)
]

_TRAIN = "Text, JSON Lines, TSV, CSV or Parquet, packed or not, as `besag train` reads them; globs; - for stdin."
_AGAINST = "What the model is judged on: pairs as above, or plain text, a line each. Repeat."
Train = Annotated[list[str], typer.Argument(metavar="TRAIN…", help=_TRAIN, show_default=False)]
Against = Annotated[list[str], o.of_input("--against", help=_AGAINST, show_default=False)]
Length = Annotated[int, o.of_method("--length", min=4, help="Words in a row.")]
Field = Annotated[
    str, o.of_input("--field", help="Of rows: where the training text is, a name or a path as in page.text.")
]

_HELP = "Measure how good a model is: `besag eval NAME…` runs suites, the others are commands of their own."
evaluate = typer.Typer(name="eval", cls=Suites, help=_HELP, no_args_is_help=True)
evaluate.command(RUN)(run)
evaluate.command("list")(list_suites)
evaluate.command("compare")(compare)


@evaluate.command("minimal-pairs")
@guarded
@grouped
def minimal_pairs(
    files: Files,
    model: ModelsOptions,
    scored: MethodsOptions,
    output: PlotOptions,
    run: RunOptions,
    reduction: Reduction = "sum",
    good: Good = None,
    bad: Bad = None,
    header: Header = None,
    limit: Limit = None,
    per: Per = "paradigm",
    resume: o.Resume = False,
    config: Config = None,
) -> int:
    """How often a model prefers the acceptable one of two sentences, with standard errors.

    besag eval minimal-pairs blimp/*.jsonl --per phenomenon

    besag eval minimal-pairs pairs.tsv -m bert-base-cased --method word_l2r --per pair -o pairs.jsonl

    A tie counts half. Exit code 3: some pairs were not scored (--per pair says which, their status says why).

    A run that was stopped or killed goes on with --resume; until its end, FILE.items holds the scores of sentences.
    """
    kept = items(output.output, output.force, resume)
    output = replace(output, force=output.force or (kept is not None and kept.resume))
    out = output.open()
    model.check()

    from besag.cli.side_by_side import pair
    from besag.evaluation.minimal_pairs import read_pairs

    pairs = [one for file in files for one in read_pairs(file, limit, good=good, bad=bad, header=header)]
    methods = scored.chosen()
    models = model.load_all(run.progress)
    scorers = pair(models, methods, {}, [None] * len(models), model.names)
    if output.plot is not None and len(scorers) > 1:
        raise BesagError("--plot draws one model and one method, and there are several")
    work = Comparing(scorers, pairs, reduction, kept)
    work.begin(asdict(scored))
    if not work.through():
        say(f"interrupted after {work.done:,} of {work.total:,} sentences{work.go_on}")
        return INTERRUPTED
    results = work.results()
    for scorer, found in zip(scorers, results, strict=True):
        for row in found.table(per):
            out.write({**_about(scorer, len(methods) > 1), **row}, {})
    out.close()
    for found in results:
        print(("\n" if output.shape == "table" else "") + shown(" · ".join(found.facts)), file=_for_words(output))
    output.save(results[0])
    work.finish()
    unscored = sum(sum(found.unscored.values()) for found in results)
    if unscored:
        say(f"{unscored:,} pairs were not scored; --per pair says which")
    return UNSCORED if unscored else 0


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
    """Does a training corpus hold what a model is judged on? A row for each text that it does.

    besag eval overlap corpus/*.txt.xz --against blimp.jsonl --against sentences.txt -o seen.tsv

    A text is seen where --length of its words in a row stand in one document; a shorter one where all of them do.
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


def _about(scorer: Scorer, several_methods: bool) -> dict[str, object]:
    label = scorer.label
    model = {"model": label.model} if label.several_models else {}
    return {**model, **({"method": label.method} if several_methods else {})}


def _for_words(output: OutputOptions) -> TextIO:
    """Where the closing lines go: below a table on stdout, otherwise to stderr."""
    return sys.stdout if output.on_screen else sys.stderr
