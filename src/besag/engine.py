"""Questions in, answers out: the only place that knows about batches, devices, memory and progress.

A method is a *plan*: a generator that yields requests and is sent their answers. The engine runs many plans at once and
pools what they ask into buckets of one length, so nothing is padded; sequences asked twice run once; a bucket runs as
soon as it fills a batch, and at the latest when the first plan in line waits for it or the source is idle. Results come
back in the asker's order, from a bounded number of plans in the air, so an endless source runs in constant memory.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar, cast

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from besag.buckets import Answers, Asker, Group, Key, Plan, Pool, Request
from besag.conditionals.contract import Conditionals, Questions
from besag.errors import BesagError
from besag.reductions import Chunk, Reduction

__all__ = ["IDLE", "Answers", "Engine", "Idle", "Plan", "Request"]

T = TypeVar("T")

CPU_TOKENS = 4096  # larger batches fall out of the cache without running faster
CUDA_FIRST_TOKENS, CUDA_MOST_TOKENS = 16_384, 131_072  # the first batch measures memory; past the last nothing is won
WINDOW = 16  # batches' worth of questions that may wait in buckets
PATIENCE = {"cpu": 2, "mps": 4, "cuda": 16}  # batches that may run while the first in line waits
MOST_IN_LINE = 8192  # plans that have begun
IN_THE_AIR = 2  # groups launched on CUDA whose answers are not fetched yet: the host prepares more while they run
HEAD_BYTES = {"cpu": 2**26, "cuda": 2**30, "mps": 2**28}  # logits in memory at a time


class Idle:
    """Put into a source of plans (or texts): nothing more for now, so run what waits."""


IDLE: Final = Idle()


class _Flight(NamedTuple):
    """Batches launched on the device; `event` says when their answers have reached the host."""

    group: Group
    parts: list[dict[str, Tensor]]
    event: torch.cuda.Event | None


class Engine:
    """Runs plans on one `Conditionals`. `batch_tokens` fixes the budget of a batch; otherwise it is found."""

    def __init__(
        self, conditionals: Conditionals, *, batch_tokens: int | None = None, progress: bool | None = None
    ) -> None:
        if batch_tokens is not None and batch_tokens < 1:
            raise BesagError(f"batch_tokens must be at least 1, not {batch_tokens}")
        self.conditionals = conditionals
        self.progress = progress
        self.on_cuda = conditionals.device.type == "cuda"
        self.batch_tokens = batch_tokens or (CUDA_FIRST_TOKENS if self.on_cuda else CPU_TOKENS)
        self.measured = batch_tokens is not None or not self.on_cuda
        self.tokens_run = 0  # through the network, padding included

    def answer(self, questions: Questions, reduce: Reduction | Sequence[Reduction]) -> Answers:
        """Answer one set of questions now."""
        wanted = tuple(reduce) if isinstance(reduce, Sequence) else (reduce,)
        ids, row, place = (part.numpy(force=True) for part in (questions.ids, questions.row, questions.place))
        target, uniform = (None if t is None else t.numpy(force=True) for t in (questions.target, questions.uniform))
        context = {name: part.numpy(force=True) for name, part in questions.context.items()}

        def plan() -> Plan[Answers]:
            return (yield Request(wanted, ids, row, place, target, uniform, context))

        return next(self.run([plan()]))

    def run(
        self, plans: Iterable[Plan[T] | Idle], total: int | None = None, size: Callable[[T], int] = lambda _: 1
    ) -> Iterator[T]:
        """Run plans together and yield their results in order, as soon as they and all before them are done.

        For the progress bar: `total` texts in all, of which a result holds `size`.
        """
        line: deque[Asker[T]] = deque()
        work = _Work(self)
        hidden = None if self.progress is None else not self.progress
        bar = tqdm(total=total, unit="text", file=sys.stderr, delay=1, leave=False, dynamic_ncols=True, disable=hidden)
        began, tokens_before = time.perf_counter(), self.tokens_run
        first_since = self.tokens_run  # how long the first in line has been the first, in tokens

        def finished() -> Iterator[T]:
            nonlocal first_since
            while line and line[0].done:
                result = cast(T, line.popleft().result)
                first_since = self.tokens_run
                rate = (self.tokens_run - tokens_before) / max(time.perf_counter() - began, 1e-9)
                bar.set_postfix_str(f"{rate:,.0f} tokens/s", refresh=False)
                bar.update(size(result))
                yield result

        def too_long() -> bool:
            """Are too many questions waiting, too many plans, or has the first in line waited while others ran?"""
            waited = self.tokens_run - first_since
            return (
                work.pool.load > WINDOW * self.batch_tokens
                or len(line) >= MOST_IN_LINE
                or waited > PATIENCE[self.conditionals.device.type] * self.batch_tokens
            )

        try:
            for plan in plans:
                if isinstance(plan, Idle):
                    work.finish()
                else:
                    line.append(asker := Asker(plan))
                    work.add(asker, asker.advance(None))
                    work.feed_device()
                    while not line[0].done and too_long():
                        work.bring_forward(line[0])
                yield from finished()
            work.finish()
            yield from finished()
        finally:
            for asker in line:
                asker.plan.close()
            bar.close()

    def launch(self, group: Group) -> _Flight:
        """Cut a group into even batches near the budget, run them, and start their answers on the way to the host."""
        count, start = len(group.lengths), 0
        parts: list[dict[str, Tensor]] = []
        while start < count:
            longest = int(group.lengths[start])
            batches = max(1, round((count - start) * longest / self.batch_tokens))
            stop = start + -(-(count - start) // batches)
            try:
                parts += self._forward(group, start, stop)
                start = stop
            except (RuntimeError, MemoryError) as failure:
                if not _out_of_memory(failure):
                    raise
                if stop - start == 1:
                    raise BesagError(
                        f"one sequence of {longest} tokens does not fit the memory of {self.conditionals.device}; "
                        "use a smaller model, a lower precision or another device"
                    ) from failure
                self.batch_tokens, self.measured = (stop - start) // 2 * longest, True
                if self.on_cuda:
                    torch.cuda.empty_cache()
        event = None
        if self.on_cuda:
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            event.record()
        return _Flight(group, parts, event)

    @torch.inference_mode()
    def _forward(self, group: Group, start: int, stop: int) -> list[dict[str, Tensor]]:
        """Sequences start … stop of a group through the network, their asked rows through the head in chunks."""
        network, asked = self.conditionals, group.questions
        length = int(group.lengths[start])
        first, last = np.searchsorted(asked.row.numpy(), [start, stop]).tolist()
        places = asked.row[first:last] * length + asked.place[first:last]
        distinct, which = torch.unique_consecutive(places, return_inverse=True)  # several asks may share one place
        context = {key: value[start:stop] for key, value in asked.context.items()}
        if "attention_mask" in context:
            context["attention_mask"] = context["attention_mask"][:, :length]
        before = 0 if self.measured else torch.cuda.memory_allocated(network.device)
        target = None if asked.target is None else asked.target[first:last]
        ids, row, place, look, aim = self._send(
            asked.ids[start:stop, :length], distinct // length - start, distinct % length, which, target
        )
        sent = dict(zip(context, self._send(*context.values()), strict=True))
        rows = network.rows(Questions(ids=ids, row=row, place=place, context=sent))  # (M', H)
        self.tokens_run += (stop - start) * length
        parts = []
        step = max(1, HEAD_BYTES[network.device.type] // (4 * network.width))
        for at in range(0, last - first, step):
            ask = slice(at, min(at + step, last - first))
            low, high = int(which[ask.start]), int(which[ask.stop - 1]) + 1
            logits = network.head(rows[low:high])  # (h, V)
            logits = logits if logits.dtype == torch.float64 else logits.float()
            chunk = Chunk(
                logits=logits,
                normaliser=torch.logsumexp(logits, -1),
                which=look[ask] - low,
                target=None if target is None else aim[ask],
                uniform=None if asked.uniform is None else asked.uniform[first:last][ask],
            )
            kept = {key: value for reduction in group.reduce for key, value in reduction(chunk).items()}
            parts.append({key: self._fetch(value) for key, value in kept.items()})
        if not self.measured:
            self._measure((stop - start) * length, before)
        return parts

    def _measure(self, tokens: int, before: int) -> None:
        """Set the budget so that a batch takes half of the memory that is free, from what the first one took."""
        device = self.conditionals.device
        taken = max(1, torch.cuda.max_memory_allocated(device) - before)
        free, _ = torch.cuda.mem_get_info(device)
        self.batch_tokens = int(min(CUDA_MOST_TOKENS, max(1024, tokens * free / (2 * taken))))
        self.measured = True

    def _send(self, *tensors: Tensor | None) -> list[Tensor]:
        """To the device: on CUDA all in one pinned piece, since each transfer costs the host more than its bytes do."""
        whole = [torch.empty(0, dtype=torch.long) if tensor is None else tensor for tensor in tensors]
        if self.on_cuda and len({tensor.dtype for tensor in whole}) == 1:
            flat = torch.cat([tensor.reshape(-1) for tensor in whole]).pin_memory()
            sizes = [tensor.numel() for tensor in whole]
            there = torch.split(flat.to(self.conditionals.device, non_blocking=True), sizes)
            return [part.view(tensor.shape) for part, tensor in zip(there, whole, strict=True)]
        return [tensor.to(self.conditionals.device) for tensor in whole]

    def _fetch(self, tensor: Tensor) -> Tensor:
        if self.on_cuda and tensor.is_cuda:  # into pinned memory: the host goes on while the device works
            host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            return host.copy_(tensor, non_blocking=True)
        return tensor.cpu()


class _Work:
    """What one run has waiting in buckets and in the air."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.pool = Pool(engine.conditionals.pads, engine.conditionals.vocabulary.pad_id or 0)
        self.flights: deque[_Flight] = deque()

    def add(self, asker: Asker[T], request: Request | None) -> None:
        """Queue a request; run buckets for as long as one of them fills a batch."""
        touched = [self.pool.put(asker, request)]
        while touched:
            key = touched.pop()
            bucket = self.pool.buckets.get(key) if key else None
            if key and bucket and bucket.load >= self.engine.batch_tokens:
                touched += self._run([key])

    def feed_device(self) -> None:
        """While CUDA has nothing to do and a batch's worth waits in several buckets, run the largest group of them."""
        while self._device_idles() and self.pool.load >= self.engine.batch_tokens:
            self._run(max(self.pool.together(self.engine.batch_tokens), key=self.pool.tokens))

    def _device_idles(self) -> bool:
        last = self.flights[-1].event if self.flights else None
        return self.engine.on_cuda and (last is None or bool(last.query()))  # type: ignore[no-untyped-call]

    def bring_forward(self, asker: Asker[T]) -> None:
        """Run the bucket this asker waits in, together with its neighbours if it starves."""
        for keys in self.pool.together(self.engine.batch_tokens):
            if asker.bucket in keys:
                self._run(keys)
        self._land(0)

    def finish(self) -> None:
        """Answer everything that waits, and everything that is asked because of it."""
        while self.pool.buckets or self.flights:
            for keys in self.pool.together(self.engine.batch_tokens):
                self._run([key for key in keys if key in self.pool.buckets])
            self._land(0)

    def _run(self, keys: list[Key]) -> list[Key | None]:
        if not keys:
            return []
        self.flights.append(self.engine.launch(self.pool.take(keys)))
        return self._land(IN_THE_AIR if self.engine.on_cuda else 0)

    def _land(self, in_the_air: int) -> list[Key | None]:
        """Hand out the answers of all but the last flights and queue what is asked next; return the buckets touched."""
        touched: list[Key | None] = []
        while len(self.flights) > in_the_air:
            group, parts, event = self.flights.popleft()
            if event is not None:
                event.synchronize()
            answers = {key: torch.cat([part[key] for part in parts]).numpy() for key in parts[0]}
            if any(values.dtype.kind == "f" and np.isnan(values).any() for values in answers.values()):
                network = self.engine.conditionals
                raise BesagError(
                    f"{network.name!r} answered with NaN in {network.dtype}: its weights are broken or overflow this "
                    "precision (try dtype='float32')"
                )
            touched += [self.pool.put(asker, request) for asker, request in group.hand_out(answers)]
        return touched


def _out_of_memory(failure: BaseException) -> bool:
    """torch says it differently on CUDA, MPS and the CPU."""
    text = str(failure).lower()
    return (
        isinstance(failure, torch.OutOfMemoryError | MemoryError) or "out of memory" in text or "can't allocate" in text
    )
