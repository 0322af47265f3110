"""The models of a server: known by name, loaded when first asked for, several at once as far as memory goes.

Where one more does not fit the budget, that which nobody asks and was asked longest ago is put away. Models of one
device share a scheduler, and with it a queue.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from besag.admission import QUEUE_TOKENS, Busy, Stopped
from besag.errors import BesagError, nearest, quoted
from besag.language_model import LanguageModel
from besag.scheduler import Scheduler

Loader = Callable[[], LanguageModel]


class UnknownModel(BesagError):
    """No model of this name is served."""


class _Volume:
    def __init__(self, name: str, load: Loader) -> None:
        self.name, self.load = name, load
        self.lm: LanguageModel | None = None
        self.bytes = self.readers = 0
        self.asked = 0.0


class Shelf:
    """`loaders`: a name and how its model is loaded; the first is meant where nobody says which."""

    def __init__(
        self, loaders: Mapping[str, Loader], memory: float = math.inf, queue_tokens: int = QUEUE_TOKENS
    ) -> None:
        self.memory, self.queue_tokens = memory, queue_tokens
        self.default = next(iter(loaders))
        self.schedulers: dict[str, Scheduler] = {}
        self._volumes = {name: _Volume(name, load) for name, load in loaders.items()}
        self._lock, self._loading = threading.Lock(), threading.Lock()
        self._closed = False

    @property
    def names(self) -> list[str]:
        return list(self._volumes)

    def loaded(self, name: str) -> LanguageModel | None:
        return self._volumes[name].lm

    def known(self, name: str | None) -> tuple[str, str | None]:
        """The model, and the method where the name says one: "small-en:pll"."""
        if name is None or name in self._volumes:
            return name or self.default, None
        model, _, method = name.rpartition(":")
        if model not in self._volumes:
            guess = nearest(name, self._volumes)
            raise UnknownModel(f"no model {quoted(name)} is served here.{guess} There are: {', '.join(self._volumes)}")
        return model, method

    def plain(self, name: str | None) -> str:
        """The model, where a method has a field of its own."""
        model, method = self.known(name)
        if method is not None:
            raise BesagError(f"{quoted(name)} names a method beside the model: here `method` says it")
        return model

    @contextmanager
    def borrowed(self, name: str) -> Iterator[tuple[LanguageModel, Scheduler]]:
        """A model that stays as long as it is asked, loaded if it is not there, and the scheduler of its device."""
        volume = self._volumes[name]
        with self._lock:
            volume.readers += 1
        try:
            if (lm := volume.lm) is None:
                lm = self._loaded(volume)
            volume.asked = time.monotonic()
            yield lm, self._scheduler(lm)
        finally:
            with self._lock:
                volume.readers -= 1

    def _loaded(self, volume: _Volume) -> LanguageModel:
        """Room is made before, as far as it is known what the model takes, and after.

        One is loaded at a time, since what others will take is not known yet.
        """
        with self._loading:
            if (lm := volume.lm) is None:
                self._make_room(volume)
                lm = volume.load()
                volume.bytes = size(lm)
                self._make_room(volume)
                volume.lm = lm
            return lm

    def _make_room(self, volume: _Volume) -> None:
        if volume.bytes > self.memory:
            raise BesagError(
                f"{quoted(volume.name)} takes {volume.bytes:,} bytes, and models may take {self.memory:,.0f}: serve it "
                "with more (--memory)"
            )
        with self._lock:
            here = [one for one in self._volumes.values() if one.lm is not None]
            over = sum(one.bytes for one in here) + volume.bytes - self.memory
            for old in sorted(here, key=lambda one: one.asked):
                if over > 0 and not old.readers:
                    self._put_away(old)
                    over -= old.bytes
        if over > 0:
            raise Busy("the models in memory are all being asked, and this one does not fit beside them", 5)

    def _put_away(self, volume: _Volume) -> None:
        if volume.lm is not None:
            scheduler = self.schedulers.get(str(volume.lm.conditionals.device))
            if scheduler is not None:
                scheduler.forget(volume.lm.engine)
            volume.lm = None

    def _scheduler(self, lm: LanguageModel) -> Scheduler:
        device = str(lm.conditionals.device)
        with self._lock:
            if self._closed:
                raise Stopped("the server is shutting down")
            if device not in self.schedulers:
                self.schedulers[device] = Scheduler(self.queue_tokens, f"besag-{device}")
            return self.schedulers[device]

    def close(self, seconds: float) -> bool:
        """Finish what was accepted, and take nothing more. Was all of it done in time?"""
        with self._lock:
            self._closed = True
            schedulers = list(self.schedulers.values())
        end = time.monotonic() + seconds
        done = [scheduler.close(seconds=max(0.0, end - time.monotonic())) for scheduler in schedulers]
        for scheduler in schedulers:
            scheduler.close(drain=False, seconds=1)
        return all(done)


def size(lm: LanguageModel) -> int:
    """Bytes of its weights; an exact law has none to speak of."""
    network: Any = lm.model
    if not hasattr(network, "parameters"):
        return 0
    return sum(one.nbytes for part in (network.parameters(), network.buffers()) for one in part)
