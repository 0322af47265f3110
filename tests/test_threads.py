"""Eight threads on one model get what one thread gets: nothing of a call is seen by another."""

import pickle
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from tests.laws import Arbitrary
from tests.networks import tiny, vocabulary

import besag
from besag.batches import lock_of
from besag.conditionals.contract import Questions
from besag.conditionals.table import Table
from besag.engine import Engine
from besag.errors import BesagError
from besag.language_model import LanguageModel
from besag.reductions import Target

THREADS = 8


@pytest.fixture(autouse=True)
def eager_threads() -> Iterator[None]:
    """Threads that take turns fifty times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


class OneBuffer(Arbitrary):
    """Answers as a recorded graph does: where it wrote the last answer it writes the next, and it takes a while."""

    def __init__(self, width: int = 3) -> None:
        super().__init__(width)
        self.buffer = torch.zeros(4096, width, dtype=self.dtype)

    def rows(self, questions: Questions) -> torch.Tensor:
        answer = super().rows(questions)
        self.buffer[: len(answer)] = answer
        time.sleep(1e-4)
        return self.buffer[: len(answer)]

    def head(self, rows: torch.Tensor) -> torch.Tensor:
        time.sleep(1e-4)
        return rows


def mixed(lm: LanguageModel, words: list[str], number: int) -> list[object]:
    """Call `number` of a mixture of verbs, as what can be compared."""
    chance = np.random.default_rng(number)
    text = [words[i] for i in chance.integers(0, len(words), 4)]
    mask = str(lm.vocabulary.mask_token)
    two = " ".join([text[0], mask, text[2], mask])
    kind = number % 5
    if kind == 0:
        return [score.log_probs for score in lm.score([" ".join(text), " ".join(text[::-1])], "pll")]
    if kind == 1:
        return [lm.score(" ".join(text), "chain", order="random", seed=number).log_probs]
    if kind == 2:
        joint = lm.joint(two, candidates=3, method=["ag", "order"][number % 2])
        return [pair for one in joint.top(3) for pair in (one.a, one.b, one.log_prob)]
    if kind == 3:
        return [part for one in lm.fill(two, k=3, candidates=3) for part in (one.text, one.log_prob)]
    return [*lm.sample(two, "gibbs", chains=2, steps=3, seed=number).texts]


def same(one: list[object], other: list[object], tolerance: float) -> bool:
    def close(a: object, b: object) -> bool:
        return a == b if isinstance(a, str) else bool(np.allclose(a, b, rtol=0, atol=tolerance, equal_nan=False))

    return len(one) == len(other) and all(map(close, one, other))


def differing(lm: LanguageModel, words: list[str], calls: int, tolerance: float = 0.0) -> list[int]:
    """The calls whose answers in eight threads are not those of one."""
    alone = [mixed(lm, words, number) for number in range(calls)]
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(lambda number: mixed(lm, words, number), range(calls)))
    return [n for n, (one, other) in enumerate(zip(alone, together, strict=True)) if not same(one, other, tolerance)]


def network(device: str = "cpu") -> LanguageModel:
    model = tiny("bert").to(device).eval()
    return besag.load((model, vocabulary("bert").tokenizer), device=device, dtype="float32", progress=False)


WORDS = ["the", "cat", "mat", "on", "a"]


@pytest.mark.parametrize("law", [Table.random(3, 4), OneBuffer()], ids=["table", "one buffer"])
def test_eight_threads_are_told_what_one_is_told_exactly(law):
    assert differing(besag.load(law, progress=False), ["s0", "s1", "s2"], 80) == []


def test_eight_threads_are_told_what_one_is_told_by_a_network():
    assert differing(network(), WORDS, 20, 1e-4) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_thousand_calls_in_eight_threads_exactly():
    assert differing(besag.load(Table.random(3, 4), progress=False), ["s0", "s1", "s2"], 1000) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_thousand_calls_in_eight_threads_by_a_network():
    assert differing(network(), WORDS, 1000, 1e-4) == []


@pytest.mark.gpu
@pytest.mark.timeout(900)
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_a_thousand_calls_in_eight_threads_on_cuda():
    lm = network("cuda")
    assert differing(lm, WORDS, 1000, 1e-4) == []
    assert lm.conditionals.replay.graphs  # recorded, so there was a buffer to share


# ---- the lock


def questions(place: int = 0) -> Questions:
    ids = torch.full((1, 3), 3)
    return Questions(ids, torch.tensor([0]), torch.tensor([place]), torch.tensor([1]))


def test_all_who_ask_one_network_share_a_lock_and_others_do_not():
    law, other = Arbitrary(), Arbitrary()
    assert lock_of(law) is lock_of(law)
    assert lock_of(law) is not lock_of(other)
    network = tiny("bert")
    law.model, other.model = network, network
    assert lock_of(law) is lock_of(other)


def test_two_engines_on_one_model_take_turns():
    law = OneBuffer()
    engines = [Engine(law, progress=False) for _ in range(THREADS)]
    expected = [Engine(law).answer(questions(n % 3), Target())["target"] for n in range(80)]
    with ThreadPoolExecutor(THREADS) as pool:
        got = list(pool.map(lambda n: engines[n % THREADS].answer(questions(n % 3), Target())["target"], range(80)))
    assert [a.tolist() for a in got] == [a.tolist() for a in expected]


def in_time(work: Callable[[], object]) -> object:
    """What work returns in another thread; a lock that is never given back fails the test, and does not hang it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(timeout=20)


def test_an_iterator_that_is_not_read_on_is_in_nobodys_way():
    lm = besag.load(OneBuffer(), progress=False)
    begun = lm.score(iter(["s0 s1"] * 2000))
    first = next(begun)
    assert in_time(lambda: lm.score("s0 s1").total) == first.total
    assert next(begun).total == first.total  # and may be read on


def test_one_thread_may_read_two_iterators_in_turn():
    lm = besag.load(OneBuffer(), progress=False)
    texts = ["s0 s1", "s2 s1 s0", "s1"] * 20

    def interleaved() -> list[tuple[float, float]]:
        pairs = zip(lm.score(iter(texts)), lm.score(iter(texts), "chain"), strict=True)
        return [(a.total, b.total) for a, b in pairs]

    expected = [(a.total, b.total) for a, b in zip(lm.score(texts), lm.score(texts, "chain"), strict=True)]
    assert in_time(interleaved) == expected


def test_what_fails_in_a_batch_gives_the_lock_back():
    class Broken(Arbitrary):
        def rows(self, questions):
            raise RuntimeError("shape mismatch")

    law = Broken()
    with pytest.raises(RuntimeError):
        Engine(law).answer(questions(), Target())
    assert in_time(lambda: lock_of(law).acquire(blocking=False))


# ---- what else threads could share


def test_an_answer_that_is_no_number_is_told_to_the_thread_that_asked():
    class Sometimes(Arbitrary):
        def rows(self, questions):
            rows = super().rows(questions)
            return rows * float("nan") if bool((questions.ids[:, 1] == 0).any()) else rows

    engine = Engine(Sometimes(), progress=False)
    good = questions()
    bad = good._replace(ids=torch.tensor([[3, 0, 3]]))
    engine.ask(bad, Target())

    def another() -> str:
        engine.ask(good, Target())
        engine.check()
        return "fine"

    assert in_time(another) == "fine"
    with pytest.raises(BesagError, match="answered with NaN"):
        engine.check()
    engine.check()  # told once


def test_memory_that_runs_out_in_several_threads_halves_batches_and_changes_no_answer():
    class Narrow(OneBuffer):
        def rows(self, questions):
            if len(questions.ids) > 3:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super().rows(questions)

    texts = ["s0 s1 s2", "s1 s1 s0", "s2 s0 s1"] * 10
    expected = [score.total for score in besag.load(OneBuffer(), progress=False).score(texts)]
    lm = besag.load(Narrow(), progress=False)
    with ThreadPoolExecutor(THREADS) as pool:
        for got in pool.map(lambda _: [score.total for score in lm.score(texts)], range(THREADS)):
            assert got == expected


def test_many_threads_read_one_tokenizer_however_its_caller_left_it():
    words, text = vocabulary("bert"), "the cat sat on the mat " * 20
    expected = words.encode([text])[0].ids.tolist()
    words.tokenizer.backend_tokenizer.enable_truncation(5)
    with ThreadPoolExecutor(THREADS) as pool:
        for encoded in pool.map(lambda _: words.encode([text] * 50), range(60)):
            assert encoded[-1].ids.tolist() == expected


def test_a_model_can_still_be_pickled():
    lm = besag.load(Table.random(3, 2), progress=False)
    assert pickle.loads(pickle.dumps(lm)).score("s0 s1").total == lm.score("s0 s1").total
