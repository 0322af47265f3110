"""`besag score`: one row in, one row out."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from besag.cli import options as o
from besag.cli.config import Config
from besag.cli.exits import INTERRUPTED, UNSCORED, CtrlC, guarded, say
from besag.cli.rows import View
from besag.errors import BesagError
from besag.files.inputs import Input, Layout, Record, file_input, inputs, records
from besag.files.progress import BLOCK, Resumable, Streamed, in_blocks
from besag.files.writing import choose_format, writer

if TYPE_CHECKING:
    from besag.cli.side_by_side import Scorer
    from besag.language_model import LanguageModel

Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT", show_default=False,
        help="A text, a file (text lines, TSV, CSV, JSON Lines, Parquet), or - for stdin, which is read as it comes.",
    ),
]  # fmt: skip
UNTOLD = {"input", "model", "output", "force", "resume", "strict", "progress", "config", "lengths"}  # by settings


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
    order: o.Order = None,
    orders: o.Orders = None,
    samples: o.Samples = None,
    box: o.Box = None,
    joint: o.BlockJoint = None,
    weights: o.Weights = None,
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
    escaped: o.Escaped = False,
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
    resume: o.Resume = False,
    batch_tokens: o.BatchTokens = None,
    progress: o.Progress = None,
    config: Config = None,
) -> int:
    """Score texts with masked (or causal) language models.

    besag score "The cats sleep." "The cats sleeps."

    besag score corpus.tsv --column sentence --method pll --method word_l2r -o scores.tsv

    Exit code 3: some rows were not scored (their status says why). A run that was stopped or killed goes on with
    --resume, and ends as if nothing had happened.
    """
    settings = {name: value for name, value in locals().items() if name not in UNTOLD}
    if not input and sys.stdin.isatty():
        raise BesagError("give a text, a file, or - for stdin (besag score --help)")
    shape = choose_format(format, output)
    view = View(per, reduction, base, surprisal, rank, entropy, whole=shape == "jsonl")
    layout = Layout(input_format, column, header, keep, escaped)
    out = _output(shape, output, force, resume, input or ["-"], text)
    sources = inputs(input or ["-"], as_text=text, layout=layout)
    if output is not None and any(source.is_file(output) for source in sources):
        raise BesagError(f"--output {output!r} is one of the inputs")
    if revision is not None and len(model or []) > 1:
        raise BesagError("--revision belongs to one model, and there are several")

    import besag
    from besag.cli.lengths import length_models
    from besag.cli.side_by_side import method_options, pair

    methods = method_options(
        method or ["pll"], order=order, orders=orders, samples=samples, box=box, joint=joint, weights=weights, seed=seed
    )
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
    run = Run(pair(models, methods, common, length_models(lengths, models, methods)), view, out, strict, summary)
    if isinstance(out, Resumable):
        run.begin(_about(sources, models, lengths, {**settings, "format": shape}))
    if not run.through(records(sources, skip=skip, limit=limit, done=run.done)):
        go_on = _command() if isinstance(out, Resumable) else f"--skip {skip + run.done} (and --output another file)"
        say(f"interrupted after {run.done} rows; go on with {go_on}")
        return INTERRUPTED
    for tally in run.tallies:
        print(f"\n{tally.corpus()}", file=sys.stdout if shape == "table" and output is None else sys.stderr)
    if run.unscored.rows:
        say(str(run.unscored))
    return UNSCORED if run.unscored.rows else 0


class Run:
    """All rows through all scorers, block by block."""

    def __init__(
        self, scorers: Sequence[Scorer], view: View, out: Resumable | Streamed, strict: bool, summary: bool
    ) -> None:
        from besag.cli.side_by_side import Unscored
        from besag.scores.corpora import Tally

        self.scorers, self.view, self.out = scorers, view, out
        self.unscored, self.done = Unscored(strict), 0
        self.tallies = [Tally() for _ in scorers] if summary else []
        self.ctrl_c = CtrlC()

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Take up what an earlier run has left."""
        state = self.out.begin(settings)
        if state is None:
            return
        self.done = state["rows"]
        self.unscored.restore(state["unscored"])
        for tally, before in zip(self.tallies, state["tallies"], strict=True):
            tally.restore(before)
        for scorer, (tokens, measured) in zip(self.scorers, state["batches"], strict=True):
            scorer.lm.engine.batch_tokens, scorer.lm.engine.measured = tokens, measured

    def through(self, found: Iterable[Record | None]) -> bool:
        """Score and write all records; False after Ctrl-C."""
        from besag.cli import side_by_side

        with self.ctrl_c.watched():
            try:
                for record, scores in side_by_side.side_by_side(in_blocks(found), self.scorers, when_idle=self._flush):
                    self.unscored.note(record, scores)
                    with self.ctrl_c.held_back():
                        self._write(record, scores)
                with self.ctrl_c.held_back():
                    self.out.finish()
            except KeyboardInterrupt:
                return False
            finally:
                with self.ctrl_c.held_back():
                    self.out.close()
        return True

    def _write(self, record: Record, scores: Sequence[Any]) -> None:
        for row in self.view.rows(record, scores, [scorer.label for scorer in self.scorers]):
            self.out.write(row, record.others)
        for tally, one in zip(self.tallies, scores, strict=False):
            tally.add(one)
        self.done += 1
        if self.done % BLOCK == 0:
            self.out.end_block(self._state())

    def _state(self) -> dict[str, Any]:
        """What a run that goes on from here must know, besides the rows."""
        engines = [scorer.lm.engine for scorer in self.scorers]
        return {
            "rows": self.done,
            "unscored": self.unscored.state(),
            "tallies": [tally.state() for tally in self.tallies],
            "batches": [[engine.batch_tokens, engine.measured] for engine in engines],  # they are found, not set
        }

    def _flush(self) -> None:
        with self.ctrl_c.held_back():
            self.out.flush()


def _output(
    shape: str, output: str | None, force: bool, resume: bool, arguments: Sequence[str], as_text: bool
) -> Resumable | Streamed:
    """A file of which the inputs can be read again is written so that another run can go on with it."""
    ordinary = output is not None and (not os.path.exists(output) or os.path.isfile(output))
    again = as_text or not any(one == "-" or (os.path.exists(one) and not os.path.isfile(one)) for one in arguments)
    if output is not None and ordinary and again:
        return Resumable(shape, output, force=force, resume=resume, go_on=_command())
    if resume and output is not None and ordinary:
        raise BesagError("--resume reads the input again, and stdin or a pipe cannot be: give files, or use --skip")
    if resume:
        raise BesagError("--resume goes on with a file: say which with --output")
    return Streamed(writer(shape, output, force))


def _about(
    sources: Sequence[Input], models: Sequence[LanguageModel], lengths: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """What must be the same for a run to go on with what another began."""
    import besag

    return {
        "besag": besag.__version__,
        "inputs": [source.fingerprint() for source in sources],
        "models": [_model(lm, options["revision"]) for lm in models],
        "lengths": None if lengths is None else file_input(lengths, Layout("text"))[0].fingerprint(),
        **options,
    }


def _model(lm: LanguageModel, revision: str | None) -> dict[str, Any]:
    """A hub's model by its commit, a folder by its files as they are now."""
    about: dict[str, Any] = {"name": lm.name, "device": str(lm.conditionals.device), "dtype": lm.dtype}
    commit = getattr(getattr(lm.model, "config", None), "_commit_hash", None)
    if commit is not None:
        about["commit"] = commit
    if os.path.isdir(lm.name):
        stands = [(entry.name, entry.stat()) for entry in os.scandir(lm.name) if entry.is_file()]
        about["files"] = [[name, stat.st_size, stat.st_mtime_ns] for name, stat in sorted(stands)]
    return about


def _command() -> str:
    """What was typed, to go on with."""
    words = [word for word in sys.argv[1:] if word not in ("--resume", "--force")]
    return shlex.join(["besag", *words, "--resume"])
