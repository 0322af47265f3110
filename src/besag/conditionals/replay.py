"""A network that is run on one shape again and again, as a chain does: on CUDA recorded once, then replayed.

Launching the some two hundred kernels of a small batch one by one takes the host longer than the device needs to run
them. A recorded graph is launched as one. Large batches gain nothing and would hold memory, so they run as ever; so
does whatever cannot be recorded. The numbers are the same: the same kernels run. For that a network must not know
that it is recorded: transformers would then give attention a mask of ones, which no fast kernel takes. What was made
of sources is an input like the ids, so a chain on one batch of sources is replayed as any other.

A replay writes where the last one wrote, so only one caller at a time may run it and copy from it (`besag.batches`).
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias
from unittest.mock import patch

import torch
from torch import Tensor

from besag.conditionals.contract import NOTHING, SOURCE_MASK, SOURCE_STATES
from besag.conditionals.split import Reader

log = logging.getLogger(__name__)

MOST_TOKENS = 16_384  # of a batch: beyond, the device is busy enough
OFTEN = 3  # runs of a shape before it is recorded: recording costs as much as several runs
KEPT = 8  # shapes
RECORDED = {SOURCE_STATES, SOURCE_MASK}  # of a context; with anything else it runs as ever

Shape: TypeAlias = tuple[tuple[str, torch.dtype, tuple[int, ...]], ...]


class _Graph(NamedTuple):
    graph: torch.cuda.CUDAGraph
    inputs: dict[str, Tensor]  # where it reads: "ids" (N, L), and what goes with them
    states: Tensor  # (N, L, H) where it writes: the next replay writes there again, so whoever keeps them copies them


class Replay:
    """Runs `read`, recorded where that pays."""

    def __init__(self, read: Reader) -> None:
        self.read = read
        self.graphs: OrderedDict[Shape, _Graph] = OrderedDict()
        self.runs: Counter[Shape] = Counter()
        self.impossible: set[frozenset[str]] = set()  # what goes with the ids where they cannot be recorded

    def __call__(self, ids: Tensor, context: Mapping[str, Tensor] = NOTHING) -> Tensor:  # (N, L) -> (N, L, H)
        if not self.worth(ids, context):
            return self.read(ids, context)
        inputs = {"ids": ids, **context}
        shape = tuple((name, value.dtype, tuple(value.shape)) for name, value in inputs.items())
        found = self.graphs.get(shape)
        if found is None:
            self.runs[shape] += 1
            found = self._record(inputs) if self.runs[shape] > OFTEN else None
            if found is None:
                return self.read(ids, context)
            self.graphs[shape] = found
            if len(self.graphs) > KEPT:
                oldest, _ = self.graphs.popitem(last=False)
                del self.runs[oldest]
        self.graphs.move_to_end(shape)
        for name, value in inputs.items():
            found.inputs[name].copy_(value)
        found.graph.replay()
        return found.states

    def worth(self, ids: Tensor, context: Mapping[str, Tensor]) -> bool:
        """Can it be recorded, as far as is known, and is it so small that this pays?"""
        if not ids.is_cuda or not context.keys() <= RECORDED or frozenset(context) in self.impossible:
            return False
        tokens = ids.numel() + (context[SOURCE_STATES].shape[:2].numel() if context else 0)
        return tokens <= MOST_TOKENS and not torch.is_grad_enabled()

    def _record(self, inputs: Mapping[str, Tensor]) -> _Graph | None:
        static = {name: value.clone(memory_format=torch.contiguous_format) for name, value in inputs.items()}
        try:
            return _Graph(*self.capture(static))
        except RuntimeError as trip:  # something in it waits for the device, which cannot be recorded
            log.info("this network is not replayed: %r", trip)
            self.impossible.add(frozenset(inputs) - {"ids"})
            return None

    def capture(self, static: dict[str, Tensor]) -> tuple[torch.cuda.CUDAGraph, dict[str, Tensor], Tensor]:
        """A graph that reads from `static` and nowhere else, and where it writes."""
        graph, ids = torch.cuda.CUDAGraph(), static["ids"]
        context = {name: value for name, value in static.items() if name != "ids"}
        with (
            torch.cuda.graph(graph, capture_error_mode="thread_local"),  # what other threads do breaks no recording
            patch("torch.cuda.is_current_stream_capturing", return_value=False),
        ):
            states = self.read(ids, context)
        return graph, static, states
