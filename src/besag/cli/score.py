"""`besag score`: one row in, one row out."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from besag.cli import options as o
from besag.cli.config import Config
from besag.cli.exits import INTERRUPTED, UNSCORED, CtrlC, guarded, say
from besag.cli.groups import ContextOptions, GivenModelsOptions, OutputOptions, RowsOptions, RunOptions, grouped
from besag.cli.regions import RegionOptions
from besag.cli.rows import View
from besag.cli.settings import MethodsOptions
from besag.errors import BesagError
from besag.files.inputs import Input, Layout, Record, file_input, records
from besag.files.progress import BLOCK, Resumable, Streamed, in_blocks
from besag.files.whole import is_stream

if TYPE_CHECKING:
    from besag.cli.side_by_side import Scorer
    from besag.language_model import LanguageModel
    from besag.scores import Method

Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT", show_default=False,
        help="A text, a file (text lines, TSV, CSV, JSON Lines, Parquet), or - for stdin, which is read as it comes.",
    ),
]  # fmt: skip


@dataclass(frozen=True)
class TextOptions(ContextOptions):
    """What a method is told of each text."""

    words: o.Words = "tokenizer"
    lengths: o.Lengths = None
    source_column: o.SourceColumn = None

    @property
    def columns(self) -> dict[str, str]:
        own = {} if self.source_column is None else {"sources": self.source_column}
        return {**super().columns, **own}


@dataclass(frozen=True)
class ViewOptions:
    """What is shown of a score."""

    per: o.Per = "sentence"
    reduction: o.Reduction = "sum"
    base: o.Base = "e"
    surprisal: o.Surprisal = False
    rank: o.Rank = False
    entropy: o.Entropy = False
    summary: o.Summary = False
    keep: o.Keep = True

    def view(self, shape: str) -> View:
        whole, narrow = shape == "jsonl", shape == "table"
        return View(self.per, self.reduction, self.base, self.surprisal, self.rank, self.entropy, whole, narrow)


@dataclass(frozen=True)
class ResumeOptions(OutputOptions):
    """A file that a run can go on with."""

    resume: o.Resume = False

    def begin(self, arguments: Sequence[str], as_text: bool) -> Resumable | Streamed:
        """Where the inputs can be read again, the output is written so that another run can go on with it."""
        path = self.output
        ordinary = path is not None and not is_stream(path)
        again = as_text or not any(one == "-" or (os.path.exists(one) and not os.path.isfile(one)) for one in arguments)
        if path is not None and ordinary and again:
            return Resumable(
                self.shape,
                path,
                force=self.force,
                resume=self.resume,
                go_on=command(),
                spreadsheet_safe=self.spreadsheet_safe,
            )
        if self.resume and ordinary:
            raise BesagError("--resume reads the input again, and stdin or a pipe cannot be: give files, or use --skip")
        if self.resume and path is not None:
            raise BesagError(f"--resume goes on with a file, and --output {path!r} is a device or a pipe")
        if self.resume:
            raise BesagError("--resume goes on with a file: say which with --output")
        return Streamed(self.open())


@guarded
@grouped
def score(
    model: GivenModelsOptions,
    scored: MethodsOptions,
    around: TextOptions,
    rows: RowsOptions,
    regions: RegionOptions,
    shown: ViewOptions,
    output: ResumeOptions,
    run: RunOptions,
    input: Inputs = None,
    strict: o.Strict = False,
    config: Config = None,
) -> int:
    """Score texts by token, word or sentence.

    Exit code 3: some rows could not be scored (see the column "status"). Use --resume to continue an interrupted run;
    its output is then identical to that of an uninterrupted run.

    Example:
        besag score "The cats sleep." "The cats sleeps."
    """
    shape = output.shape
    view = shown.view(shape)
    parts = regions.of(shown.per)
    out = output.begin(input or ["-"], rows.text)
    sources = rows.sources(input, "score", output.output, shown.keep, around, parts)
    model.check()
    if model.source is not None and around.source_column is not None:
        raise BesagError("--source is one for all rows, and --source-column one for each: say which")
    methods = scored.chosen()
    bar = False if run.progress is None and output.output is None and sys.stdout.isatty() else run.progress
    scorers = _scorers(model.load_all(bar, in_step=True), model.names, methods, around, shown)
    work = Run(scorers, view, out, strict, shown.summary)
    if isinstance(out, Resumable):
        work.begin(
            _about(
                sources,
                work.scorers,
                {
                    **_settings(model, scored, around, rows, parts, shown),
                    "format": shape,
                    "spreadsheet_safe": output.spreadsheet_safe,
                },
            )
        )
    found = parts.noticed(records(sources, skip=rows.skip, limit=rows.limit, done=work.done))
    if not work.through(found):
        skip = f"--skip {rows.skip + work.done} (and --output another file)"
        say(f"interrupted after {work.done} rows; go on with {command() if isinstance(out, Resumable) else skip}")
        return INTERRUPTED
    for tally in work.tallies:
        print(f"\n{tally.corpus()}", file=sys.stdout if output.on_screen else sys.stderr)
    if work.unscored.rows:
        say(str(work.unscored))
    return UNSCORED if work.unscored.rows else 0


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
        self.block = max(BLOCK[scorer.lm.conditionals.device.type] for scorer in scorers)
        self.ctrl_c = CtrlC()

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Take up what an earlier run has left; from here on, the same questions run in the same batches."""
        state = self.out.begin(settings)
        batches = [None] * len(self.scorers) if state is None else state["batches"]
        for scorer, found in zip(self.scorers, batches, strict=True):
            scorer.lm.engine.repeat(found)
        if state is None:
            return
        self.done = state["rows"]
        self.unscored.restore(state["unscored"])
        for tally, before in zip(self.tallies, state["tallies"], strict=True):
            tally.restore(before)

    def through(self, found: Iterable[Record | None]) -> bool:
        """Score and write all records; False after Ctrl-C."""
        from besag.cli.side_by_side import side_by_side

        with self.ctrl_c.whole(self.out) as told:
            for record, scores in side_by_side(in_blocks(found, self.block), self.scorers, self._flush):
                self.unscored.note(record, scores)
                with self.ctrl_c.held_back():
                    self._write(record, scores)
        return told.finished

    def _write(self, record: Record, scores: Sequence[Any]) -> None:
        for row in self.view.rows(record, scores, [scorer.label for scorer in self.scorers]):
            self.out.write(row, record.others)
        for tally, one in zip(self.tallies, scores, strict=False):
            tally.add(one)
        self.done += 1
        if self.done % self.block == 0:
            self.out.end_block(self._state())

    def _state(self) -> dict[str, Any]:
        """What a run that goes on from here must know, besides the rows."""
        return {
            "rows": self.done,
            "unscored": self.unscored.state(),
            "tallies": [tally.state() for tally in self.tallies],
            "batches": [scorer.lm.engine.found for scorer in self.scorers],
        }

    def _flush(self) -> None:
        with self.ctrl_c.held_back():
            self.out.flush()


def _scorers(
    models: Sequence[LanguageModel],
    names: Sequence[str],
    methods: Mapping[str, Method],
    around: TextOptions,
    shown: ViewOptions,
) -> list[Scorer]:
    from besag.cli.lengths import length_models
    from besag.cli.side_by_side import pair

    common = {
        **around.for_all, "words": around.words, "base": shown.base, "rank": shown.rank, "entropy": shown.entropy,
    }  # fmt: skip
    lengths = length_models(around.lengths, models, methods)
    return pair(models, methods, common, lengths, names, tuple(around.columns))


# ---- what must be the same for a run to go on with what another began


def _settings(*groups: Any) -> dict[str, Any]:
    """The options of a command by name, but for those that say where things are."""
    found = {name: value for group in groups for name, value in asdict(group).items() if name != "model"}
    lengths = found["lengths"]
    return {**found, "lengths": None if lengths is None else file_input(lengths, Layout("text"))[0].fingerprint()}


def _about(sources: Sequence[Input], scorers: Sequence[Scorer], options: Mapping[str, Any]) -> dict[str, Any]:
    import besag

    return {
        "besag": besag.__version__,
        "inputs": [source.fingerprint() for source in sources],
        "models": [about_model(scorer.lm) for scorer in scorers],
        "names": [scorer.label.model for scorer in scorers],
        **options,
    }


def about_model(lm: LanguageModel) -> dict[str, Any]:
    """A hub's model by its commit, a folder by its files as they are now."""
    about: dict[str, Any] = {"name": lm.name, "device": str(lm.conditionals.device), "dtype": lm.dtype}
    commit = getattr(getattr(lm.model, "config", None), "_commit_hash", None)
    if commit is not None:
        about["commit"] = commit
    adapter = getattr(lm.conditionals, "adapter", None)
    if adapter is not None:
        about["adapter"], about["base"] = adapter, lm.conditionals.base.sha256  # type: ignore[attr-defined]
    if os.path.isdir(lm.name):
        stands = [(entry.name, entry.stat()) for entry in os.scandir(lm.name) if entry.is_file()]
        about["files"] = [[name, stat.st_size, stat.st_mtime_ns] for name, stat in sorted(stands)]
    return about


def command() -> str:
    """What was typed, to go on with."""
    words = [word for word in sys.argv[1:] if word not in ("--resume", "--force")]
    return shlex.join(["besag", *words, "--resume"])
