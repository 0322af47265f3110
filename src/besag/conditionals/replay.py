"""A network that is run on one shape again and again, as a chain does: on CUDA recorded once, then replayed.

Launching the some two hundred kernels of a small batch one by one takes the host longer than the device needs to run
them. A recorded graph is launched as one. Large batches gain nothing and would hold memory, so they run as ever; so
does whatever cannot be recorded. The numbers are the same: the same kernels run. For that a network must not know
that it is recorded: transformers would then give attention a mask of ones, which no fast kernel takes. What was made
of sources is an input like the ids, so a chain on one batch of sources is replayed as any other.

Sources that come one at a time seldom have the shape of the last: recorded as they are, each would be recorded anew and
thrown away. So whoever may be padded is: ids and sources to a multiple of `STEP` tokens, beside masks that say so. Then
some dozens of shapes are all there are.

A replay writes where the last one wrote, so only one caller at a time may run it and copy from it (`besag.batches`).
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn.functional import pad

from besag.conditionals.contract import NOTHING, SOURCE_MASK, SOURCE_STATES
from besag.conditionals.split import Reader

log = logging.getLogger(__name__)

MOST_TOKENS = 16_384  # of a batch: beyond, the device is busy enough
OFTEN = 3  # runs of a shape before it is recorded: recording costs as much as several runs
KEPT = 64  # shapes; they share one memory but for what they read and write
STEP = 8  # tokens: lengths are padded to its multiples
SHOWN = "attention_mask"
RECORDED = {SOURCE_STATES, SOURCE_MASK}  # of a context; with anything else it runs as ever

Shape: TypeAlias = tuple[tuple[str, torch.dtype, tuple[int, ...]], ...]


class _Graph(NamedTuple):
    graph: torch.cuda.CUDAGraph
    inputs: dict[str, Tensor]  # where it reads: "ids" (N, L), and what goes with them
    states: Tensor  # (N, L, H) where it writes: the next replay writes there again, so whoever keeps them copies them


class Replay:
    """Runs `read`, recorded where that pays; padded by `pad_id`, if any, up to `most` tokens."""

    def __init__(self, read: Reader, pad_id: int | None = None, most: int | None = None) -> None:
        self.read, self.pad_id, self.most = read, pad_id, most
        self.recorded = RECORDED if pad_id is None else {*RECORDED, SHOWN}
        self.pool: Any = None  # the memory of all graphs: one runs at a time
        self.graphs: OrderedDict[Shape, _Graph] = OrderedDict()
        self.runs: Counter[Shape] = Counter()
        self.impossible: set[frozenset[str]] = set()  # what goes with the ids where they cannot be recorded
        self.done: Counter[str] = Counter()  # how often it was replayed, recorded, or launched kernel by kernel

    def __call__(self, ids: Tensor, context: Mapping[str, Tensor] = NOTHING) -> Tensor:  # (N, L) -> (N, L, H)
        if not self.worth(ids, context):
            return self._launched(ids, context)
        inputs = {"ids": ids, **context} if self.pad_id is None else self.padded(ids, context)
        shape = tuple((name, value.dtype, tuple(value.shape)) for name, value in inputs.items())
        found = self.graphs.get(shape)
        if found is None:
            self.runs[shape] += 1
            found = self._record(inputs, frozenset(context)) if self.runs[shape] > OFTEN else None
            if found is None:  # padded as well: what is recorded later is what has been run
                return self._launched(inputs.pop("ids"), inputs)
            self.graphs[shape] = found
            if len(self.graphs) > KEPT:
                oldest, _ = self.graphs.popitem(last=False)
                del self.runs[oldest]
        self.graphs.move_to_end(shape)
        for name, value in inputs.items():
            found.inputs[name].copy_(value)
        found.graph.replay()
        self.done["replayed"] += 1
        return found.states

    def _launched(self, ids: Tensor, context: Mapping[str, Tensor]) -> Tensor:
        self.done["launched"] += 1
        return self.read(ids, context)

    def padded(self, ids: Tensor, context: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The same in one of few shapes; states beyond the ids mean nothing."""
        assert self.pad_id is not None
        length = ids.shape[1]
        more = min(-length % STEP, max(0, (self.most or length + STEP) - length))
        shown = context[SHOWN] if SHOWN in context else torch.ones_like(ids)
        found = {"ids": pad(ids, (0, more), value=self.pad_id), SHOWN: pad(shown, (0, more))}
        if SOURCE_STATES in context:
            states = context[SOURCE_STATES]  # (N, S, H)
            source = context[SOURCE_MASK] if SOURCE_MASK in context else ids.new_ones(states.shape[:2])
            beyond = -states.shape[1] % STEP
            found |= {SOURCE_STATES: pad(states, (0, 0, 0, beyond)), SOURCE_MASK: pad(source, (0, beyond))}
        return found

    def worth(self, ids: Tensor, context: Mapping[str, Tensor]) -> bool:
        """Can it be recorded, as far as is known, and is it so small that this pays?"""
        if not ids.is_cuda or not context.keys() <= self.recorded or frozenset(context) in self.impossible:
            return False
        tokens = ids.numel() + (context[SOURCE_STATES].shape[:2].numel() if SOURCE_STATES in context else 0)
        return tokens <= MOST_TOKENS and not torch.is_grad_enabled()

    def _record(self, inputs: Mapping[str, Tensor], kind: frozenset[str]) -> _Graph | None:
        static = {name: value.clone(memory_format=torch.contiguous_format) for name, value in inputs.items()}
        try:
            found = _Graph(*self.capture(static))
            self.done["recorded"] += 1
            return found
        except torch.OutOfMemoryError as full:  # there may be room later: after as many runs it is tried again
            log.info("no memory to record a network: %r", full)
            self.runs = Counter()
            return None
        except RuntimeError as trip:  # something in it waits for the device, which cannot be recorded
            log.info("this network is not replayed: %r", trip)
            self.impossible.add(kind)
            return None

    def capture(self, static: dict[str, Tensor]) -> tuple[torch.cuda.CUDAGraph, dict[str, Tensor], Tensor]:
        """A graph that reads from `static` and nowhere else, and where it writes."""
        graph, ids = torch.cuda.CUDAGraph(), static["ids"]
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        context = {name: value for name, value in static.items() if name != "ids"}
        with (
            torch.cuda.graph(graph, self.pool, capture_error_mode="thread_local"),  # other threads break no recording
            patch("torch.cuda.is_current_stream_capturing", return_value=False),
        ):
            states = self.read(ids, context)
        return graph, static, states
