import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws import Arbitrary

from besag.batches import Batches
from besag.errors import BesagError


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 100))
def test_every_sequence_runs_once_in_batches_near_the_budget(lengths, budget):
    lengths = np.sort(np.array(lengths, np.int64))[::-1]
    ran: list[tuple[int, int]] = []
    Batches(Arbitrary(2), budget).in_batches(lengths, lambda start, stop: ran.append((start, stop)))
    assert [number for start, stop in ran for number in range(start, stop)] == list(range(len(lengths)))
    for start, stop in ran:
        assert stop - start == 1 or (stop - start) * lengths[start] <= 1.5 * budget + lengths[start]


def test_batches_are_even():
    ran: list[int] = []
    Batches(Arbitrary(2), 100).in_batches(np.full(23, 10), lambda start, stop: ran.append(stop - start))
    assert ran == [12, 11]  # not 10, 10 and 3


@given(st.integers(1, 40), st.integers(1, 40))
def test_what_does_not_fit_is_halved_until_it_does(count, room):
    ran: list[tuple[int, int]] = []

    def run(start: int, stop: int) -> None:
        if stop - start > room:
            raise RuntimeError("CUDA out of memory. Tried to allocate")
        ran.append((start, stop))

    batches = Batches(Arbitrary(2), 1000)
    batches.in_batches(np.full(count, 5), run)
    assert [number for start, stop in ran for number in range(start, stop)] == list(range(count))
    assert batches.batch_tokens == 1000 or batches.batch_tokens <= 5 * room * 1.5


def test_one_that_does_not_fit_and_other_failures_are_heard():
    def full(start: int, stop: int) -> None:
        raise MemoryError

    with pytest.raises(BesagError, match="one sequence of 7 tokens does not fit the memory of cpu"):
        Batches(Arbitrary(2)).in_batches(np.full(5, 7), full)

    def broken(start: int, stop: int) -> None:
        raise RuntimeError("shape mismatch")

    with pytest.raises(RuntimeError, match="shape mismatch"):
        Batches(Arbitrary(2)).in_batches(np.full(5, 7), broken)
