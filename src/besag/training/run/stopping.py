"""Ctrl-C, SIGTERM or the end of a sitting while a network is trained: the step is finished and a checkpoint written,
before anything ends.

Knows signals and the clock. Refuses to know what is running: a run asks `stop()` at every step.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)  # the second is how services and clusters end a process


class Stop:
    """A signal during training: end after this step. Before training begins, and the second time, it ends at once.

    After so many minutes from now, everything counted, it says stop by itself.
    """

    def __init__(self, minutes: float | None = None) -> None:
        self.until = None if minutes is None else time.monotonic() + 60 * minutes
        self.signal: int | None = None  # that ended the training
        self.before: dict[int, Any] = {}  # who took the signals
        self._training, self._process = False, os.getpid()

    def __call__(self) -> bool:
        self._training = True
        return self.signal is not None or (self.until is not None and time.monotonic() >= self.until)

    def arrived(self, number: int, frame: object) -> None:
        if os.getpid() != self._process or not self._training or self.signal is not None:
            self._at_once(number, frame)
            return
        self.signal = number
        print("\nending after this step, with a checkpoint (Ctrl-C again: at once)", file=sys.stderr)

    def _at_once(self, number: int, frame: object) -> None:
        """As if nobody had waited for the signal here, in this process or in one that was split off from it."""
        before = self.before.get(number, signal.default_int_handler)
        if callable(before):
            before(number, frame)
            return
        signal.signal(number, before)
        signal.raise_signal(number)


@contextmanager
def stoppable(minutes: float | None = None) -> Iterator[Stop]:
    """Ctrl-C and SIGTERM are taken by a `Stop` for as long as this lasts; what was ignored stays so."""
    stop = Stop(minutes)
    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread only
        yield stop
        return
    for one in SIGNALS:
        if signal.getsignal(one) not in (signal.SIG_IGN, None):
            stop.before[one] = signal.signal(one, stop.arrived)
    try:
        yield stop
    finally:
        for number, handler in stop.before.items():
            signal.signal(number, handler)
