"""Whole numbers and numbers, what only looks like one, and arguments that their annotations do not allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest

from besag.checks import array, checked, is_number, is_whole, number, whole_number
from besag.errors import BesagError

if TYPE_CHECKING:
    from nowhere import Unknown  # type: ignore[import-not-found]


@pytest.mark.parametrize(
    ("value", "whole", "number"),
    [(1, True, True), (np.int64(3), True, True), (0, False, True), (True, False, False), (2.0, False, True),
     (np.float32(1.5), False, True), ("1", False, False), (None, False, False), (np.True_, False, False)],
)  # fmt: skip
def test_what_is_a_number(value: object, whole: bool, number: bool) -> None:
    assert is_whole(value) == whole
    assert is_number(value) == number


def test_a_whole_number_is_an_int_or_quoted_in_the_error() -> None:
    found = whole_number(np.int32(2), "k")
    assert (found, type(found)) == (2, int)
    assert whole_number(0, "k", least=0) == 0
    with pytest.raises(BesagError, match=r"^k=2: give a whole number, at least 3$"):
        whole_number(2, "k", least=3)
    with pytest.raises(BesagError, match=r"^steps=2\.5: make at least 1 step\.$"):
        whole_number(2.5, "steps", right="make at least 1 step.")
    with pytest.raises(BesagError, match=r"^chains=1000000000: give at most 4,096$"):
        whole_number(10**9, "chains", most=4096)
    with pytest.raises(BesagError, match=r"^chains=a value of type int: give at most 4,096$"):
        whole_number(10**5000, "chains", most=4096)


def test_a_number_is_a_finite_float_within_its_bounds() -> None:
    assert number(np.float32(0.5), "rate", 0, 1) == 0.5
    for value in (float("nan"), float("inf"), 10**400, True, "0.5", None, 1.5):
        with pytest.raises(BesagError, match=r"^rate=.*: give a number, at least 0 and at most 1$"):
            number(value, "rate", 0, 1)
    with pytest.raises(BesagError, match=r"^minutes=inf: give a number, at least 0$"):
        number(float("inf"), "minutes", least=0)


def test_an_array_is_of_numbers_or_quoted_in_the_error() -> None:
    assert array([[1, 2]], "joint").shape == (1, 2)
    for value in ("text", [[1], [1, 2]], object(), {"a": 1}):
        with pytest.raises(BesagError, match=r"^joint=.*: give an array of numbers$"):
            array(value, "joint")


@checked
def door(
    texts: str | Iterable[str],
    k: int = 1,
    *more: str | int,
    rate: float = 0.5,
    of: Literal["text", "all"] | None = None,
    spans: Sequence[str] | Sequence[tuple[int, int]] = (),
    path: str | Path = "",
    table: Mapping[str, Any] | None = None,
    unknown: Unknown | None = None,
    strict: bool = False,
) -> str:
    """What it does."""
    return "through"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("a",), {}), ((["a", "b"],), {}), ((iter([None]),), {}), (("a", np.int64(2), "b", 3), {}),
        (("a",),
        {"rate": 1, "of": "all", "spans": [(0, 1)], "path": Path(), "table": {}, "unknown": 5, "strict": True}),
        (("a",), {"spans": ["a"], "of": None, "rate": np.float32(2)}),
    ],
)  # fmt: skip
def test_what_annotations_allow_goes_through(given: Any, named: Any) -> None:
    assert door(*given, **named) == "through"


@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        ((5,), {}, "texts=5: give a text or a list of texts"),
        ((["a", None],), {}, "texts[1]=None: give a text"),
        ((b"a",), {}, "texts=b'a': give a text or a list of texts"),
        (({"a": 1},), {}, "texts={'a': 1}: give a text or a list of texts"),
        (("a", "b"), {}, "k='b': give a whole number"),
        (("a", True), {}, "k=True: give a whole number"),
        (("a", 10**20), {}, "k=100000000000000000000: give a whole number of at most 18 digits"),
        (("a", 10**5000), {}, "k=a value of type int: give a whole number of at most 18 digits"),
        (("a", 1, None), {}, "more[0]=None: give a text or a whole number"),
        (("a",), {"rate": float("nan")}, "rate=nan: give a number"),
        (("a",), {"of": "al"}, "of='al': give 'text' or 'all' or None. Did you mean 'all'?"),
        (("a",), {"of": 5}, "of=5: give 'text' or 'all' or None"),
        (("a",), {"spans": [(0, 1, 2)]}, "spans[0]=(0, 1, 2): give a text"),
        (("a",), {"spans": "ab"}, "spans='ab': give a list of texts or a list"),
        (("a",), {"path": 5}, "path=5: give a text or a path"),
        (("a",), {"table": []}, "table=[]: give a dict or None"),
        (("a",), {"strict": 1}, "strict=1: give true or false"),
        (("a",), {"rat": 1},
        "door() has no option 'rat': it takes texts, k, more, rate, of, spans, path, table, unknown, "
                             "strict. Did you mean 'rate'?"),
        ((), {}, "door(): missing a required argument: 'texts'"),
    ],
)  # fmt: skip
def test_what_annotations_do_not_allow_is_quoted_beside_what_would_be_right(given: Any, named: Any, said: str) -> None:
    with pytest.raises(BesagError) as refused:
        door(*given, **named)
    assert str(refused.value) == said


@checked
@dataclass(frozen=True)
class Made:
    word: str
    place: int | None = None

    @checked
    def at(self, n: int) -> int:
        return n

    @classmethod
    @checked
    def of(cls, word: str) -> Made:
        return cls(word)


def test_classes_and_methods_are_doors_too() -> None:
    assert Made.of("a") == Made("a")
    assert Made("a").at(3) == 3
    for wrong, said in (
        (lambda: Made(5), r"^word=5: give a text$"),
        (lambda: Made("a", place="b"), r"^place='b': give a whole number or None$"),
        (lambda: Made("a", plac=1), r"^Made\(\) has no option 'plac': it takes word, place\. Did you mean 'place'\?$"),
        (lambda: Made("a").at(None), r"^n=None: give a whole number$"),
        (lambda: Made.of(1), r"^word=1: give a text$"),
    ):
        with pytest.raises(BesagError, match=said):
            wrong()


def test_a_door_still_says_what_it_is() -> None:
    assert door.__name__ == "door"
    assert door.__doc__ == "What it does."


def test_what_is_raised_inside_is_left_as_it_is() -> None:
    @checked
    def breaks(n: int) -> None:
        raise TypeError("inside")

    with pytest.raises(TypeError, match="inside"):
        breaks(1)
