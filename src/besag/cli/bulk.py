"""`besag bulk`: a verb over a whole corpus, on Ray Data; `merge` puts the shards together, `status` says how far it is.

Thin: which options there are, and what is said on the way. `besag.bulk` does the work, and Ray is imported there.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from besag.cli import options as o
from besag.cli.augment import Copies, Distinct, Rounds, Share, Similarity, Together
from besag.cli.config import Config
from besag.cli.exits import INTERRUPTED, UNSCORED, CtrlC, at_end, guarded, say
from besag.cli.fill import K
from besag.cli.groups import LayoutOptions, ModelOptions, RunOptions, grouped
from besag.cli.joint import JointOptions
from besag.cli.rows import View
from besag.cli.sample import KernelOptions
from besag.cli.score import TextOptions, command
from besag.cli.settings import ConstructionOptions, MethodsOptions, settings
from besag.errors import BesagError, quoted
from besag.files.progress import BLOCK
from besag.files.writing import check_output
from besag.results.words import counted

if TYPE_CHECKING:
    from besag.bulk.job import Job
    from besag.bulk.journal import Totals
    from besag.bulk.pipeline import Pool
    from besag.bulk.verbs import Verb
    from besag.bulk.working import Note

_FILES = "Files or URLs (text lines, TSV, CSV, JSON Lines, Parquet; packed or not); rows are counted over all of them."
_DIR = "Folder of the job, or a URL; on a cluster one that all machines share."
_KEEP = 'Leave out rows of which this is not so: "score > -40", "score / tokens > -4 and tokens < 100".'
_ADDRESS = "Of a Ray cluster to join, such as auto; if not given, one is started on this machine."
_GPUS = "If not given, 1 where this machine has any, and 0 with --address; 0.5: two actors on a GPU."
_SHARD = "Rows of a shard, a multiple of the block (CPU 512, CUDA 16384)."
_RATE = "--plan: rows a second of one actor, if known; else a few rows are tried here."

Files = Annotated[list[str], typer.Argument(metavar="INPUT…", help=_FILES, show_default=False)]
Into = Annotated[str, o.of_output("--output", "-o", help=_DIR, show_default=False)]
Format = Annotated[Literal["tsv", "csv", "jsonl", "parquet"], o.of_output("--format", help="Of the shards.")]
Keep = Annotated[str | None, o.of_result("--keep", metavar="CONDITION", help=_KEEP, show_default=False)]
ShardRows = Annotated[int | None, o.of_output("--shard-rows", min=1, help=_SHARD, show_default=False)]
Resume = Annotated[bool, o.of_output("--resume", help="Go on with the job in --output; begin one if there is none.")]
Force = Annotated[bool, o.of_output("--force", help="Begin anew, and remove the shards of an earlier job.")]
Actors = Annotated[int | None, o.of_run("--actors", min=1, help="Processes, each with a model.", show_default=False)]
Cpus = Annotated[int | None, o.of_run("--cpus-per-actor", min=1, help="And threads of each.", show_default=False)]
Gpus = Annotated[float | None, o.of_run("--gpus-per-actor", min=0, max=64, help=_GPUS, show_default=False)]
Address = Annotated[str | None, o.of_run("--address", help=_ADDRESS, show_default=False)]
Planned = Annotated[bool, o.of_run("--plan", help="Only say what it would take: rows, tokens, time, cost.")]
Rate = Annotated[float | None, o.of_run("--rate", min=1e-9, help=_RATE, show_default=False)]
Price = Annotated[float | None, o.of_run("--price", min=0, help="--plan: of an hour of one actor.", show_default=False)]
Folder = Annotated[str, typer.Argument(metavar="DIR", help="Folder of a job.", show_default=False)]

bulk = typer.Typer(
    name="bulk", help="Work on whole corpora, on one machine or a Ray cluster; killed jobs go on.", no_args_is_help=True
)


@dataclass(frozen=True)
class BulkOptions:
    """Where the shards go, and who works on them."""

    output: Into
    format: Format = "tsv"
    shard_rows: ShardRows = None
    keep: Keep = None
    resume: Resume = False
    force: Force = False
    actors: Actors = None
    cpus_per_actor: Cpus = None
    gpus_per_actor: Gpus = None
    address: Address = None
    plan: Planned = False
    rate: Rate = None
    price: Price = None

    def gpus(self, device: str | None) -> float:
        """Of an actor: what is said, or one where a CUDA device is meant or there."""
        if self.gpus_per_actor is not None:
            return self.gpus_per_actor
        if device is not None:
            return float(device.startswith("cuda"))
        return float(self.address is None and _has_gpu())

    def pool(self, gpus: float) -> Pool:
        from besag.bulk.pipeline import Pool

        return Pool(self.actors, gpus, self.cpus_per_actor, self.address)


@dataclass(frozen=True)
class ViewOptions:
    """What is shown of a score."""

    per: Annotated[Literal["sentence", "word", "token"], o.of_result("--per", help="What a row is.")] = "sentence"
    reduction: o.Reduction = "sum"
    base: o.Base = "e"
    surprisal: o.Surprisal = False
    rank: o.Rank = False
    entropy: o.Entropy = False

    def view(self, shape: str) -> View:
        whole = shape == "jsonl"
        return View(self.per, self.reduction, self.base, self.surprisal, self.rank, self.entropy, whole)


def _has_gpu() -> bool:
    """Is there an NVIDIA device that this process may use? Without importing torch."""
    return os.path.exists("/dev/nvidiactl") and os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1")


# ---- verbs


@bulk.command()
@guarded
@grouped
def score(
    files: Files,
    model: ModelOptions,
    scored: MethodsOptions,
    around: TextOptions,
    rows: LayoutOptions,
    shown: ViewOptions,
    job: BulkOptions,
    run: RunOptions,
    config: Config = None,
) -> int:
    """Score a corpus: the rows of `besag score`, in shards.

    besag bulk score corpus.jsonl --output scores --method unmasked

    besag bulk score part-*.parquet --output kept --keep "score / tokens > -4" --format parquet --actors 8

    besag bulk merge scores --output scores.tsv
    """
    from besag.bulk.verbs import Score

    methods = settings("score", scored.method or ["pll"], scored.set_, {"seed": scored.seed})
    common = {
        **around.for_all, "words": around.words, "base": shown.base, "rank": shown.rank, "entropy": shown.entropy,
    }  # fmt: skip
    setup = Setup(model, rows, job, run, around.columns)
    verb = Score(
        setup.load, methods=methods, around=common, by_row=tuple(around.columns), lengths=around.lengths,
        view=shown.view(job.format),
    )  # fmt: skip
    return setup.through(files, "score", verb)


@bulk.command()
@guarded
@grouped
def entropy(
    files: Files,
    model: ModelOptions,
    rows: LayoutOptions,
    job: BulkOptions,
    run: RunOptions,
    method: Annotated[str, o.of_method("--method", help="Who hides what: a scoring method.")] = "pll",
    set_: o.Set = None,
) -> int:
    """How open the places of each text are: mean and greatest entropy of what the model expects, in nats.

    besag bulk entropy corpus.txt --output entropies --keep "entropy < 5"
    """
    from besag.bulk.verbs import Entropy

    [(name, options)] = settings("score", [method], set_).items()
    setup = Setup(model, rows, job, run)
    return setup.through(files, "entropy", Entropy(setup.load, method=name, options=options))


@bulk.command()
@guarded
@grouped
def fill(
    files: Files,
    model: ModelOptions,
    method: ConstructionOptions,
    joint: JointOptions,
    rows: LayoutOptions,
    job: BulkOptions,
    run: RunOptions,
    k: K = 5,
) -> int:
    """The likeliest fillings of all masks of each text, together.

    besag bulk fill cloze.tsv --column text --output fillings -k 3
    """
    from besag.bulk.verbs import Fill

    options = {"method": method.method, "candidates": joint.size, "outcomes": joint.outcomes, **method.options()}
    setup = Setup(model, rows, job, run)
    return setup.through(files, "fill", Fill(setup.load, k=k, options=options))


@bulk.command()
@guarded
@grouped
def sample(
    files: Files,
    model: ModelOptions,
    method: KernelOptions,
    rows: LayoutOptions,
    job: BulkOptions,
    run: RunOptions,
) -> int:
    """Draw the masks of each text; the draws belong to the seed and the row, whatever runs beside it.

    besag bulk sample templates.txt --output drawn --kernel ordered --chains 2
    """
    from besag.bulk.verbs import Sample

    options = {**method.of_kernel(), **({} if method.steps is None else {"steps": method.steps})}
    setup = Setup(model, rows, job, run)
    verb = Sample(setup.load, kernel=method.kernel, chains=method.chains, seed=method.seed, options=options)
    return setup.through(files, "sample", verb)


@dataclass(frozen=True)
class CopyOptions:
    """How far a copy may go from its text."""

    copies: Copies = 1
    share: Share = 0.3
    rounds: Rounds = 1
    together: Together = 1
    similarity: Similarity = 0.9
    distinct: Distinct = True
    seed: Annotated[int, o.of_method("--seed", help="Of all draws.")] = 0


@bulk.command()
@guarded
@grouped
def augment(
    files: Files,
    model: ModelOptions,
    method: CopyOptions,
    rows: LayoutOptions,
    job: BulkOptions,
    run: RunOptions,
) -> int:
    """Copies of each text in which some words are others; the rows of `besag augment`, in shards.

    besag bulk augment train.csv --output copies --copies 2
    """
    from besag.bulk.verbs import Augment

    setup = Setup(model, rows, job, run)
    return setup.through(files, "augment", Augment(setup.load, options=asdict(method)))


# ---- a job


class Setup:
    """The options that all verbs share, and what is done with them."""

    def __init__(
        self, model: ModelOptions, rows: LayoutOptions, job: BulkOptions, run: RunOptions,
        columns: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.options, self.progress = job, run.progress
        self.gpus = job.gpus(model.device)
        device = model.device or ("cuda" if self.gpus else "cpu")
        if device.partition(":")[0] not in BLOCK:
            raise BesagError(f"--device {device!r}: give one of {', '.join(BLOCK)}")
        self.block = BLOCK[device.partition(":")[0]]
        self.load: dict[str, Any] = {**asdict(model), "device": device}
        around = columns or {}
        self.layout = rows.layout(keep=True)._replace(
            prefix=around.get("prefix"), suffix=around.get("suffix"), sources=around.get("sources")
        )

    def through(self, files: list[str], name: str, verb: Verb) -> int:
        """All of a job, or its plan."""
        from besag.bulk.job import begin, claimed
        from besag.bulk.keeping import Keep

        given = self.options
        keep = None if given.keep is None else Keep(given.keep)
        pool = given.pool(self.gpus)
        if not given.plan:
            pool.check()
            claim = claimed(given.output)
            if claim is not None:
                at_end(claim.release)
        job = begin(
            files, given.output, verb, self._asked(name, verb), layout=self.layout, format=given.format,
            block=self.block, size=given.shard_rows, resume=given.resume, force=given.force,
            go_on=command(), only_look=given.plan,
        )  # fmt: skip
        if given.plan:
            return self._plan(job, verb, pool)
        return _work(job, verb, keep, pool, self.progress)

    def _asked(self, name: str, verb: Verb) -> dict[str, Any]:
        import besag
        from besag.bulk.models import about_model

        own = {key: value for key, value in asdict(verb).items() if key not in ("load", "lengths")}  # type: ignore[call-overload]
        load = {key: value for key, value in self.load.items() if key != "model"}
        lengths = getattr(verb, "lengths", None)
        return {
            "besag": besag.__version__, "verb": name, "model": about_model(self.load["model"], self.load["revision"]),
            **load, **own, "lengths": lengths and os.path.basename(lengths), "keep": self.options.keep,
        }  # fmt: skip

    def _plan(self, job: Job, verb: Verb, pool: Pool) -> int:
        from besag.bulk.planning import plan

        given = self.options
        for name, said in plan(job, verb, given.actors or pool.usual_actors(), given.rate, given.price).lines():
            print(f"{name:<8} {said}")
        return 0


def _work(job: Job, verb: Verb, keep: Any, pool: Pool, progress: bool | None) -> int:
    from besag.bulk.journal import Journal
    from besag.bulk.running import run
    from besag.bulk.working import Work

    work = Work(verb, job.shape, job.folder.path, job.block, keep)
    journal = Journal(job.folder)
    ctrl_c = CtrlC()
    with ctrl_c.watched(), closing(journal), closing(run(job, work, pool, journal)) as notes:  # type: ignore[type-var]
        try:
            for note in _shown(notes, job, progress):
                for number, why in note.failed:
                    say(f"row {number:,} failed, and is tried again by --resume: {quoted(why)}")
        except KeyboardInterrupt:
            say(f"interrupted; {_how_far(job)}; go on with {command()}")
            return INTERRUPTED
    return _end(job, journal.totals)


def _shown(notes: Iterator[Note], job: Job, progress: bool | None) -> Iterator[Note]:
    """The notes, with a bar of rows on stderr."""
    from tqdm.auto import tqdm

    done = len(job.finished())
    hidden = None if progress is None else not progress
    began, tokens = time.monotonic(), 0
    with tqdm(
        total=job.rows, initial=min(job.rows, done * job.size), unit="row", file=sys.stderr, leave=False,
        disable=hidden, dynamic_ncols=True,
    ) as bar:  # fmt: skip
        for note in notes:
            tokens += note.tokens
            bar.set_postfix_str(f"{tokens / max(time.monotonic() - began, 1e-9):,.0f} tokens/s", refresh=False)
            bar.update(note.rows)
            yield note


def _how_far(job: Job) -> str:
    return f"{len(job.finished()):,} of {counted(job.count, 'shard')} finished"


def _end(job: Job, totals: Totals) -> int:
    kept = f"; {totals.kept:,} kept" if totals.kept != totals.rows else ""
    say(f"{counted(job.rows, 'row')} in {counted(job.count, 'shard')}{kept}: besag bulk merge {job.folder.path}")
    unscored = totals.unscored()
    if unscored:
        say(f"{sum(unscored.values()):,} rows have no result: {_states(unscored)}")
    return UNSCORED if unscored else 0


def _states(states: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {state}" for state, count in states.items())


@bulk.command()
@guarded
def merge(
    folder: Folder,
    output: Annotated[str, o.of_output("--output", "-o", help="The file.", show_default=False)],
    force: o.Force = False,
) -> int:
    """Put the shards of a finished job together, in the order of its input.

    besag bulk merge scores --output scores.tsv
    """
    from besag.bulk.job import opened

    job = opened(folder)
    check_output(output, force)
    job.shape.merge(job.shards_in_order(), output)
    return 0


@bulk.command()
@guarded
def status(folder: Folder) -> int:
    """How far a job is, from another shell: shards, rows, statuses, rate, and how long it still takes.

    besag bulk status scores
    """
    from besag.bulk.job import opened, running
    from besag.bulk.journal import Totals, rate, read
    from besag.bulk.planning import duration

    job = opened(folder)
    finished, failed = len(job.finished()), len(job.failed())
    notes, _ = read(job.folder)
    rows = min(job.rows, finished * job.size)
    print(f"shards   {finished:,} of {job.count:,}" + (f", and {failed:,} with failed rows" if failed else ""))
    print(f"rows     {rows:,} of {job.rows:,} ({rows / job.rows:.1%})")
    unscored = Totals.of(notes).unscored()
    if unscored:
        print(f"statuses {_states(unscored)}")
    lately = rate(notes)
    active = finished < job.count and running(folder)
    if lately is not None:
        print(f"rate     {lately[0]:,.1f} rows/s, {lately[1]:,.0f} tokens/s")
        if active:
            print(f"left     {duration((job.rows - rows) / lately[0])}")
    print(f"state    {'finished' if finished == job.count else 'running' if active else 'stopped'}")
    return 0
