"""Who is let in: what waits is what was admitted and not given back, and never more than may."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.admission import Busy, Late, Queue, Stopped, TooLarge

MOST = 20


@given(st.lists(st.tuples(st.integers(0, 25), st.booleans()), max_size=40))
def test_what_waits_is_what_was_admitted_and_not_given_back(callers):
    queue, held = Queue(MOST), []
    for tokens, leaves in callers:
        try:
            held.append(queue.admit(tokens))
        except TooLarge:
            assert tokens > MOST
        except Busy:
            assert tokens
            assert sum(one.tokens for one in held) + tokens > MOST
        if leaves and held:
            held[0].give_back()
            held.pop(0).give_back()  # a second time counts for nothing
        assert queue.waiting == sum(one.tokens for one in held) <= MOST


def test_how_long_to_wait_is_told_by_how_fast_the_queue_has_moved(monkeypatch):
    now = 100.0
    monkeypatch.setattr("besag.admission.time.monotonic", lambda: now)
    queue = Queue(MOST)
    ticket = queue.admit(10)
    now = 140.0
    ticket.give_back()  # 10 tokens in 40 s
    queue.admit(18)
    with pytest.raises(Busy, match="18 tokens wait already: try again in 20 s"):
        queue.admit(7)  # 5 must go first


def test_a_ticket_says_why_nothing_more_is_done_for_it():
    queue = Queue(MOST)
    with queue.admit(1, seconds=100) as one, queue.admit(1, seconds=-1) as late:
        one.check()
        with pytest.raises(Late, match="not done within"):
            late.check()
        one.cancel()
        with pytest.raises(Stopped, match="cancelled"):
            one.check()
    assert queue.waiting == 0


def test_a_queue_that_closes_takes_nothing_more():
    queue = Queue(MOST)
    queue.closing = True
    with pytest.raises(Stopped, match="closed"):
        queue.admit(0)
