"""`besag score`: one row in, one row out."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from besag.cli import options as o
from besag.cli.config import Config
from besag.cli.exits import INTERRUPTED, UNSCORED, CtrlC, guarded, say
from besag.cli.reading import inputs, records
from besag.cli.rows import View
from besag.cli.settings import MethodsOptions
from besag.cli.tables import Layout
from besag.cli.writing import choose_format, writer
from besag.errors import BesagError

Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT", show_default=False,
        help="A text, a file (text lines, TSV, CSV, JSON Lines, Parquet), or - for stdin, which is read as it comes.",
    ),
]  # fmt: skip


@guarded
def score(
    input: Inputs = None,
    model: o.Models = None,
    device: o.Device = None,
    dtype: o.Dtype = None,
    revision: o.Revision = None,
    allow_pickle: o.AllowPickle = False,
    compile: o.Compile = False,
    untilt: o.Untilt = False,
    method: o.Methods = None,
    set_: o.Set = None,
    seed: o.Seed = None,
    words: o.Words = "tokenizer",
    prefix: o.Prefix = "",
    suffix: o.Suffix = "",
    separator: o.Separator = " ",
    lengths: o.Lengths = None,
    text: o.Text = False,
    input_format: o.InputFormat = None,
    column: o.Column = None,
    header: o.Header = True,
    skip: o.Skip = 0,
    limit: o.Limit = None,
    strict: o.Strict = False,
    per: o.Per = "sentence",
    reduction: o.Reduction = "sum",
    base: o.Base = "e",
    surprisal: o.Surprisal = False,
    rank: o.Rank = False,
    entropy: o.Entropy = False,
    summary: o.Summary = False,
    keep: o.Keep = True,
    format: o.Format = None,
    output: o.Output = None,
    force: o.Force = False,
    batch_tokens: o.BatchTokens = None,
    progress: o.Progress = None,
    config: Config = None,
) -> int:
    """Score texts with masked (or causal) language models.

    besag score "The cats sleep." "The cats sleeps."

    besag score corpus.tsv --column sentence --method pll --method word_l2r -o scores.tsv

    Exit code 3: some rows were not scored (their status says why). Ctrl-C leaves whole rows behind; --skip goes on.
    """
    if not input and sys.stdin.isatty():
        raise BesagError("give a text, a file, or - for stdin (besag score --help)")
    shape = choose_format(format, output)
    view = View(per, reduction, base, surprisal, rank, entropy, whole=shape == "jsonl")
    out = writer(shape, output, force)
    sources = inputs(input or ["-"], as_text=text, layout=Layout(input_format, column, header, keep))
    if output is not None and any(source.is_file(output) for source in sources):
        raise BesagError(f"--output {output!r} is one of the inputs")
    if revision is not None and len(model or []) > 1:
        raise BesagError("--revision belongs to one model, and there are several")
    methods = MethodsOptions(method, set_, seed).chosen()

    import besag
    from besag.cli.lengths import length_models
    from besag.cli.scoring import Unscored, pair, side_by_side
    from besag.scores.corpora import Tally

    bar = False if progress is None and output is None and sys.stdout.isatty() else progress
    models = [
        besag.load(
            name, device=device, dtype=dtype, revision=revision, allow_pickle=allow_pickle, compile=compile,
            untilt=untilt, batch_tokens=batch_tokens,
            progress=False if place else bar,  # the others run in step with the first
        )
        for place, name in enumerate(model or [None])
    ]  # fmt: skip
    common = {
        "words": words, "prefix": prefix, "suffix": suffix, "separator": separator, "base": base, "rank": rank,
        "entropy": entropy,
    }  # fmt: skip
    scorers = pair(models, methods, common, length_models(lengths, models, methods))
    labels = [scorer.label for scorer in scorers]
    tallies = [Tally() for _ in scorers] if summary else []
    unscored, done, ctrl_c = Unscored(strict), 0, CtrlC()

    def flush() -> None:
        with ctrl_c.held_back():
            out.flush()

    with ctrl_c.watched():
        try:
            for record, scores in side_by_side(records(sources, skip=skip, limit=limit), scorers, when_idle=flush):
                unscored.note(record, scores)
                with ctrl_c.held_back():
                    for row in view.rows(record, scores, labels):
                        out.write(row, record.others)
                    done += 1
                for tally, one in zip(tallies, scores, strict=False):
                    tally.add(one)
        except KeyboardInterrupt:
            say(f"interrupted after {done} rows; go on with --skip {skip + done} (and --output another file)")
            return INTERRUPTED
        finally:
            with ctrl_c.held_back():
                out.close()
    for tally in tallies:
        print(f"\n{tally.corpus()}", file=sys.stdout if shape == "table" and output is None else sys.stderr)
    if unscored.rows:
        say(str(unscored))
    return UNSCORED if unscored.rows else 0
