"""Regular expressions as trees: what Python's `re` would match, read so that it can be followed letter by letter.

Only the structure is read here: one part after another, choices, repetitions, groups. What a single character may be
("a", ".", "\\w", "[^aeiou]") stays a pattern of one character that `re` itself answers, so there is nothing to get
wrong about it. Anchors may stand at the ends, where a match of the whole text has them anyway. What a finite automaton
cannot follow, or not easily, is `Unsupported`: looking around, back references, flags inside, "\\b".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "u": re.UNICODE}
ESCAPES = {"x": 2, "u": 4, "U": 8}  # hexadecimal digits
COUNT = re.compile(r"\{(\d*)(,?)(\d*)\}")


class Unsupported(Exception):
    """A part of the pattern that is not read here."""


@dataclass(frozen=True)
class Char:
    """One character, any that the pattern matches."""

    pattern: str


@dataclass(frozen=True)
class Row:
    """One part after the other."""

    parts: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Choice:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    part: Node
    least: int
    most: int | None


@dataclass(frozen=True)
class Here:
    """The mark, which stands at the beginning or the end of a place and is no character."""


@dataclass(frozen=True)
class Around:
    """A part with the mark somewhere in it, at its beginning or at its end."""

    part: Node


Node: TypeAlias = Char | Row | Choice | Repeat | Here | Around


def parse(pattern: str) -> tuple[Node, re.RegexFlag]:
    """The tree of a pattern that `re` accepts, and its flags."""
    found = re.match(r"\(\?([a-zA-Z]+)\)", pattern)
    flags = re.NOFLAG
    if found:
        for letter in found.group(1):
            if letter not in FLAGS:
                raise Unsupported(f"the flag (?{letter})")
            flags |= FLAGS[letter]
        pattern = pattern[found.end() :]
    reader = _Reader(pattern)
    tree = reader.choice()
    if reader.at < len(pattern):
        raise Unsupported(pattern[reader.at :])
    return tree, flags


@dataclass
class _Reader:
    pattern: str
    at: int = 0

    def choice(self) -> Node:
        parts = [self.row()]
        while self._take("|"):
            parts.append(self.row())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def row(self) -> Node:
        parts = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            parts.append(self.repeated(self.atom()))
        return parts[0] if len(parts) == 1 else Row(tuple(parts))

    def repeated(self, part: Node) -> Node:
        least: int = 1
        most: int | None = 1
        counted = COUNT.match(self.pattern, self.at)
        if self._take("*"):
            least, most = 0, None
        elif self._take("+"):
            least, most = 1, None
        elif self._take("?"):
            least, most = 0, 1
        elif counted and counted.group() != "{}":  # anything else in braces stands for itself
            low, comma, high = counted.groups()
            least = int(low or 0)
            most = int(high) if high else (None if comma else least)
            self.at = counted.end()
        else:
            return part
        if self._take("+"):
            raise Unsupported("a repetition that never gives back")
        self._take("?")  # lazy or not, the same texts match
        return Repeat(part, least, most)

    def atom(self) -> Node:
        start, letter = self.at, self.pattern[self.at]
        self.at += 1
        if letter == "(":
            return self._group()
        if letter == "[":
            return Char(self.pattern[start : self._class_end()])
        if letter == "\\":
            return self._escape()
        if letter == "." or (letter == "^" and start == 0) or (letter == "$" and self.at == len(self.pattern)):
            return Char(".") if letter == "." else Row()
        if letter in "^$":
            raise Unsupported(f"{letter} inside")
        return Char(re.escape(letter))

    def _group(self) -> Node:
        if self._take("?"):
            named = re.compile(r":|P<\w+>").match(self.pattern, self.at)
            if not named:
                raise Unsupported(self.pattern[self.at - 2 :])
            self.at = named.end()
        inner = self.choice()
        self._take(")")
        return inner

    def _class_end(self) -> int:
        self._take("^")
        self._take("]")  # which stands for itself if it comes first
        while not self._take("]"):
            self.at += 2 if self.pattern[self.at] == "\\" else 1
        return self.at

    def _escape(self) -> Node:
        letter = self.pattern[self.at]
        self.at += 1
        if letter in ESCAPES:
            digits = self.pattern[self.at : self.at + ESCAPES[letter]]
            self.at += len(digits)
            return Char(f"\\{letter}{digits}")
        if letter.isdigit() or letter in "AbBZzN":
            raise Unsupported(f"\\{letter}")
        return Char(f"\\{letter}")

    def _take(self, letter: str) -> bool:
        if self.pattern.startswith(letter, self.at):
            self.at += 1
            return True
        return False
