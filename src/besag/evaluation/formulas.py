"""Predictions about the surprisals of regions, as SyntaxGym writes them: read by hand, evaluated by hand.

    truth    either ("|" either)*         either   both ("&" both)*         both   sum (("<" | ">" | "=") sum)?
    sum      atom (("+" | "-") atom)*     atom     number | region | "(" truth ")" | "[" truth "]"
    region   "(" (number | "*") ";%" condition "%)"        * is the sum of all regions of the condition

`<` and `>` are strict: of two equal sides neither is the smaller. `=` holds where two sides are as good as equal, by
the published tolerance |a − b| ≤ 0.001 + 0.00001 |b| (in bits). + and − are of one rank and from left to right; `&`
binds closer than `|`. Knows numbers by (condition, region), and no model; nothing of a formula is ever run as Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from besag.errors import BesagError, quoted

Surprisals: TypeAlias = Mapping[str, Mapping[int, float]]  # of a condition, by the number of the region
ALL = "*"
ABSOLUTE, RELATIVE = 1e-3, 1e-5  # within which two sides are equal
DEEPEST = 50  # brackets within each other

_REGION = re.compile(r"\(\s*(\d{1,6}|\*)\s*;\s*%([^%]*)%\s*\)")
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,12})?")
_CLOSING = {"(": ")", "[": "]"}


class Reference(NamedTuple):
    condition: str
    region: int | None  # None: all


@dataclass(frozen=True)
class Node:
    """A part of a formula: a number, or something that holds or not."""

    value: Callable[[Surprisals], float]  # 1 or 0 of what holds or not
    truth: bool
    ties: Callable[[Surprisals], int]  # comparisons by < and > whose sides are equal


@dataclass(frozen=True)
class Formula:
    """A prediction that can be asked whether it holds."""

    text: str
    node: Node
    references: tuple[Reference, ...]

    def holds(self, surprisals: Surprisals) -> bool:
        return bool(self.node.value(surprisals))

    def ties(self, surprisals: Surprisals) -> int:
        """How many of its strict comparisons have equal sides, and fail for that."""
        return self.node.ties(surprisals)


def formula(text: str) -> Formula:
    """Read a formula; what is wrong with it is said with the place.

    >>> formula("[(2;%good%) < (2;%bad%)] & (*;%good%) < 9").holds({"good": {1: 3.0, 2: 1.0}, "bad": {2: 5.0}})
    True
    """
    reader = _Reader(text)
    node = reader.either()
    if reader.rest:
        reader.refuse("there should be an operator or the end")
    if not node.truth:
        raise BesagError(f"the formula {quoted(text)} is a number, and a prediction holds or not: compare by <, > or =")
    return Formula(text, node, tuple(reader.references))


class _Reader:
    """Descends through a formula from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.references: list[Reference] = []
        self._skip()

    @property
    def rest(self) -> str:
        return self.text[self.at :]

    def refuse(self, wanted: str) -> None:
        found = quoted(self.rest[:20]) if self.rest else "its end"
        raise BesagError(f"the formula {quoted(self.text)}, at character {self.at + 1}: {wanted}, and there is {found}")

    def take(self, signs: str) -> str:
        """The next sign, if it is one of these, or else nothing."""
        sign = self.rest[:1]
        if not sign or sign not in signs:
            return ""
        self.at += 1
        self._skip()
        return sign

    def either(self) -> Node:
        return self._joined(self.both, "|", lambda a, b: float(bool(a or b)))

    def both(self) -> Node:
        return self._joined(self.compared, "&", lambda a, b: float(bool(a and b)))

    def compared(self) -> Node:
        left = self.sum()
        begun = self.at
        sign = self.take("<>=")
        if not sign:
            return left
        right = self.sum()
        self._need(False, begun, left, right)
        if sign == "=":
            return Node(lambda s: float(as_good_as_equal(left.value(s), right.value(s))), True, lambda s: 0)
        small, large = (left, right) if sign == "<" else (right, left)
        return Node(
            lambda s: float(small.value(s) < large.value(s)), True, lambda s: int(small.value(s) == large.value(s))
        )

    def sum(self) -> Node:
        found = self.atom()
        while True:
            begun = self.at
            sign = self.take("+-")
            if not sign:
                return found
            right = self.atom()
            self._need(False, begun, found, right)
            found = _combined(found, right, (lambda a, b: a + b) if sign == "+" else (lambda a, b: a - b), False)

    def atom(self) -> Node:
        if match := _REGION.match(self.text, self.at):
            self._pass(match)
            return self._region(match[1], match[2].strip())
        if match := _NUMBER.match(self.text, self.at):
            self._pass(match)
            number = float(match[0])
            return Node(lambda s: number, False, lambda s: 0)
        bracket = self.take("([")
        if not bracket:
            self.refuse("there should be a region such as (2;%condition%), a number or a bracket")
        self.depth += 1
        if self.depth > DEEPEST:
            self.refuse(f"more than {DEEPEST} brackets are within each other")
        inner = self.either()
        if not self.take(_CLOSING[bracket]):
            self.refuse(f"a {_CLOSING[bracket]} should close the bracket")
        self.depth -= 1
        return inner

    def _region(self, number: str, condition: str) -> Node:
        if number == ALL:
            self.references.append(Reference(condition, None))
            return Node(lambda s: sum(s[condition].values()), False, lambda s: 0)
        region = int(number)
        self.references.append(Reference(condition, region))
        return Node(lambda s: s[condition][region], False, lambda s: 0)

    def _joined(self, part: Callable[[], Node], sign: str, how: Callable[[float, float], float]) -> Node:
        found = part()
        while True:
            begun = self.at
            if not self.take(sign):
                return found
            right = part()
            self._need(True, begun, found, right)
            found = _combined(found, right, how, True)

    def _need(self, truth: bool, at: int, *parts: Node) -> None:
        """Both sides of the operator at that place must be comparisons (truth), or numbers."""
        if any(one.truth != truth for one in parts):
            self.at = at
            self.refuse("both sides should be comparisons" if truth else "both sides should be numbers")

    def _pass(self, match: re.Match[str]) -> None:
        self.at = match.end()
        self._skip()

    def _skip(self) -> None:
        while self.rest[:1].isspace():
            self.at += 1


def as_good_as_equal(a: float, b: float) -> bool:
    """The published tolerance."""
    return abs(a - b) <= ABSOLUTE + RELATIVE * abs(b)


def _combined(left: Node, right: Node, how: Callable[[float, float], float], truth: bool) -> Node:
    return Node(lambda s: how(left.value(s), right.value(s)), truth, lambda s: left.ties(s) + right.ties(s))
