from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests import tokenizers

from besag import masks
from besag.errors import BesagError
from besag.masks.law import Adaptive
from besag.masks.uniform import Uniform
from besag.training.data.batch_plan import BatchPlan
from besag.training.data.cache import Cache, build_cache
from besag.training.data.clock import batches_at
from besag.training.data.loader import BatchDataset, Clock, Parts, indices, make_loader
from besag.training.data.sources import Document
from besag.training.network.batch import Batch
from besag.training.recipe import Data
from besag.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(tokenizers.build("wordpiece-cased"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory, vocabulary: Vocabulary) -> Cache:
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(tokenizers.SENTENCES, 8)) for _ in range(60)]
    return build_cache([Document(text, None, "") for text in texts], vocabulary, tmp_path_factory.mktemp("c") / "c")


Make = Callable[..., BatchDataset]


@pytest.fixture
def make(cache: Cache, vocabulary: Vocabulary) -> Make:
    def made(
        *, clock: Clock | None = None, law: Any = None, unpadded: bool = True, static: bool = False, copies: int = 1
    ) -> BatchDataset:
        data = Data(max_length=32, batch_tokens=512)
        plan = BatchPlan(cache, data, special=2, seed=3, unpadded=unpadded, copies=copies)
        rule = masks.Masking(
            law or masks.law("whole_word"),
            masks.rate_named("linear", 0.2, 0.6, 0.0),
            masks.Replacement(vocabulary.mask_id, 0.8, 0.1, 0.1, np.arange(5, vocabulary.size)),
        )
        return BatchDataset(plan, vocabulary, rule, clock or Clock(steps=100), seed=3, static=static)

    return made


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, tuple):
        return type(a) is type(b) and all(map(same, a, b))
    return bool(a == b)


@pytest.mark.parametrize("options", [{}, {"static": True}, {"unpadded": False}, {"copies": 2}], ids=str)
def test_any_number_of_workers_and_any_start_give_the_same(make: Make, options: dict[str, Any]) -> None:
    batches = make(**options)
    straight = [batches[index] for index in range(28)]  # more than one epoch
    assert batches.plan.where(27) > 1
    for workers in (0, 1, 2):
        found = list(islice(make_loader(make(**options), indices(0), workers, False), 28))
        assert all(map(same, found, straight))
    resumed = list(islice(make_loader(make(**options), indices(13), 2, False), 15))
    assert all(map(same, resumed, straight[13:]))


def test_a_batch_keeps_its_kind_on_its_way(make: Make) -> None:
    [batch] = islice(make_loader(make(), indices(5), 1, False), 1)
    assert isinstance(batch, Batch)
    assert isinstance(batch.step, int)
    assert (batch.step, batch.progress) == (5, 0.05)
    assert batch.ids.dtype == batch.inputs.dtype == batch.asked.dtype == batch.draw.dtype == torch.int64
    assert batch.layout.bounds.dtype == torch.int32
    assert batch.weight.dtype == batch.rate.dtype == torch.float32


def test_unpadded_batches_have_no_padding(make: Make, vocabulary: Vocabulary) -> None:
    batches = make()
    for index in range(12):
        batch = batches[index]
        assert isinstance(batch, Batch)
        assert not (batch.ids == vocabulary.pad_id).any()
        assert int(batch.layout.bounds[-1]) == len(batch.ids) <= 512
        assert batch.layout.bounds.diff().min() > 2


def test_masks_of_a_passage_do_not_depend_on_its_batch(make: Make) -> None:
    batches = make()
    passages = batches.clean(2)
    together = batches.maker.masking(passages, 0.1, 3)
    one = passages.row == 4
    alone = batches.maker.masking(
        passages._replace(
            ids=passages.ids[one], row=np.zeros(one.sum(), np.int64), free=passages.free[one], word=passages.word[one],
            span=passages.span[one], draw=passages.draw[4:5],
        ), 0.1, 3,
    )  # fmt: skip
    assert alone.inputs.tolist() == together.inputs[one].tolist()


def test_two_processes_see_what_one_sees_that_accumulates_two() -> None:
    one = list(islice(indices(3, accumulate=2), 8))
    two = [list(islice(indices(3, rank=rank, world=2), 4)) for rank in range(2)]
    assert one == [6, 7, 8, 9, 10, 11, 12, 13]
    assert [index for pair in zip(*two, strict=True) for index in pair] == one
    four = [list(islice(indices(1, rank, 2, 2), 4)) for rank in range(2)]  # step 1: (1·2 + a)·2 + r
    assert four == [[4, 6, 8, 10], [5, 7, 9, 11]]
    assert [index for index in range(12) if index in indices(1, 1, 2, 2)] == [5, 7, 9, 11]


def test_clock(make: Make) -> None:
    plan = make().plan
    steps = Clock(steps=4, accumulate=2, world=3)
    assert [steps.step(index) for index in (0, 5, 6, 29)] == [0, 0, 1, 4]
    assert [steps.progress(index, plan) for index in (0, 5, 6, 23, 29, 60)] == [0, 0, 0.25, 0.75, 1, 1]
    tokens = Clock(tokens=5000, accumulate=2, world=1)
    assert tokens.progress(1, plan) == 0
    assert tokens.progress(2, plan) == tokens.progress(3, plan) == plan.tokens_before(2) / 5000
    assert tokens.progress(1000, plan) == 1
    wall = Clock()
    assert wall.progress(7, plan) == 0
    wall.publish(0.3)
    assert wall.progress(0, plan) == 0.3


def test_a_ramp_grows_from_one_batch_to_all_of_them(make: Make) -> None:
    """Cramming's: A(s) = 1 + ⌊(A − 1) t / ramp⌋, and which step each batch belongs to follows from it."""
    plan = make().plan
    clock = Clock(steps=10, accumulate=4, ramp=0.6)
    sizes = [1, 1, 2, 2, 3, 3, 4, 4, 4, 4]  # t = 0, 0.1 …: 3 t / 0.6 = 0, 0.5, 1, 1.5, 2, 2.5, 3
    assert [batches_at(step / 10, 4, 0.6) for step in range(10)] == sizes
    owner = [step for step, size in enumerate(sizes) for _ in range(size)]
    assert [clock.step(index) for index in range(len(owner))] == owner
    assert [clock.first(step) for step in range(10)] == np.cumsum([0, *sizes])[:-1].tolist()
    assert [clock.progress(index, plan) for index in range(len(owner))] == [step / 10 for step in owner]
    assert clock.step(len(owner) + 3) == 10  # and as many for ever
    assert [index for index in range(len(owner)) if clock.opens(index)] == np.cumsum([0, *sizes])[:-1].tolist()
    several = Clock(steps=10, accumulate=4, world=3, ramp=0.6)  # each of three processes
    assert [several.step(index) for index in range(3 * len(owner))] == np.repeat(owner, 3).tolist()


def test_a_ramp_over_tokens_knows_how_many_there_were(make: Make) -> None:
    plan = make().plan
    clock, first, step, sizes = Clock(tokens=8000, accumulate=3, ramp=1.0), 0, 0, []
    while plan.tokens_before(first) < 8000:  # by hand: the next step begins where this one ends
        share = plan.tokens_before(first) / 8000
        sizes.append(1 + int(2 * share))
        for index in range(first, first + sizes[-1]):
            assert (clock.step(index, plan), clock.progress(index, plan)) == (step, share)
        first, step = first + sizes[-1], step + 1
    assert sizes == sorted(sizes)
    assert {*sizes} == {1, 2}  # three come at the very end of a ramp over the whole run
    assert clock.progress(first, plan) == 1


def test_a_ramp_goes_on_in_the_middle(make: Make) -> None:
    plan = make().plan
    for total in ({"steps": 10}, {"tokens": 9000}):
        whole, resumed = (Clock(**total, accumulate=4, ramp=0.6) for _ in range(2))
        resumed.go_on(4, whole.first(4, plan))
        rest = range(whole.first(4, plan), whole.first(4, plan) + 15)
        assert [resumed.step(index, plan) for index in rest] == [whole.step(index, plan) for index in rest]
        assert [resumed.progress(index, plan) for index in rest] == [whole.progress(index, plan) for index in rest]
    longer = Clock(steps=20, accumulate=4, ramp=0.6)  # prolonged: what was seen is seen, and the ramp is flatter
    longer.go_on(4, 6)
    assert [longer.first(step) for step in range(4, 9)] == [6, 8, 10, 12, 14]


def test_by_the_clock_a_batch_is_of_whatever_step_takes_it(make: Make) -> None:
    clock = Clock(accumulate=4, ramp=0.6)
    clock.go_on(7, 20)
    clock.publish(0.3)
    assert (clock.step(25), clock.progress(25, make().plan)) == (7, 0.3)


def test_published_progress_reaches_workers(make: Make) -> None:
    clock = Clock()
    loader = iter(make_loader(make(clock=clock), indices(0), 1, False))
    assert next(loader).progress == 0
    clock.publish(0.5)
    assert any(next(loader).progress == 0.5 for _ in range(12))


def test_token_schedules_move_with_the_tokens(make: Make) -> None:
    found = list(islice(make_loader(make(clock=Clock(tokens=10_000)), indices(0), 2, False), 20))
    total = 0
    for batch in found:
        assert batch.progress == pytest.approx(min(total / 10_000, 1))
        total += len(batch.ids)


@dataclass(frozen=True)
class Learning(Uniform, Adaptive):
    name = "learning"

    def observe(self, ids: Any, losses: Any, correct: Any) -> None: ...

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, state: dict[str, np.ndarray]) -> None: ...


def test_laws_that_adapt_are_asked_here(make: Make) -> None:
    batches = make(law=Learning())
    plain = make(law=masks.law("uniform"))
    for index, parts in enumerate(islice(make_loader(batches, indices(0), 2, False), 3)):
        assert isinstance(parts, Parts)
        assert same(parts.passages, plain.clean(index))
        assert same(batches.mask(parts), plain[index])
    done = plain[0]
    assert isinstance(done, Batch)
    assert plain.mask(done) is done


def test_static_shapes(make: Make) -> None:
    batches = make(static=True)
    shapes = {(len(b.ids), b.layout.rows) for b in (batches[index] for index in range(24)) if isinstance(b, Batch)}
    assert len(shapes) == 1
    with pytest.raises(BesagError, match="static shapes need unpadded"):
        make(static=True, unpadded=False)


def test_a_wrong_count_of_specials_is_refused(make: Make, cache: Cache, vocabulary: Vocabulary) -> None:
    good = make()
    plan = BatchPlan(cache, Data(max_length=32, batch_tokens=512), special=0, seed=0, unpadded=True)
    with pytest.raises(BesagError, match="room for 0 special tokens, there are 2"):
        BatchDataset(plan, vocabulary, good.maker.masking, Clock(steps=1), seed=0)


class Broken(BatchDataset):
    def __getitem__(self, index: int) -> Any:
        raise BesagError("the text is bad at line 3")


@pytest.mark.parametrize("workers", [0, 1])
def test_errors_come_through_as_they_were_said(make: Make, workers: int) -> None:
    batches = make()
    batches.__class__ = Broken
    with pytest.raises(BesagError, match=r"^the text is bad at line 3$"):
        next(iter(make_loader(batches, indices(0), workers, False)))
    assert not [one for one in multiprocessing.active_children() if one.daemon]  # Python could not end them


@pytest.mark.parametrize("failure", [EOFError(), ConnectionResetError(), FileNotFoundError()], ids=repr)
def test_a_worker_that_died_while_it_handed_over(
    make: Make, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def fail(self: Any) -> Any:
        raise failure

    monkeypatch.setattr(torch.utils.data.DataLoader, "__iter__", fail)
    with pytest.raises(RuntimeError, match="a DataLoader worker died"):
        next(iter(make_loader(make(), indices(0), 0, False)))


def run(batches: BatchDataset, told: Any) -> None:
    """A run in a process of its own: tells its workers' numbers, and when it is interrupted or what ended it."""
    os.setsid()
    interrupted: list[int] = []
    left = 40  # batches after the interrupt: more than were prepared before it
    try:
        loader: Any = make_loader(batches, indices(0), 2, False)
        loader.worker_init_fn = None  # as if the signal came before a worker could do anything about it
        for number, _ in enumerate(loader):
            if number == 0:  # from now on: the workers began without it
                signal.signal(signal.SIGINT, lambda *_: interrupted.append(1))
                told.send([worker.pid for worker in loader._iterator._workers])
            left -= bool(interrupted)
            if left == 0:
                told.send("went on")
                return
    except RuntimeError as why:
        told.send(f"RuntimeError {why}")


@pytest.mark.parametrize("how", ["interrupt", "kill the run", "kill a worker"])
def test_no_worker_outlives_the_run_and_nothing_hangs(make: Make, how: str) -> None:
    context = multiprocessing.get_context("fork")
    heard, told = context.Pipe()
    process = context.Process(target=run, args=(make(), told))
    process.start()
    told.close()
    assert process.pid is not None
    workers = heard.recv()
    assert len(workers) == 2
    if how == "interrupt":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: all of them
    else:
        os.kill(process.pid if how == "kill the run" else workers[0], signal.SIGKILL)
    process.join(20)
    assert not process.is_alive()
    if how == "interrupt":  # the run may end when it likes, with a checkpoint say: workers are still there
        assert heard.recv() == "went on"
    if how == "kill a worker":
        assert re.match("RuntimeError .*DataLoader worker", heard.recv())
    limit = time.monotonic() + 15
    while any(_lives(worker) for worker in workers):
        assert time.monotonic() < limit, "a worker lives on"
        time.sleep(0.1)


def test_python_ends_while_batches_are_still_held() -> None:
    held = """
from besag.training.data.children import turn_deaf
from besag.training.data.loader import Loader
batches = iter(Loader(range(9), batch_size=None, num_workers=1, persistent_workers=True, worker_init_fn=turn_deaf))
print(next(batches))
"""
    done = subprocess.run([sys.executable, "-c", held], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "0\n")


def _lives(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:1]
    except OSError:
        return False
