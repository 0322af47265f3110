"""What has been asked and not answered: it waits in buckets, or is on its way through the network.

Whoever runs plans holds one `Work`: an engine's `run` one for each call, a scheduler one for each model. Knows when a
bucket must run. Refuses to know in which order results are wanted, and what becomes of them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from besag.buckets import Asker, Group, Key, Pool, Request

if TYPE_CHECKING:
    from besag.engine import Engine

IN_THE_AIR = 2  # groups launched on CUDA whose answers are not fetched yet: the host prepares more while they run


class Flight(NamedTuple):
    """Batches launched on the device; `event` says when their answers have reached the host."""

    group: Group
    parts: list[dict[str, Tensor]]
    sound: list[Tensor]  # (m,) bool each: was it answered by numbers?
    event: torch.cuda.Event | None


class Work:
    """What waits in buckets and in the air for one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.pool = Pool(engine.conditionals.pads, engine.conditionals.vocabulary.pad_id or 0)
        self.flights: deque[Flight] = deque()
        self.tokens = 0  # that it has run, whatever others run meanwhile

    def add(self, asker: Asker[Any], request: Request | None) -> None:
        """Queue a request; run buckets for as long as one of them fills a batch."""
        touched = [self.pool.put(asker, request)]
        while touched:
            key = touched.pop()
            bucket = self.pool.buckets.get(key) if key else None
            if key and bucket and bucket.load >= self.engine.batch_tokens:
                touched += self._run([key])

    def feed_device(self) -> None:
        """While CUDA has nothing to do and a batch's worth waits in several buckets, run the largest group of them."""
        while not self.engine.steady and self._device_idles() and self.pool.load >= self.engine.batch_tokens:
            self._run(max(self.pool.together(self.engine.batch_tokens), key=self.pool.tokens))

    def _device_idles(self) -> bool:
        last = self.flights[-1].event if self.flights else None
        return self.engine.on_cuda and (last is None or bool(last.query()))  # type: ignore[no-untyped-call]

    def bring_forward(self, asker: Asker[Any]) -> None:
        """Run the bucket this asker waits in, together with its neighbours if it starves, and wait for its answers."""
        self.serve(asker)
        self._land(0)

    def serve(self, asker: Asker[Any]) -> None:
        """One group further: the one this asker waits in, or else what is in the air."""
        for keys in self.pool.together(self.engine.batch_tokens):
            if asker.bucket in keys:
                self._run(keys)
                return
        self._land(0)

    def finish(self) -> None:
        """Answer everything that waits, and everything that is asked because of it."""
        while self.pool.buckets or self.flights:
            for keys in self.pool.together(self.engine.batch_tokens):
                self._run([key for key in keys if key in self.pool.buckets])
            self._land(0)

    def launch(self, group: Group) -> list[Flight]:
        """Start a group on its way."""
        return [self.engine.launch(group)]

    def _run(self, keys: list[Key]) -> list[Key | None]:
        if not keys:
            return []
        group = self.pool.take(keys)
        self.tokens += int(group.lengths.sum())
        self.flights += self.launch(group)
        return self._land(IN_THE_AIR if self.engine.on_cuda else 0)

    def _land(self, in_the_air: int) -> list[Key | None]:
        """Hand out the answers of all but the last flights and queue what is asked next; return the buckets touched."""
        touched: list[Key | None] = []
        while len(self.flights) > in_the_air:
            group, parts, sounds, event = self.flights.popleft()
            if event is not None:
                event.synchronize()
            answers = {key: torch.cat([part[key] for part in parts]).numpy() for key in parts[0]}
            sound = torch.cat(sounds).numpy()
            for values in answers.values():
                if values.dtype.kind == "f" and np.isnan(values).any():
                    sound = sound & ~np.isnan(values.reshape(len(values), -1)).any(1)
            asked = group.hand_out(answers, sound, self.engine.not_finite())
            touched += [self.pool.put(asker, request) for asker, request in asked]
        return touched


def load_of(request: Request) -> int:
    """What a request weighs by itself: tokens through the network, or asks where these are more."""
    return max(request.ids.size, len(request.row))
