"""The work on Ray Data: tasks that read shards, an actor pool that holds the models.

    units ──tasks: besag's readers──► shards ──actors: a model each, loaded once──► files and notes ──► the driver

A shard travels as one row that nobody looks into, so no layout of blocks can cut it or put two together, and it is
written by the actor that worked on it: the driver sees notes only. Results stay off the object store. An actor that
dies is started again, and its shard is done again. Knows Ray, and nothing of what a shard is about.
"""

from __future__ import annotations

import os
import pickle
import secrets
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from typing import Any

from besag.bulk.index import Shard
from besag.bulk.reading import Read, Reader
from besag.bulk.working import Note, Work, Worker
from besag.errors import BesagError, require

OBJECT_STORE = 512 << 20  # bytes, of a cluster of our own: shards that were read and wait
READING_CPUS = 0.25  # of a task that reads: so that it runs beside the actors, and is not fused with them
MOST_ACTORS = 8  # on CPUs, if not given: each holds a model, and has several threads instead
IN_FLIGHT = 2  # shards that wait at an actor, so that it has one when another is done
SETTINGS = {  # of Ray's, unless somebody has set them
    "RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",  # 15 would let every other process go first: actors are the work here
}  # fmt: skip
# Of a cluster of our own: ports on loopback only, on Linux as on the systems that the setting is named after, and a
# token for connections, which a version of Ray without tokens ignores. Ray reads both when it is imported: set later,
# its processes would follow them and could not be reached.
OWN = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32),
}  # fmt: skip


_imported_with_own = False  # whether Ray was imported by besag, with these settings


@dataclass(frozen=True)
class Pool:
    """How many actors, and what each has."""

    actors: int | None = None
    gpus: float = 0.0  # an actor
    cpus: int | None = None  # an actor, and its threads; None: all there are, shared out
    address: str | None = None  # of a cluster that runs; None: one is started on this machine

    def __call__(self, reader: Reader, units: Sequence[Sequence[Shard]], work: Work) -> Iterator[Note]:
        with cluster(self.address):
            ray_data = _ray().data
            actors, cpus, gpus = self.fitted()
            context = ray_data.DataContext.get_current()
            before = context.target_max_block_size
            context.target_max_block_size = 1  # a block for each shard, as soon as it was read
            try:
                held = [{"unit": pickle.dumps((reader, list(unit)))} for unit in units]
                dataset = ray_data.from_items(held, override_num_blocks=len(held))
                dataset = dataset.map_batches(_read, batch_size=1, num_cpus=READING_CPUS)
                dataset = dataset.map_batches(
                    Actor,
                    fn_constructor_args=(replace(work, threads=cpus),),
                    compute=ray_data.ActorPoolStrategy(size=actors, max_tasks_in_flight_per_actor=IN_FLIGHT),
                    batch_size=1, num_cpus=cpus, num_gpus=gpus,
                )  # fmt: skip
                yield from _notes(dataset)
            finally:
                context.target_max_block_size = before

    def check(self) -> None:
        """Is Ray there?"""
        with _settings({} if self.address else _own()):
            _ray()

    def usual_actors(self) -> int:
        """On this machine, if nothing is said."""
        return min(cores(), MOST_ACTORS)

    def fitted(self) -> tuple[int, int, float]:
        """Actors, and CPUs and GPUs of each, as the cluster has them."""
        there = _ray().cluster_resources()
        gpus = self.gpus
        cpus = max(1, int(there.get("CPU", 1)) - 1)  # one is left to Ray and to the tasks that read
        most = int(there.get("GPU", 0) / gpus) if gpus else cpus
        actors = self.actors or max(1, min(most, MOST_ACTORS) if not gpus else most)
        each = self.cpus or (max(1, cpus // actors) if not gpus else 1)
        if self.address is None and (actors * each > cpus or actors * gpus > there.get("GPU", 0)):
            raise BesagError(
                f"{actors} actors of {each} CPUs and {gpus:g} GPUs do not fit this machine, which has {cpus} and "
                f"{there.get('GPU', 0):g}: give fewer --actors, --cpus-per-actor or --gpus-per-actor"
            )
        return actors, each, gpus


class Actor:
    """What an actor of the pool holds: a worker, whose model is loaded with the first shard."""

    def __init__(self, work: Work) -> None:
        self.worker = Worker(work)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        return {"note": [self._note(pickle.loads(one)).line() for one in batch["shard"]]}

    def _note(self, read: Read | BesagError) -> Note:
        return Note(-1, stop=str(read)) if isinstance(read, BesagError) else self.worker(read)


def _read(batch: dict[str, Any]) -> Iterator[dict[str, list[bytes]]]:
    for unit in batch["unit"]:
        reader, wanted = pickle.loads(unit)
        try:
            for read in reader.read(wanted):
                yield {"shard": [pickle.dumps(read)]}
        except BesagError as problem:  # a file that has changed under our hands
            yield {"shard": [pickle.dumps(problem)]}


def _notes(dataset: Any) -> Iterator[Note]:
    exceptions = _ray().exceptions
    try:
        for row in dataset.iter_rows():
            yield Note.of(row["note"])
    except (exceptions.RayError, RuntimeError) as failure:
        why = str(failure).strip().splitlines()
        raise BesagError(
            f"the cluster could not go on: {type(failure).__name__}: {why[-1] if why else ''}. Finished shards are "
            "kept: --resume goes on"
        ) from failure


# ---- the cluster


def _ray() -> Any:
    """Ray with Ray Data, or which extra brings it."""
    os.environ.update({name: os.environ.get(name, value) for name, value in SETTINGS.items()})
    ray: Any = require("ray", extra="bulk")
    require("ray.data", extra="bulk")
    return ray


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """A cluster: the one that is joined already, the one at this address, or one of our own on this machine."""
    with _settings({} if address else _own()):
        yield from _joined(address)


def _own() -> dict[str, str]:
    """Return the settings of a cluster of our own; none for a program that has imported Ray without them."""
    global _imported_with_own
    _imported_with_own = _imported_with_own or "ray" not in sys.modules
    return OWN if _imported_with_own else {}


@contextmanager
def _settings(own: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables that are not set, for the duration of the block."""
    new = {name: value for name, value in own.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


def _joined(address: str | None) -> Iterator[None]:
    ray = _ray()
    if ray.is_initialized():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = {"num_cpus": cores() + 1, "object_store_memory": _object_store(), "include_dashboard": False}
        handlers = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            with _silenced():  # it announces its own log level
                ray.init(
                    address=address or "local", log_to_driver=False, logging_level="ERROR", **({} if address else own)
                )  # fmt: skip
        except (ConnectionError, RuntimeError, ValueError) as failure:
            where = f"join the cluster at --address {address!r}" if address else "start Ray on this machine"
            raise BesagError(f"cannot {where}: {' '.join(str(failure).split())[:300]}") from failure
    with redirect_stdout(sys.stderr):  # to which Ray would print that an actor died
        try:
            if threading.current_thread() is threading.main_thread():
                for one, handler in handlers.items():  # Ray has put its own there
                    signal.signal(one, handler)
            _be_quiet(ray)
            yield
        finally:
            ray.shutdown()


@contextmanager
def _silenced() -> Iterator[None]:
    """Nothing on stderr for a moment, from whatever language it comes."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _be_quiet(ray: Any) -> None:
    import logging

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _object_store() -> int:
    """Half of what shared memory has, and not more than need be."""
    try:
        about = os.statvfs("/dev/shm")
    except OSError:
        return OBJECT_STORE
    return max(80 << 20, min(OBJECT_STORE, about.f_bavail * about.f_frsize // 2))
