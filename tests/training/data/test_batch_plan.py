from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests import tokenizers

from besag.errors import BesagError
from besag.training.data import batch_plan as plans
from besag.training.data.batch_plan import BatchPlan, bucketed, full
from besag.training.data.cache import Cache, build_cache
from besag.training.data.sources import Document
from besag.training.recipe import Data
from besag.vocabulary import Vocabulary

UNITS = ("segments", "sentences", "documents", "windows")
Make = Callable[..., BatchPlan]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    vocabulary = Vocabulary(tokenizers.build("wordpiece-cased"))
    random = np.random.default_rng(0)
    texts = [
        " ".join("The" + " cat" * int(random.integers(1, 30)) + "." for _ in range(random.integers(1, 12)))
        for _ in range(120)
    ]
    return build_cache([Document(text, None, "") for text in texts], vocabulary, tmp_path_factory.mktemp("c") / "c")


@pytest.fixture
def make(cache: Cache) -> Make:
    for memo in cache.folder.glob("epochs-*"):
        memo.unlink()

    def made(
        unit: Any = "segments", *, seed: int = 0, unpadded: bool = True, batch_tokens: int = 256, copies: int = 1
    ) -> BatchPlan:
        data = Data(unit=unit, max_length=32, batch_tokens=batch_tokens)
        return BatchPlan(cache, data, special=2, seed=seed, unpadded=unpadded, copies=copies)

    return made


def passages(plan: BatchPlan, epoch: int) -> list[tuple[int, int]]:
    whole = plan.epoch(epoch)
    return list(zip(whole.start.tolist(), whole.length.tolist(), strict=True))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("unpadded", [True, False])
def test_every_token_is_seen_once_an_epoch(make: Make, cache: Cache, unit: str, unpadded: bool) -> None:
    plan = make(unit, unpadded=unpadded)
    for epoch in range(3):
        covered = np.zeros(len(cache.tokens), int)
        for start, length in passages(plan, epoch):
            covered[start : start + length] += 1
            assert 1 <= length <= 30
            assert np.searchsorted(cache.documents, start, "right") == np.searchsorted(
                cache.documents, start + length - 1, "right"
            )
        assert covered.min() == 1
        assert unit == "windows" or covered.max() == 1


@pytest.mark.parametrize("unit", UNITS)
def test_unpadded_batches_are_as_full_as_can_be(make: Make, unit: str) -> None:
    plan = make(unit)
    epoch = plan.epoch(0)
    size = np.add.reduceat(epoch.length + 2, epoch.batches[:-1])
    assert size.max() <= 256
    following = (epoch.length + 2)[epoch.batches[1:-1]]
    rows = np.diff(epoch.batches)
    assert rows.max() <= plan.rows
    assert np.all((size[:-1] + following > 256) | (rows[:-1] == plan.rows))
    assert np.mean(rows == plan.rows) < 0.05
    assert np.diff(epoch.tokens).tolist() == size.tolist()


@pytest.mark.parametrize("unit", UNITS)
def test_bucketed_batches_waste_little(make: Make, unit: str) -> None:
    epoch = make(unit, unpadded=False).epoch(0)
    size = epoch.length + 2
    longest = np.maximum.reduceat(size, epoch.batches[:-1])
    cost = longest * np.diff(epoch.batches)
    assert cost.max() <= 256
    assert size.sum() / cost.sum() > 0.9  # in the order of the text it would be about a half
    assert np.diff(epoch.tokens).tolist() == np.add.reduceat(size, epoch.batches[:-1]).tolist()


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("unpadded", [True, False])
def test_any_batch_at_any_time(make: Make, unit: str, unpadded: bool) -> None:
    plan = make(unit, unpadded=unpadded)
    count = sum(len(plan.epoch(epoch).batches) - 1 for epoch in range(3))
    straight = [plan.batch(index) for index in range(count)]
    assert np.concatenate([batch.draw for batch in straight]).tolist() == list(
        range(sum(len(b.draw) for b in straight))
    )
    fresh = make(unit, unpadded=unpadded)
    for index in np.random.default_rng(1).permutation(count)[:60]:
        for other in (plan, fresh, pickle.loads(pickle.dumps(fresh))):
            assert all(np.array_equal(a, b) for a, b in zip(other.batch(int(index)), straight[index], strict=True))


def test_epochs_and_seeds_have_orders_of_their_own(make: Make) -> None:
    plan, other = make("documents"), make("documents", seed=1)
    first, second = passages(plan, 0), passages(plan, 1)
    assert first != second
    assert sorted(first) == sorted(second) == sorted(passages(other, 0))
    assert passages(other, 0) != first
    assert passages(make("documents"), 0) == first


def test_segments_are_cut_anew_each_epoch(make: Make) -> None:
    plan = make("segments")
    first, second = set(passages(plan, 0)), set(passages(plan, 1))
    assert 0.1 < len(first & second) / len(first) < 0.9


def test_the_order_is_uniform(make: Make) -> None:
    """Where a passage stands in an epoch: chi-square over 8 parts of 200 epochs, at p = 10⁻⁴."""
    plan = make("documents", batch_tokens=100_000)
    first = sorted(passages(plan, 0))[0]
    places = [passages(plan, epoch).index(first) / len(plan.epoch(epoch).start) for epoch in range(200)]
    observed = np.histogram(places, bins=8, range=(0, 1))[0]
    assert stats.chisquare(observed).pvalue > 1e-4


def test_tokens_before(make: Make) -> None:
    plan = make("segments", copies=2, batch_tokens=512)
    total = 0
    for index in range(2 * len(plan.epoch(0).batches)):
        assert plan.tokens_before(index) == total
        total += 2 * int((plan.batch(index).length + 2).sum())
    assert make("segments", copies=2, batch_tokens=512).tokens_before(index + 1) == total


def test_where_counts_epochs(make: Make) -> None:
    plan = make("segments")
    batches = len(plan.epoch(0).batches) - 1
    assert plan.where(0) == 0
    assert plan.where(batches) == 1
    assert plan.where(batches // 2) == batches // 2 / batches


def test_earlier_epochs_are_not_planned_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make("segments")
    last = sum(len(plan.epoch(epoch).batches) - 1 for epoch in range(5)) - 1
    rows = plan.rows
    planned: list[int] = []
    really = BatchPlan._plan

    def counted(self: BatchPlan, number: int) -> Any:
        planned.append(number)
        return really(self, number)

    monkeypatch.setattr(BatchPlan, "_plan", counted)
    resumed = make_again(plan)
    assert resumed.batch(last).draw.tolist() == plan.batch(last).draw.tolist()
    assert planned == [4]
    assert resumed.rows == rows
    planned.clear()
    memo = plan._memo
    memo.write_text("{")  # no use: everything is worked out
    assert make_again(plan).batch(last).draw.tolist() == plan.batch(last).draw.tolist()
    assert planned == [0, 1, 2, 3, 4]
    memo.write_text(memo.read_text().replace(str(len(plan.epoch(4).start)), "1"))
    with pytest.raises(BesagError, match="does not fit the cache it lies in"):
        make_again(plan).epoch(4)


def make_again(plan: BatchPlan) -> BatchPlan:
    return BatchPlan(plan.cache, plan.data, special=plan.special, seed=plan.seed, unpadded=plan.unpadded)


def test_the_next_epoch_is_planned_before_it_begins(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, other = make("segments"), make("segments")
    monkeypatch.setattr(plans, "MANY", 10)
    batches = len(plan.epoch(0).batches) - 1
    plan.batch(batches // 3)
    assert plan._ahead is None
    plan.batch(batches - 1)
    assert plan._ahead is not None
    plan._ahead.thread.join()
    monkeypatch.setattr(BatchPlan, "_plan", None)  # nothing is planned when it begins
    ahead = plan.batch(batches)
    monkeypatch.undo()
    assert ahead.start.tolist() == other.batch(batches).start.tolist()


def test_a_read_only_cache_will_do(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make("segments")

    def refuse(*args: object, **options: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "write_text", refuse)
    assert len(plan.batch(0).start)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_tokens": 31}, r"batch_tokens = 31 does not hold one passage of data\.max_length = 32: .* at least 32"),
        ({"batch_tokens": 63, "copies": 2}, r"copies = 2: give it at least 64"),
    ],
)
def test_too_small_a_batch(make: Make, options: dict[str, int], message: str) -> None:
    with pytest.raises(BesagError, match=message):
        make("segments", **options)


def test_too_short_a_passage(cache: Cache) -> None:
    with pytest.raises(BesagError, match="leaves no room for text beside 2 special tokens"):
        BatchPlan(cache, Data(max_length=2), special=2, seed=0, unpadded=True)


def test_full_by_hand() -> None:
    assert full(np.array([3, 3, 4, 10, 1, 1, 1, 1]), 10, 3).tolist() == [0, 3, 4, 7, 8]


def test_bucketed_by_hand() -> None:
    size = np.array([2, 9, 3, 9, 2, 3, 5, 5])
    order, bounds = bucketed(size, 10, 0, 0)
    batches = sorted(sorted(size[order][low:high].tolist()) for low, high in itertools.pairwise(bounds))
    assert batches == [[2], [2, 3, 3], [5, 5], [9], [9]]  # from the longest on, rows × longest ≤ 10
