"""Processes that help this one and leave signals to it.

Ctrl-C, and a cluster's SIGTERM, go to all processes at once: the one that trains ends after its step, and ends them.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def begun_deaf() -> Iterator[None]:
    """What is begun inside hears no signal from its first moment; one that comes meanwhile is heard here, afterwards.

    A process that turned deaf by itself would be killed by a signal that comes before it could.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows: nothing is inherited there, see `turn_deaf`
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def turn_deaf(worker: int = 0) -> None:
    """In the process itself, where it may not have been begun so."""
    for one in SIGNALS:
        signal.signal(one, signal.SIG_IGN)
