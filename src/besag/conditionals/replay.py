"""A network that is run on one shape again and again, as a chain does: on CUDA recorded once, then replayed.

Launching the some two hundred kernels of a small batch one by one takes the host longer than the device needs to run
them. A recorded graph is launched as one. Large batches gain nothing and would hold memory, so they run as ever; so
does whatever cannot be recorded. The numbers are the same: the same kernels run. For that a network must not know
that it is recorded: transformers would then give attention a mask of ones, which no fast kernel takes.

A replay writes where the last one wrote, so only one caller at a time may run it and copy from it (`besag.batches`).
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor

from besag.conditionals.contract import NOTHING
from besag.conditionals.split import Reader

log = logging.getLogger(__name__)

MOST_TOKENS = 16_384  # of a batch: beyond, the device is busy enough
OFTEN = 3  # runs of a shape before it is recorded: recording costs as much as several runs
KEPT = 8  # shapes


class _Graph(NamedTuple):
    graph: torch.cuda.CUDAGraph
    ids: Tensor  # (N, L) where it reads
    states: Tensor  # (N, L, H) where it writes: the next replay writes there again, so whoever keeps them copies them


class Replay:
    """Runs `read`, recorded where that pays."""

    def __init__(self, read: Reader) -> None:
        self.read = read
        self.graphs: OrderedDict[tuple[int, ...], _Graph] = OrderedDict()
        self.runs: Counter[tuple[int, ...]] = Counter()
        self.possible = True

    def __call__(self, ids: Tensor, context: Mapping[str, Tensor] = NOTHING) -> Tensor:  # (N, L) -> (N, L, H)
        if context or not ids.is_cuda or ids.numel() > MOST_TOKENS or torch.is_grad_enabled() or not self.possible:
            return self.read(ids, context)
        shape = tuple(ids.shape)
        found = self.graphs.get(shape)
        if found is None:
            self.runs[shape] += 1
            found = self._record(ids) if self.runs[shape] > OFTEN else None
            if found is None:
                return self.read(ids)
            self.graphs[shape] = found
            if len(self.graphs) > KEPT:
                oldest, _ = self.graphs.popitem(last=False)
                del self.runs[oldest]
        self.graphs.move_to_end(shape)
        found.ids.copy_(ids)
        found.graph.replay()
        return found.states

    def _record(self, ids: Tensor) -> _Graph | None:
        graph, static = torch.cuda.CUDAGraph(), ids.clone()
        try:
            with (
                torch.cuda.graph(graph, capture_error_mode="thread_local"),  # what other threads do breaks no recording
                patch("torch.cuda.is_current_stream_capturing", return_value=False),
            ):
                states = self.read(static)
        except RuntimeError as trip:  # something in it waits for the device, which cannot be recorded
            log.info("this network is not replayed: %r", trip)
            self.possible = False
            return None
        return _Graph(graph, static, states)
