"""Processes begun deaf live on where a signal goes to all; the one that began them hears it, once they have begun."""

import multiprocessing
import os
import signal
import time

import pytest

from besag.training.data.children import SIGNALS, begun_deaf


@pytest.mark.parametrize("number", SIGNALS)
def test_a_child_lives_through_a_signal_that_comes_before_it_has_done_anything(number: int) -> None:
    context = multiprocessing.get_context("fork")
    heard, told = context.Pipe()
    child = context.Process(target=lambda: (time.sleep(0.3), told.send("lives")), daemon=True)
    with begun_deaf():
        child.start()
    assert child.pid is not None
    os.kill(child.pid, number)
    assert heard.poll(20)
    assert heard.recv() == "lives"
    child.join(20)
    assert child.exitcode == 0


def test_a_signal_that_comes_meanwhile_is_heard_afterwards() -> None:
    arrived: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: arrived.append(number))
    try:
        with begun_deaf():
            signal.raise_signal(signal.SIGINT)  # to this thread: another one may take what is sent to all of them
            assert arrived == []
        assert arrived == [signal.SIGINT]
        signal.raise_signal(signal.SIGINT)
        assert len(arrived) == 2
    finally:
        signal.signal(signal.SIGINT, before)
