"""Ctrl-C during a run. What it does to a whole run is tested with the command (tests/cli/test_train.py)."""

from __future__ import annotations

import signal
import threading

import pytest

from besag.training.run.stopping import Stop, stoppable


def test_before_the_first_step_and_the_second_time_ctrl_c_is_not_held_back() -> None:
    stop = Stop()
    with pytest.raises(KeyboardInterrupt):
        stop.arrived(2, None)
    assert not stop()
    stop.arrived(2, None)
    assert stop()
    with pytest.raises(KeyboardInterrupt):
        stop.arrived(2, None)


def test_a_sitting_ends_by_the_clock_and_a_signal_still_counts() -> None:
    assert not Stop(minutes=60)()
    stop = Stop(minutes=0)
    assert stop()
    assert stop.signal is None
    with stoppable(60) as later:
        assert not later()
        later.arrived(15, None)
        assert later()
        assert later.signal == 15


def test_the_signal_is_taken_and_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stoppable() as stop:
        assert signal.getsignal(signal.SIGINT) == stop.arrived
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_has_no_signals_and_is_not_in_the_way() -> None:
    before, found = signal.getsignal(signal.SIGINT), []

    def run() -> None:
        with stoppable() as stop:
            found.extend([stop(), signal.getsignal(signal.SIGINT)])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [False, before]
