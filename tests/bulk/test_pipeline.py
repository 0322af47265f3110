"""The pipeline on a real Ray: two nodes on this machine, and kill -9 of whatever runs there.

One cluster serves all tests. Drivers that are killed are processes of their own.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.bulk.conftest import sentences
from tests.files.reading import put
from typer.testing import CliRunner

pytest.importorskip("ray", reason="Ray is not installed: pip install 'besag[bulk]'")

from besag import bulk
from besag.bulk import pipeline
from besag.bulk.job import Job, begin, opened
from besag.bulk.journal import Journal
from besag.bulk.pipeline import Pool
from besag.bulk.running import run
from besag.bulk.verbs import Score
from besag.bulk.working import SHARDS, Work
from besag.cli import app
from besag.errors import BesagError
from besag.files.inputs import Layout

ROWS, BLOCK = 4096, 512
STORE = 80 << 20
ENVIRONMENT = {**os.environ, **pipeline.SETTINGS, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A head and a worker node; killed nodes are replaced by whoever kills them."""
    os.environ.update({name: ENVIRONMENT[name] for name in pipeline.SETTINGS})
    from ray.cluster_utils import Cluster

    found = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": STORE, "include_dashboard": False}
    )
    found.add_node(num_cpus=1, object_store_memory=STORE)
    yield found
    found.shutdown()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With poisoned rows among the others: nothing, and what is not UTF-8."""
    lines = [line.encode() for line in sentences(ROWS, longest=12)]
    lines[700], lines[2000] = b"", b"caf\xe9"
    return put(tmp_path_factory.mktemp("corpus") / "corpus.txt", b"".join(line + b"\n" for line in lines))


@pytest.fixture(scope="module")
def straight(corpus: Path, bert: Path) -> bytes:
    """What `besag score` makes of it."""
    path, threads = corpus.with_name("straight.tsv"), torch.get_num_threads()
    torch.set_num_threads(1)  # as many as an actor has
    try:
        CliRunner().invoke(app, ["score", str(corpus), "-m", str(bert), "-o", str(path), "--quiet"])
    finally:
        torch.set_num_threads(threads)
    return path.read_bytes()


class Driver:
    """`besag bulk score` in a process of its own."""

    def __init__(self, nodes: Any, corpus: Path, bert: Path, folder: Path, actors: int = 2) -> None:
        self.nodes, self.folder = nodes, folder
        self.command = [
            sys.executable, "-m", "besag", "bulk", "score", str(corpus), "-m", str(bert), "-o", str(folder), "--quiet",
            "--shard-rows", str(BLOCK), "--actors", str(actors), "--cpus-per-actor", "1", "--address", nodes.address,
            "--resume",
        ]  # fmt: skip
        self.process = subprocess.Popen(self.command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)

    def finished(self) -> int:
        shards = self.folder / SHARDS
        return len(list(shards.glob("[0-9]*.tsv"))) if shards.is_dir() else 0

    def wait_for(self, shards: int, seconds: float = 200) -> None:
        """Until so many are finished, or all is."""
        end = time.monotonic() + seconds
        while self.finished() < shards and self.process.poll() is None:
            assert time.monotonic() < end, "nothing happens"
            time.sleep(0.01)

    def end(self) -> str:
        _, said = self.process.communicate(timeout=200)
        return said


# ---- whom to kill


def actors(nodes: Any) -> list[int]:
    """The processes of this cluster that hold a model."""
    raylets = {info.process.pid for node in nodes.list_all_nodes() for info in node.all_processes.get("raylet", ())}
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdecimal():
                continue
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            name = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if parent in raylets and b"MapWorker" in name:
            found.append(int(entry.name))
    return sorted(found)


def kill_actor(driver: Driver) -> bool:
    """The first there is; like all that kill, it says whether the job still ran and somebody died."""
    while driver.process.poll() is None:
        for process in actors(driver.nodes):
            with suppress(ProcessLookupError):  # gone since it was found
                os.kill(process, signal.SIGKILL)
                return True
        time.sleep(0.01)
    return False


def kill_node(driver: Driver) -> bool:
    """All processes of the worker node; another one takes its place."""
    if driver.process.poll() is not None:
        return False
    node = next(iter(driver.nodes.worker_nodes))
    driver.nodes.remove_node(node, allow_graceful=False)
    driver.nodes.add_node(num_cpus=1, object_store_memory=STORE, wait=False)
    return True


def kill_driver(driver: Driver) -> bool:
    driver.process.kill()
    return driver.process.wait() == -signal.SIGKILL


def merged(folder: Path) -> bytes:
    job, path = opened(str(folder)), folder / "merged.tsv"
    job.shape.merge(job.shards_in_order(), str(path))
    return path.read_bytes()


@pytest.mark.timeout(300)
def test_one_kill_of_each_kind(
    nodes: Any, corpus: Path, bert: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    driver = Driver(nodes, corpus, bert, tmp_path / "job")
    for shards, kill in enumerate([kill_actor, kill_driver], 1):
        driver.wait_for(shards)
        kill(driver)
    driver.end()
    kept = driver.finished()
    assert 2 <= kept < ROWS // BLOCK
    again = Driver(nodes, corpus, bert, tmp_path / "job")
    again.wait_for(kept + 1)
    kill_node(again)
    straight = request.getfixturevalue("straight")
    assert "1 empty, 1 undecodable" in again.end()
    assert again.process.returncode == 3
    assert merged(tmp_path / "job") == straight


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kill", [kill_actor, kill_node, kill_driver])
def test_five_kills_at_random_moments(
    nodes: Any, corpus: Path, bert: Path, straight: bytes, tmp_path: Path, kill: Callable[[Driver], bool]
) -> None:
    """An actor or a node is replaced while the job goes on; after its driver's death it is resumed.

    A job that is too fast to be killed so often is followed by another one.
    """
    draw, folders, kills = random.Random(kill.__name__), [tmp_path / "0"], 0
    driver = Driver(nodes, corpus, bert, folders[-1])
    while kills < 5:
        driver.wait_for(min(driver.finished() + draw.randrange(3), ROWS // BLOCK - 1))
        time.sleep(draw.random() * 0.1)
        kills += kill(driver)
        if driver.process.poll() is not None:
            driver.end()
            if driver.finished() == ROWS // BLOCK:
                folders.append(tmp_path / str(len(folders)))
            driver = Driver(nodes, corpus, bert, folders[-1])
    driver.end()
    for folder in folders:
        again = Driver(nodes, corpus, bert, folder)
        again.end()
        assert again.process.returncode == 3
        assert merged(folder) == straight


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_keeps_finished_shards(
    nodes: Any, corpus: Path, bert: Path, straight: bytes, tmp_path: Path, number: int, code: int
) -> None:
    driver = Driver(nodes, corpus, bert, tmp_path / "job")
    driver.wait_for(2)
    driver.process.send_signal(number)
    assert "go on with besag bulk score" in driver.end()
    assert driver.process.returncode == code
    assert driver.finished() >= 2
    Driver(nodes, corpus, bert, tmp_path / "job").end()
    assert merged(tmp_path / "job") == straight


# ---- in this process


@pytest.fixture
def joined(nodes: Any) -> Iterator[str]:
    nodes.wait_for_nodes(timeout=60)  # one that was killed counts until its death is noticed
    with pipeline.cluster(nodes.address):
        yield nodes.address


def started(folder: Path, lines: bytes, verb: Score) -> tuple[Job, Work]:
    path = put(folder / "in.txt", lines)
    job = begin([str(path)], str(folder / "job"), verb, {}, layout=Layout(), format="tsv", block=2, size=2)
    return job, Work(verb, job.shape, job.folder.path, job.block)


@pytest.mark.slow
def test_rows_that_cannot_be_read(joined: str, bert: Path, tmp_path: Path) -> None:
    job, work = started(tmp_path, b"the cat\ncaf\xe9\na dog\nthe\0mat\nthe mat\n", Score({"model": str(bert)}))
    with closing(Journal(job.folder)) as journal:
        assert sum(note.rows for note in run(job, work, Pool(1, 0, 1, joined), journal)) == 5
    assert journal.totals.states == {"ok": 3, "undecodable": 1, "unreadable": 1}


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_stops_the_job_within_a_minute(joined: str, tmp_path: Path) -> None:
    job, work = started(tmp_path, b"a\n" * 9, Score({"model": str(tmp_path / "no-such")}))
    began = time.monotonic()
    with pytest.raises(BesagError, match="there is no folder"):
        list(run(job, work, Pool(1, 0, 1, joined), Journal(job.folder)))
    assert time.monotonic() - began < 60


def test_a_dataset_in_and_out(joined: str, bert: Path) -> None:
    import ray.data

    texts = ray.data.from_items([{"id": 1, "said": "the cat sat"}, {"id": 2, "said": ""}])
    rows = bulk.score(texts, "said", model=str(bert), keep="score > -1000").take_all()
    assert [(row["id"], row["text"], row["status"]) for row in rows] == [(1, "the cat sat", "ok"), (2, "", "empty")]


def test_a_pool_that_does_not_fit(joined: str) -> None:
    with pytest.raises(BesagError, match="do not fit this machine"):
        Pool(actors=100).fitted()
    assert Pool(gpus=0, address=joined).fitted() == (2, 1, 0)


OWN_CLUSTER = """
import os, sys
from besag.bulk.pipeline import Pool, cluster

Pool().check()
before = dict(os.environ)
with cluster(None):
    assert os.environ["RAY_AUTH_MODE"] == "token" and len(os.environ["RAY_AUTH_TOKEN"]) == 64
    import psutil, ray

    @ray.remote
    def answer():
        return 42

    assert ray.get(answer.remote()) == 42
    here = psutil.Process()
    for process in [here, *here.children(recursive=True)]:
        for one in process.net_connections(kind="inet"):
            if one.status == psutil.CONN_LISTEN:
                print(one.laddr.ip, file=sys.__stdout__)
assert {name for name in os.environ if "AUTH" in name} == {name for name in before if "AUTH" in name}
"""


@pytest.mark.slow
def test_a_cluster_of_our_own_listens_to_this_machine_alone_and_asks_for_a_token() -> None:
    without = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("RAY_")}
    ran = subprocess.run([sys.executable, "-c", OWN_CLUSTER], env=without, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.split()) >= 3
    assert {one.removeprefix("::ffff:") for one in ran.stdout.split()} == {"127.0.0.1"}
