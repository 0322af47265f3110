"""Ctrl-C while a network is trained: the step is finished and a checkpoint written, before anything ends.

Knows signals. Refuses to know what is running: a run asks `stop()` at every step.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Stop:
    """Ctrl-C during training: end after this step. Before training begins, and the second time, it ends at once."""

    def __init__(self) -> None:
        self._training = self._asked = False

    def __call__(self) -> bool:
        self._training = True
        return self._asked

    def arrived(self, number: int, frame: object) -> None:
        if not self._training or self._asked:
            raise KeyboardInterrupt
        self._asked = True
        print("\nending after this step, with a checkpoint (Ctrl-C again: at once)", file=sys.stderr)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Ctrl-C is taken by a `Stop` for as long as this lasts."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread only
        yield stop
        return
    before = signal.signal(signal.SIGINT, stop.arrived)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
