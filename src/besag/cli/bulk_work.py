"""A job of `besag bulk`, as the command line says it: its options, its plan, its bar, and what is told at the end.

Knows no verb: whichever it is, a job is begun, worked on and told of in one way. `besag.bulk` does the work.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from besag.cli import options as o
from besag.cli.exits import INTERRUPTED, UNSCORED, CtrlC, at_end, say
from besag.cli.groups import LayoutOptions, ModelOptions, RunOptions
from besag.cli.score import command
from besag.errors import BesagError, quoted
from besag.files.progress import BLOCK
from besag.results.words import counted

if TYPE_CHECKING:
    from besag.bulk.job import Job
    from besag.bulk.journal import Totals
    from besag.bulk.pipeline import Pool
    from besag.bulk.verbs import Verb
    from besag.bulk.working import Note

_DIR = "Folder of the job, or a URL; on a cluster one that all machines share."
_KEEP = 'Leave out rows of which this is not so: "score > -40", "score / tokens > -4 and tokens < 100".'
_ADDRESS = "Of a Ray cluster to join, such as auto; if not given, one is started on this machine."
_GPUS = "If not given, 1 where this machine has any, and 0 with --address; 0.5: two actors on a GPU."
_SHARD = "Rows of a shard, a multiple of the block (CPU 512, CUDA 16384)."
_RATE = "--plan: rows a second of one actor, if known; else a few rows are tried here."

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


def _has_gpu() -> bool:
    """Is there an NVIDIA device that this process may use? Without importing torch."""
    return os.path.exists("/dev/nvidiactl") and os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1")


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
        say(f"{sum(unscored.values()):,} rows have no result: {states(unscored)}")
    return UNSCORED if unscored else 0


def states(counts: Mapping[str, int]) -> str:
    """How many rows have which status."""
    return ", ".join(f"{count:,} {state}" for state, count in counts.items())
