"""Questions through the network in batches: the only place that knows about devices and memory.

Sequences are cut into even batches near a budget of tokens, their asked rows pass through the head in chunks of a fixed
size, and what is kept of a chunk stays on the device until somebody fetches it. The budget on CUDA is found from what a
first batch takes; wherever memory runs out, batches are halved.

One network answers one batch at a time, whoever asks: a recorded graph writes into the same memory at each replay. So
every batch runs behind a lock, from the forward pass until what is kept of it is a copy of its own. Nobody holds it
between two batches: an iterator that waits for its reader, or is never read on, stands in nobody's way.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from besag.arrays import Ints
from besag.checks import whole_number
from besag.conditionals.contract import Conditionals, Given, Questions
from besag.errors import BesagError, TooLong, out_of_memory
from besag.hardware import send
from besag.reductions import Chunk, Reduction
from besag.sources import Sources, longest

T = TypeVar("T")

CPU_TOKENS = 4096  # larger batches fall out of the cache without running faster
CUDA_FIRST_TOKENS, CUDA_MOST_TOKENS = 16_384, 131_072  # the first batch measures memory; past the last nothing is won
HEAD_BYTES = {"cpu": 2**26, "cuda": 2**30, "mps": 2**28}  # logits in memory at a time

MOST_BATCH_TOKENS = 2**31  # beyond, no index of torch would reach

_PROCESS = threading.RLock()
_LOCKS: WeakKeyDictionary[object, threading.RLock] = WeakKeyDictionary()


class NotFinite(BesagError):
    """A model whose answer is no number: NaN, or a logit of +∞ beside which nothing is left for other tokens."""


def lock_of(conditionals: Conditionals) -> threading.RLock:
    """The lock of the network that answers, shared by all who ask it.

    On CUDA it is one for the process: which attention kernels may run, how float32 is multiplied and that a graph is
    being recorded are settings of the process, and the device runs one batch after the other anyway.
    """
    if conditionals.device.type == "cuda":
        return _PROCESS
    with _PROCESS:
        try:
            return _LOCKS.setdefault(getattr(conditionals, "model", conditionals), threading.RLock())
        except TypeError:  # what cannot be a key
            return _PROCESS


class Batches:
    """Runs questions on one `Conditionals`. `batch_tokens` fixes the budget of a batch; otherwise it is found."""

    def __init__(self, conditionals: Conditionals, batch_tokens: int | None = None) -> None:
        if batch_tokens is not None:
            batch_tokens = whole_number(batch_tokens, "batch_tokens", most=MOST_BATCH_TOKENS)
        self.conditionals = conditionals
        self.on_cuda = conditionals.device.type == "cuda"
        self.batch_tokens = batch_tokens or (CUDA_FIRST_TOKENS if self.on_cuda else CPU_TOKENS)
        self.measured = batch_tokens is not None or not self.on_cuda
        self.tokens_run = 0  # through the network, padding included
        self.sources = Sources(conditionals)
        self.source: Ints | None = None  # of all questions that name none of their own

    def with_source(self, questions: Questions) -> Questions:
        """The same, given the source for all where they name none of their own."""
        if questions.given is not None or self.source is None:
            return questions
        return questions._replace(given=Given.one(self.source, len(questions.ids)))

    def in_batches(
        self, lengths: NDArray[np.int64], run: Callable[[int, int], None], given: Given | None = None
    ) -> None:
        """Run sequences, longest first, in even batches near the budget; smaller ones where memory runs out."""
        start = 0
        lengths = lengths + longest(given)  # a source is looked at from every place
        while start < len(lengths):
            start = self.in_turn(partial(self._batch, lengths, start, run))

    def check_wanted(self) -> None:
        """Raise where nothing waits for the answer any more. An engine of one caller is always wanted."""

    def in_turn(self, batch: Callable[[], T]) -> T:
        """Run a batch when the network is free."""
        with lock_of(self.conditionals):
            return batch()

    def _batch(self, lengths: NDArray[np.int64], start: int, run: Callable[[int, int], None]) -> int:
        """Run a batch from `start` on and say where the next begins: there again, with less in it, if memory is out."""
        count, length = len(lengths), int(lengths[start])
        batches = max(1, round((count - start) * length / self.batch_tokens))
        stop = start + -(-(count - start) // batches)
        try:
            run(start, stop)
            return stop
        except (RuntimeError, MemoryError) as failure:
            if not out_of_memory(failure):
                raise
            if stop - start == 1:
                raise BesagError(
                    f"one sequence of {length} tokens does not fit the memory of {self.conditionals.device}; "
                    "use a smaller model, a lower precision or another device"
                ) from failure
        self.batch_tokens, self.measured = (stop - start) // 2 * length, True
        if self.on_cuda:
            torch.cuda.empty_cache()  # here, where the failure no longer holds on to what it was made of
        return start

    @torch.inference_mode()
    def forward(
        self, asked: Questions, reduce: tuple[Reduction, ...], start: int, stop: int, length: int
    ) -> Iterator[tuple[slice, dict[str, Tensor], Tensor]]:
        """Sequences start … stop through the network, their asked rows through the head in chunks of asks.

        Yields which asks these are, what is kept of them, and whether each was answered with numbers, (m,) bool.
        """
        network = self.conditionals
        if network.max_length is not None and length > network.max_length:
            raise TooLong(
                f"a sequence of {length:,} tokens was asked, and {network.name!r} sees {network.max_length:,} at a "
                "time: give a shorter text"
            )
        first, last = np.searchsorted(asked.row.numpy(), [start, stop]).tolist()
        if first == last:
            return  # nobody asks about them
        tokens = (stop - start) * (length + longest(asked.given))
        measures = not self.measured and tokens >= self.batch_tokens / 2  # few tokens tell nothing
        if measures:
            torch.cuda.reset_peak_memory_stats(network.device)
        before = torch.cuda.memory_allocated(network.device) if measures else 0
        places = asked.row[first:last] * length + asked.place[first:last]
        distinct, which = torch.unique_consecutive(places, return_inverse=True)  # several asks may share one place
        context = {key: value[start:stop] for key, value in asked.context.items()}
        if "attention_mask" in context:
            context["attention_mask"] = context["attention_mask"][:, :length]
        target = None if asked.target is None else asked.target[first:last]
        ids, row, place, look, aim = self._send(
            asked.ids[start:stop, :length], distinct // length - start, distinct % length, which, target
        )
        sent = dict(zip(context, self._send(*context.values()), strict=True))
        sent |= self.sources.context(asked.given, start, stop, self.batch_tokens)
        rows = network.rows(Questions(ids=ids, row=row, place=place, context=sent))  # (M', H)
        self.tokens_run += (stop - start) * length
        step = max(1, HEAD_BYTES[network.device.type] // (4 * network.width))
        for at in range(0, last - first, step):
            ask = slice(at, min(at + step, last - first))
            low, high = int(which[ask.start]), int(which[ask.stop - 1]) + 1
            logits = network.head(rows[low:high])  # (h, V)
            logits = logits if logits.dtype == torch.float64 else logits.float()
            normaliser = torch.logsumexp(logits, -1)  # NaN or +∞ exactly where a logit is; −∞ where nothing is possible
            chunk = Chunk(
                logits=logits,
                normaliser=normaliser,
                which=look[ask] - low,
                target=None if target is None else aim[ask],
                uniform=None if asked.uniform is None else asked.uniform[first:last][ask],
                rows=rows[low:high],
                asks=slice(first + ask.start, first + ask.stop),
            )
            kept = {key: value for reduction in reduce for key, value in reduction(chunk).items()}
            yield chunk.asks, kept, chunk.per_ask(normaliser < math.inf)
        if measures:
            self._measure(tokens, before)

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
        here = [tensor for tensor in whole if not tensor.is_cuda]
        if self.on_cuda and len({tensor.dtype for tensor in here}) == 1:
            flat = send(torch.cat([tensor.reshape(-1) for tensor in here]), self.conditionals.device)
            there = torch.split(flat, [tensor.numel() for tensor in here])
            sent = iter(part.view(tensor.shape) for part, tensor in zip(there, here, strict=True))
            whole = [tensor if tensor.is_cuda else next(sent) for tensor in whole]
        return [send(tensor, self.conditionals.device) for tensor in whole]

    def fetch(self, tensor: Tensor) -> Tensor:
        """On the way to the host; on CUDA it has arrived once the device has done what was launched before."""
        if self.on_cuda and tensor.is_cuda:  # into pinned memory: the host goes on while the device works
            host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            return host.copy_(tensor, non_blocking=True)
        return tensor.cpu()

    def not_finite(self) -> NotFinite:
        network = self.conditionals
        return NotFinite(
            f"{network.name!r} answered with NaN or infinity in {network.dtype}: its weights are broken or overflow "
            "this precision (try dtype='float32')"
        )
