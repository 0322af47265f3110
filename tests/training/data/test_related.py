"""Which documents belong together: by links and by groups, against plain sets; who is drawn, and in which order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag import noise
from besag.errors import BesagError
from besag.training.data.related import Related, by_group, by_links
from besag.training.data.rows import Beside, Document


def linked(*links: str) -> Related:
    """Documents called a, b, c …, each with the names it links to."""
    rows = zip("abcdefghij", links, strict=False)
    return by_links(
        Document("text", None, f"row {name}", None, Beside(name=name, links=tuple(to))) for name, to in rows
    )


def neighbours(related: Related) -> list[set[int]]:
    ranges = zip(related.low.tolist(), related.high.tolist(), strict=True)
    return [set(related.other[low:high].tolist()) - {one} for one, (low, high) in enumerate(ranges)]


def uniform(count: int) -> np.ndarray:
    return noise.uniform(1, 2, np.arange(count))


def test_a_link_holds_in_both_directions_and_once() -> None:
    related = linked("bc", "a", "", "d", "")  # d links to itself
    assert neighbours(related) == [{1, 2}, {0}, {0}, set(), set()]


def test_documents_without_a_group_are_alone() -> None:
    related = by_group(["x", None, "y", "x", None, "x"])
    assert neighbours(related) == [{3, 5}, set(), set(), {0, 5}, set(), {0, 3}]


@given(st.lists(st.sampled_from(["x", "y", "z", None]), min_size=1, max_size=12))
def test_contains_is_the_relation(groups: list[str | None]) -> None:
    related = by_group(groups)
    every = np.arange(len(groups))
    for one in range(len(groups)):
        others = set(np.flatnonzero(related.contains(np.full(len(groups), one), every)).tolist())
        assert others - {one} == neighbours(related)[one]


def test_contains_is_the_relation_of_links_too() -> None:
    related = linked("c", "", "d", "", "a")  # b has none, and stands between
    for one in range(5):
        found = np.flatnonzero(related.contains(np.full(5, one), np.arange(5)))
        assert set(found.tolist()) == neighbours(related)[one]


def test_a_partner_is_drawn_inversely_to_how_many_it_belongs_with() -> None:
    related = linked("bc", "", "defg", "", "", "", "")  # a: b has one link, c has five
    drawn = related.draw(np.zeros(60_000, np.int64), uniform(60_000))
    assert set(drawn.tolist()) == {1, 2}
    assert (drawn == 1).mean() == pytest.approx(5 / 6, abs=0.01)


def test_without_any_link_nothing_is_drawn() -> None:
    alone = linked("", "", "")
    every = np.arange(3)
    assert alone.draw(every, np.array([0.0, 0.5, 1 - 1e-9])).tolist() == [-1, -1, -1]
    assert not alone.contains(every, every[::-1]).any()
    assert sorted(alone.walk(uniform(3))[0].tolist()) == [0, 1, 2]


def test_in_a_group_all_others_are_drawn_alike_and_never_oneself() -> None:
    related = by_group(["x", "y", "x", "x", "x", None])
    for one in (0, 2, 3, 4):
        drawn = related.draw(np.full(30_000, one), uniform(30_000))
        shares = np.bincount(drawn, minlength=6) / 30_000
        expected = np.array([1, 0, 1, 1, 1, 0]) / 3
        expected[one] = 0
        assert shares == pytest.approx(expected, abs=0.015)
    assert related.draw(np.array([1, 5]), np.array([0.3, 0.9])).tolist() == [-1, -1]


def test_a_walk_has_every_document_once_each_with_what_it_belongs_with() -> None:
    related = linked("bc", "", "d", "", "f", "", "")
    for seed in range(20):
        order, leader = related.walk(noise.uniform(seed, 5, np.arange(7)))
        assert sorted(order.tolist()) == list(range(7))
        for one, first in zip(order.tolist(), leader.tolist(), strict=True):
            assert one == first or one in neighbours(related)[first]
        assert (np.flatnonzero(leader[1:] != leader[:-1]) + 1).tolist() == [
            at for at in range(1, 7) if order[at] == leader[at]
        ]


def test_a_group_stays_whole_on_the_walk() -> None:
    order, leader = by_group(["x", "y", "x", "y", "x"]).walk(np.array([0.5, 0.1, 0.2, 0.9, 0.3]))
    assert order.tolist() == [1, 3, 2, 4, 0]
    assert leader.tolist() == [1, 1, 2, 2, 2]


def test_links_that_lead_nowhere_are_told() -> None:
    with pytest.warns(UserWarning, match="2 of 3 links name no document that is there, the first 'z'"):
        assert neighbours(linked("zb", "y")) == [{1}, {0}]


def test_a_name_is_of_one_document() -> None:
    two = [Document("text", None, f"row {number}", None, Beside(name="a")) for number in (1, 2)]
    with pytest.raises(BesagError, match="row 2: another document is called 'a', too"):
        by_links(two)
