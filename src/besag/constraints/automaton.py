"""Texts read letter by letter: a finite automaton that says which texts are right, and may count as it goes.

    state s, letter of class c  →  state to[s, c], and add[s, c] more to the count
    a text is right if its last state accepts, and the count is within [least, most]

`language` makes one of a regular expression (by subsets, then merged where two states cannot be told apart), without a
count. `counter` is the other kind: few states, and a count of characters or words. Letters are put into classes by
asking every pattern of one character about every letter of an alphabet (`alphabet.py`).

The mark (`regex.Here`, `regex.Around`) is one class more, for "here a place begins" or "here it ends".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from besag.arrays import Bools, Ints
from besag.constraints.alphabet import Alphabet
from besag.constraints.regex import Around, Char, Choice, Here, Node, Repeat, Row, Unsupported

Path: TypeAlias = tuple[Ints, Ints]  # (S,) for each state, the one that a string leads to, and what it adds

MOST_STATES = 256  # of a language that is followed; larger ones are only checked at the end
MOST_PARTS = 4000  # of its expression, repetitions written out
MARK = -1  # as the letter of an edge


@dataclass(frozen=True, eq=False)
class Automaton:
    """It begins in state 0."""

    alphabet: Alphabet
    classes: Ints  # (A,) of its letters
    to: Ints  # (S, C)
    add: Ints  # (S, C)
    accept: Bools  # (S,)
    mark: Ints | None = None  # (S,) where the mark leads
    least: int = 0
    most: float = np.inf

    @property
    def size(self) -> int:
        return len(self.to)

    @cached_property
    def wide(self) -> Ints:
        """The classes of letters that are written with more than one byte."""
        return np.unique(self.classes[self.alphabet.wide])

    def codes(self, text: str) -> list[int]:
        """The classes of the letters of a text."""
        return [int(self.classes[self.alphabet.index[letter]]) for letter in text]

    @cached_property
    def hopeful(self) -> Bools:
        """(S,) from where some text would still be right."""
        steps = [self.to] if self.mark is None else [self.to, self.mark[:, None]]
        found = self.accept
        while True:
            more = found | np.any([found[step].any(1) for step in steps], 0)
            if (more == found).all():
                return found
            found = more

    def read(self, text: str) -> Path:
        """Where a string leads from each state."""
        state, count = np.arange(self.size), np.zeros(self.size, np.int64)
        for number in self.codes(text):
            count += self.add[state, number]
            state = self.to[state, number]
        return state, count

    def complement(self) -> Automaton:
        """Right are the texts that are not."""
        return replace(self, accept=~self.accept)

    def together(self, other: Automaton) -> Automaton:
        """Both read, of one alphabet, and one of them may count; the pair of states (s, t) is number s · T + t."""
        first, second = np.divmod(np.arange(self.size * other.size), other.size)  # (S · T,)
        width = other.to.shape[1]
        kinds, classes = np.unique(self.classes * width + other.classes, return_inverse=True)
        left, right = np.divmod(kinds, width)
        return Automaton(
            self.alphabet,
            classes,
            self.to[:, left][first] * other.size + other.to[:, right][second],
            self.add[:, left][first] + other.add[:, right][second],
            self.accept[first] & other.accept[second],
            None,
            max(self.least, other.least),
            min(self.most, other.most),
        )

    def accepts(self, text: str) -> bool:
        state, count = (part[0] for part in self.read(text))
        return bool(self.accept[state]) and self.least <= count <= self.most


# ---- languages


def language(tree: Node, flags: re.RegexFlag, alphabet: Alphabet) -> Automaton:
    """The texts over an alphabet that match as a whole."""
    edges = _Edges()
    first, last = edges.build(tree)
    patterns = list(dict.fromkeys(letter for letter, _, _ in edges.steps if isinstance(letter, str)))
    classes, kinds = alphabet.classes(patterns, flags)  # (A,), (P, C)
    number = {pattern: index for index, pattern in enumerate(patterns)}
    moves: list[dict[int, list[int]]] = [{} for _ in range(edges.states)]  # state → pattern or MARK → states
    for letter, start, end in edges.steps:
        moves[start].setdefault(number[letter] if isinstance(letter, str) else MARK, []).append(end)

    begin = edges.closure([first])
    states, table = {begin: 0}, list[list[int]]()
    while len(table) < len(states):
        subset, targets = list(states)[len(table)], []
        for kind in (*kinds.T, None):
            reached = [
                end
                for state in subset
                for letter, ends in moves[state].items()
                if (letter == MARK if kind is None else letter != MARK and kind[letter])
                for end in ends
            ]
            targets.append(states.setdefault(edges.closure(reached), len(states)))
        table.append(targets)
        if len(states) > 4 * MOST_STATES:
            raise Unsupported(f"an automaton of more than {4 * MOST_STATES} states")
    to, accept = np.array(table), np.array([last in subset for subset in states])
    to, accept = _merged(to, accept)
    if len(to) > MOST_STATES:
        raise Unsupported(f"an automaton of {len(to)} states")
    return Automaton(alphabet, classes, to[:, :-1], np.zeros_like(to[:, :-1]), accept, to[:, -1])


def _merged(to: Ints, accept: Bools) -> tuple[Ints, Bools]:
    """States that no text can tell apart become one; the first stays the first."""
    kind = accept.astype(np.int64)
    while True:
        seen, finer = np.unique(np.column_stack([kind, kind[to]]), axis=0, return_inverse=True)
        if len(seen) == len(np.unique(kind)):
            break
        kind = finer.reshape(-1)
    _, example, kind = np.unique(kind, return_index=True, return_inverse=True)
    order = np.argsort(example != 0, kind="stable")  # the one that holds state 0 in front
    rank = np.argsort(order)
    example = example[order]
    return rank[kind[to[example]]], accept[example]


@dataclass
class _Edges:
    """A tree as states with steps between them, some of which read nothing."""

    states: int = 0
    steps: list[tuple[str | int, int, int]] = field(default_factory=list)
    free: dict[int, list[int]] = field(default_factory=dict)

    def build(self, node: Node) -> tuple[int, int]:
        """The first and the last state of a part."""
        if self.states > MOST_PARTS:
            raise Unsupported(f"more than {MOST_PARTS} parts")
        first, last = self._new(), self._new()
        if isinstance(node, Char):
            self.steps.append((node.pattern, first, last))
        elif isinstance(node, Here):
            self.steps.append((MARK, first, last))
        elif isinstance(node, Row):
            here = first
            for part in node.parts:
                here = self._then(here, part)
            self._join(here, last)
        elif isinstance(node, Choice):
            for part in node.parts:
                self._join(self._then(first, part), last)
        elif isinstance(node, Repeat):
            self._repeat(node, first, last)
        elif isinstance(node, Around):
            before, begin = self.build(node.part), self.states
            after = self.build(node.part)
            shift = after[0] - before[0]
            self.steps += [(MARK, state, state + shift) for state in range(begin - shift, begin)]
            self._join(first, before[0])
            self._join(after[1], last)
        return first, last

    def _repeat(self, node: Repeat, first: int, last: int) -> None:
        here = first
        for _ in range(node.least):
            here = self._then(here, node.part)
        if node.most is None:
            loop, end = self.build(node.part)
            self._join(here, loop)
            self._join(end, loop)
            self._join(end, last)
        else:
            for _ in range(node.most - node.least):
                self._join(here, last)
                here = self._then(here, node.part)
        self._join(here, last)

    def _then(self, here: int, part: Node) -> int:
        """Where one stands after a part that begins here."""
        start, end = self.build(part)
        self._join(here, start)
        return end

    def _join(self, start: int, end: int) -> None:
        self.free.setdefault(start, []).append(end)

    def _new(self) -> int:
        self.states += 1
        return self.states - 1

    def closure(self, states: Iterable[int]) -> frozenset[int]:
        """All states that can be reached without reading anything."""
        found, todo = set(states), list(states)
        while todo:
            for state in self.free.get(todo.pop(), []):
                if state not in found:
                    found.add(state)
                    todo.append(state)
        return frozenset(found)


# ---- counts


def counter(of: Literal["characters", "words"], least: int, most: int | None, alphabet: Alphabet) -> Automaton:
    """Texts of that many characters, or words as `page.words` counts them."""
    bound = np.inf if most is None else most
    if of == "characters":
        one = np.ones((1, 1), np.int64)
        every = np.zeros(len(alphabet.letters), np.int64)
        return Automaton(alphabet, every, one - 1, one, np.ones(1, bool), None, least, bound)
    classes = np.where(alphabet.matching(r"\s"), 0, 1 + alphabet.matching(r"\w"))
    to = np.array([[0, 1, 2], [0, 1, 2], [0, 2, 2]])  # between runs, in a run of signs, in one with a letter
    add = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    return Automaton(alphabet, classes, to, add, np.ones(3, bool), None, least, bound)
