"""Plans of many callers in one thread: the numbers of `Engine.run`, no future lost or told twice, failures alone."""

import contextlib
import copy
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws import Arbitrary, Counting, Held
from tests.networks import tiny, vocabulary

import besag
from besag.admission import Busy, Late, Stopped, Ticket, TooLarge
from besag.asking import Asking
from besag.conditionals.given_table import GivenTable
from besag.conditionals.table import Table
from besag.engine import IDLE, Engine, Plan, Request
from besag.errors import BesagError
from besag.language_model import LanguageModel
from besag.reductions import Row, Target
from besag.scheduler import Scheduler


@pytest.fixture
def scheduler():
    one = Scheduler()
    yield one
    one.close(drain=False, seconds=10)


def asks(seed: int, rounds: int = 2, length: int = 3, width: int = 3) -> Plan[list[float]]:
    """Asks about a text, then about another that the first answer chooses: a plan of several rounds."""
    chance = np.random.default_rng(seed)
    found: list[float] = []
    for _ in range(rounds):
        ids = chance.integers(0, width - 1, (2, length))
        place = chance.integers(0, length, 2)
        ids[[0, 1], place] = width
        answers = yield Request((Target(), Row()), ids, np.array([0, 1]), place, chance.integers(0, width, 2))
        found += answers["target"].tolist()
        chance = np.random.default_rng(int(answers["row"].argmax()) + seed)
    return found


def fails(when: int) -> Plan[list[float]]:
    plan = asks(when)
    answers = yield next(plan)
    if when >= 0:
        raise KeyError("a plan of its own")
    return [answers]


class Picky(Arbitrary):
    """Refuses every batch in which some sequence begins with 2."""

    def rows(self, questions):
        if bool((questions.ids[:, 0] == 2).any()):
            raise RuntimeError("shape mismatch")
        return super().rows(questions)


def refused() -> Plan[object]:
    return (yield Request((Target(), Row()), np.array([[2, 1, 3]]), np.array([0]), np.array([2]), np.array([1])))


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.sampled_from(["ask", "fail", "refused", "cancel"])), max_size=25),
    st.integers(1, 4),
    st.integers(8, 200),
)
def test_every_plan_has_the_numbers_of_run_whatever_else_is_submitted(wanted, threads, batch_tokens):
    law = Picky()
    engine, alone = Engine(law, batch_tokens=batch_tokens), Engine(Arbitrary())
    scheduler, told = Scheduler(), []

    def submit(one):
        seed, kind = one
        plan = {"fail": fails, "refused": lambda _: refused()}.get(kind, lambda n: asks(n, length=1 + n % 4))(seed)
        future = scheduler.submit(engine, plan)
        future.add_done_callback(lambda _: told.append(one))
        if kind == "cancel":
            future.cancel()
        return future

    with ThreadPoolExecutor(threads) as pool:
        futures = list(pool.map(submit, wanted))
    assert scheduler.close(seconds=20)
    assert len(told) == len(wanted)  # each once
    for (seed, kind), future in zip(wanted, futures, strict=True):
        assert future.done()
        if kind == "fail":
            assert isinstance(future.exception(), KeyError)
        elif kind == "refused":
            assert isinstance(future.exception(), RuntimeError)
        elif not future.cancelled():
            [expected] = alone.run([asks(seed, length=1 + seed % 4)])
            assert future.result() == expected
    assert scheduler.waiting == 0


def test_requests_of_all_callers_fill_the_same_batches(scheduler):
    law = Counting(Held())
    engine = Engine(law)
    with ThreadPoolExecutor(8) as pool:
        futures = list(pool.map(lambda n: scheduler.submit(engine, asks(n)), range(40)))
    law.inner.go.set()
    wait(futures)
    assert len(law.batches) <= 8  # 80 when each ran alone


def mixed(lm: LanguageModel, words: list[str], number: int) -> list[object]:
    chance = np.random.default_rng(number)
    text = [words[i] for i in chance.integers(0, len(words), 4)]
    two = " ".join([text[0], str(lm.vocabulary.mask_token), text[2], str(lm.vocabulary.mask_token)])
    match number % 4:
        case 0:
            return [score.log_probs for score in lm.score([" ".join(text), " ".join(text[::-1])], "pll")]
        case 1:
            return [lm.score(" ".join(text), "chain", order="random", seed=number).log_probs]
        case 2:
            return [part for one in lm.joint(two, candidates=[3, "all"][number % 8 // 4]).top(3) for part in one[:2]]
        case _:
            return [*lm.sample(two, "gibbs", chains=2, steps=3, seed=number).texts]


def asked_by(scheduler: Scheduler, lm: LanguageModel, ticket: Ticket) -> LanguageModel:
    """The model, asked by the holder of a ticket."""
    mine = copy.copy(lm)
    mine.engine = Asking(lm.engine, scheduler, ticket)
    return mine


def through(scheduler: Scheduler, lm: LanguageModel, words: list[str], number: int) -> list[object]:
    with scheduler.admit(100) as ticket:
        return mixed(asked_by(scheduler, lm, ticket), words, number)


def same(one, other, tolerance):
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(same(a, b, tolerance) for a, b in zip(one, other, strict=True))
    return one == other if isinstance(one, str) else np.allclose(one, other, rtol=0, atol=tolerance)


def differing(scheduler, lm, words, calls, tolerance=0.0):
    alone = [mixed(lm, words, number) for number in range(calls)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda number: through(scheduler, lm, words, number), range(calls)))
    return [n for n, (a, b) in enumerate(zip(alone, together, strict=True)) if not same(a, b, tolerance)]


def test_verbs_in_eight_threads_answer_as_alone_exactly(scheduler):
    assert differing(scheduler, besag.load(Table.random(3, 4), progress=False), ["s0", "s1", "s2"], 60) == []


def test_verbs_in_eight_threads_answer_as_alone_by_a_network(scheduler):
    lm = besag.load((tiny("bert").eval(), vocabulary("bert").tokenizer), device="cpu", progress=False)
    assert differing(scheduler, lm, ["the", "cat", "mat", "on", "a"], 24, 1e-4) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sixteen_hundred_calls_in_eight_threads_exactly(scheduler):
    assert differing(scheduler, besag.load(Table.random(3, 4), progress=False), ["s0", "s1", "s2"], 1600) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sixteen_hundred_calls_in_eight_threads_by_a_network(scheduler):
    lm = besag.load((tiny("bert").eval(), vocabulary("bert").tokenizer), device="cpu", progress=False)
    assert differing(scheduler, lm, ["the", "cat", "mat", "on", "a"], 1600, 1e-4) == []


def test_sources_of_callers_are_not_mixed_up(scheduler):
    lm = besag.load(
        GivenTable({"Hund": [[0.4, 0.0], [0.1, 0.1]], "Katze": [[0.0, 0.1], [0.1, 0.2]]}, symbols=["a", "b"])
    )
    expected = {source: lm.given(source).score("b a", "chain").total for source in ("Hund", "Katze")}

    def ask(number):
        source = ("Hund", "Katze")[number % 2]
        with scheduler.admit(10) as ticket:
            mine = asked_by(scheduler, lm, ticket).given(source)
            return mine.score("b a", "chain").total == expected[source]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(20)))


# ---- the queue


def test_a_full_queue_says_no_and_how_long_to_wait():
    law, scheduler = Held(), Scheduler(queue_tokens=20)
    engine = Engine(law)
    accepted = [scheduler.submit(engine, asks(n)) for n in range(3)]  # 6 tokens each
    with pytest.raises(Busy, match="try again in 1 s") as refused:
        scheduler.submit(engine, asks(3))
    assert refused.value.retry_after == 1
    with pytest.raises(TooLarge, match="ask for less"):
        scheduler.admit(21)
    law.go.set()
    wait(accepted)
    assert [future.result() for future in accepted] == list(Engine(Arbitrary()).run(asks(n) for n in range(3)))
    assert scheduler.submit(engine, asks(3)).result()  # there is room again
    assert scheduler.close(seconds=10)


def test_what_weighs_nothing_is_let_in_and_goes_first():
    law, scheduler = Counting(Held()), Scheduler(queue_tokens=20)
    engine = Engine(law)
    first = scheduler.submit(engine, asks(0, rounds=1))
    assert law.inner.asked.wait(60)  # it is on the device
    others = [scheduler.submit(engine, asks(n, rounds=1, length=2 + n)) for n in (1, 0)]
    with scheduler.admit(0) as ticket:
        well = scheduler.submit(engine, asks(9, rounds=1, length=1), ticket=ticket)
        law.inner.go.set()
        wait([first, well, *others])
    assert [len(batch[0]) for batch in law.batches][:2] == [3, 1]
    scheduler.close()


def test_a_producer_ten_times_faster_than_the_device_is_bounded():
    law, scheduler = Held(), Scheduler(queue_tokens=240)
    engine, plans, accepted = Engine(law), weakref.WeakSet(), 0
    for number in range(5):
        law.go.clear()
        futures = []
        for plan in (asks(200 * number + one, rounds=1, length=6) for one in range(200)):  # 12 tokens each
            plans.add(plan)
            with contextlib.suppress(Busy):
                futures.append(scheduler.submit(engine, plan))
            assert scheduler.waiting <= 240
            assert len(plans) <= 2 * 240 / 12 + 3  # those that wait, those just told: nothing of what was refused
        law.go.set()
        assert all(future.result(30) for future in futures)
        accepted += len(futures)
    assert accepted == 5 * 200 / 10
    assert scheduler.close(seconds=30)


def test_a_deadline_ends_one_plan_and_no_other():
    law, scheduler = Held(), Scheduler()
    engine = Engine(law)
    first = scheduler.submit(engine, asks(0))
    assert law.asked.wait(60)  # it is on the device
    late = scheduler.submit(engine, asks(1), seconds=0.05)
    other = scheduler.submit(engine, asks(2))
    time.sleep(0.1)
    law.go.set()
    with pytest.raises(Late, match=r"not done within 0\.05 s"):
        late.result(10)
    assert [first.result(10), other.result(10)] == list(Engine(Arbitrary()).run([asks(0), asks(2)]))
    scheduler.close()


def test_what_is_cancelled_is_not_run():
    law, scheduler = Counting(Held()), Scheduler()
    engine = Engine(law)
    first = scheduler.submit(engine, asks(0))
    assert law.inner.asked.wait(60)  # it is on the device
    with scheduler.admit(100) as ticket:
        mine = [scheduler.submit(engine, asks(n, length=4), ticket=ticket) for n in range(1, 9)]
        ticket.cancel()
        law.inner.go.set()
        for future in mine:
            with pytest.raises(Stopped, match="cancelled"):
                future.result(10)
    assert first.result(10)
    scheduler.close()
    assert all(len(sequence) == 3 for sequence in law.sequences)


def test_a_long_chain_is_cancelled_between_two_steps(scheduler):
    lm = besag.load(Table.random(3, 4), progress=False)
    with scheduler.admit(100) as ticket:
        threading.Timer(0.2, ticket.cancel).start()
        mine = asked_by(scheduler, lm, ticket)
        with pytest.raises(Stopped):
            mine.sample("[MASK] [MASK] s0 s1", steps=1_000_000)


def test_closing_finishes_what_was_accepted_and_takes_nothing_more():
    law, scheduler = Held(), Scheduler()
    engine = Engine(law)
    futures = [scheduler.submit(engine, asks(n)) for n in range(5)]
    threading.Timer(0.1, law.go.set).start()
    assert scheduler.close(seconds=20)
    assert all(future.result(0) for future in futures)
    with pytest.raises(Stopped, match="closed"):
        scheduler.submit(engine, asks(0))
    with pytest.raises(Stopped, match="closed"):
        scheduler.admit(1)


def test_closing_at_once_fails_what_waits():
    law, scheduler = Held(), Scheduler()
    engine = Engine(law)
    first = scheduler.submit(engine, asks(0))
    assert law.asked.wait(60)  # it is on the device
    second = scheduler.submit(engine, asks(1))
    threading.Timer(0.1, law.go.set).start()
    assert scheduler.close(drain=False, seconds=20)
    for future in (first, second):
        assert isinstance(future.exception(0), Stopped)


def test_a_model_that_breaks_breaks_for_those_who_asked_it(scheduler, monkeypatch):
    broken, sound = Engine(Arbitrary()), Engine(Arbitrary())
    monkeypatch.setattr(broken, "not_finite", lambda: 1 / 0)
    bad, good = scheduler.submit(broken, asks(0)), scheduler.submit(sound, asks(0))
    assert isinstance(bad.exception(10), ZeroDivisionError)
    assert good.result(10) == next(Engine(Arbitrary()).run([asks(0)]))


def test_an_idle_source_has_its_results_at_once(scheduler):
    lm = besag.load(Table.random(3, 2), progress=False)
    with scheduler.admit(100) as ticket:
        mine = asked_by(scheduler, lm, ticket)
        given_so_far = []

        def texts():
            for _ in range(3):
                given_so_far.append("s0 s1")
                yield "s0 s1"
                yield IDLE

        for number, _ in enumerate(mine.score(texts()), 1):
            assert len(given_so_far) == number


def test_a_plan_that_is_nothing_but_a_result_or_a_failure(scheduler):
    engine = Engine(Arbitrary())

    def nothing() -> Plan[str]:
        return "done"
        yield

    def wrong() -> Plan[str]:
        raise BesagError("no")
        yield

    assert scheduler.submit(engine, nothing()).result(5) == "done"
    with pytest.raises(BesagError, match="no"):
        scheduler.submit(engine, wrong()).result(5)


def test_the_mode_of_the_caller_goes_with_a_job(scheduler):
    lm = besag.load(Table.random(3, 4), progress=False)
    with scheduler.admit(10) as ticket, torch.inference_mode():
        assert len(asked_by(scheduler, lm, ticket).sample("[MASK] s0 s1 s2", steps=2, chains=2)) == 2
