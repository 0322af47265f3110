"""`besag bulk`: a verb over a whole corpus, on Ray Data; `merge` puts the shards together, `status` says how far it is.

Thin: a command is its options and its verb. `bulk_work.py` is what they share; `besag.bulk` imports Ray.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import typer

from besag.cli import options as o
from besag.cli.augment import CopyOptions
from besag.cli.bulk_work import BulkOptions, Setup, states
from besag.cli.config import Config
from besag.cli.exits import guarded
from besag.cli.fill import K
from besag.cli.groups import LayoutOptions, ModelOptions, RunOptions, grouped
from besag.cli.joint import JointOptions
from besag.cli.rows import View
from besag.cli.sample import KernelOptions
from besag.cli.score import TextOptions
from besag.cli.settings import ConstructionOptions, MethodsOptions, settings
from besag.files.writing import check_output

_FILES = "Files or URLs (text lines, TSV, CSV, JSON Lines, Parquet; packed or not); rows are counted over all of them."

Files = Annotated[list[str], typer.Argument(metavar="INPUT…", help=_FILES, show_default=False)]
Folder = Annotated[str, typer.Argument(metavar="DIR", help="Folder of a job.", show_default=False)]

bulk = typer.Typer(
    name="bulk", help="Work on whole corpora, on one machine or a Ray cluster; killed jobs go on.", no_args_is_help=True
)


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


# ---- a job that there is


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
        print(f"statuses {states(unscored)}")
    lately = rate(notes)
    active = finished < job.count and running(folder)
    if lately is not None:
        print(f"rate     {lately[0]:,.1f} rows/s, {lately[1]:,.0f} tokens/s")
        if active:
            print(f"left     {duration((job.rows - rows) / lately[0])}")
    print(f"state    {'finished' if finished == job.count else 'running' if active else 'stopped'}")
    return 0
