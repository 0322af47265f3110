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

bulk = typer.Typer(name="bulk", help="Process corpora in resumable shards with Ray.", no_args_is_help=True)


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
    """Score a corpus in resumable shards.

    Rows are those of besag score.

    Example:
        besag bulk score corpus.txt --output scores
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
    """Compute mean and maximum predictive entropy per text.

    In nats, over the positions of the text, masked as --method masks them.

    Example:
        besag bulk entropy corpus.txt --output entropies
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
    """Infill all masks of each text jointly.

    Example:
        besag bulk fill cloze.tsv --column text --output infilled -k 3
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
    """Sample the masked positions of each text.

    Samples depend only on the seed and the row.

    Example:
        besag bulk sample templates.txt --output samples --chains 2
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
    """Generate similar variants of each text.

    Rows are those of besag augment.

    Example:
        besag bulk augment train.csv --output variants --copies 2
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
    """Merge the shards of a finished job.

    Rows are written in the order of the input.

    Example:
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
    """Report the progress of a job.

    Shards, rows, statuses, rows per second and remaining time. Works from another shell while the job runs.

    Example:
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
