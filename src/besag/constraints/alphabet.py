"""The letters that a text may be made of, and their classes: letters that no pattern of some tells apart.

Patterns of one character are asked of all letters at once, as runs in one long string, so that even all letters of
Unicode's first plane take a millisecond.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from besag.arrays import Bools, Ints

MANY = 2**40  # combinations that are kept apart by one number


@dataclass(frozen=True, eq=False)
class Alphabet:
    letters: str  # each once

    @classmethod
    def of(cls, texts: Iterable[str], torn: bool) -> Alphabet:
        """The letters of some texts; where bytes make letters that no token writes alone, all others too."""
        found = set().union(*texts)
        if torn:
            found |= {chr(code) for code in (*range(0x80, 0xD800), *range(0xE000, 0x10000))}
        return cls("".join(sorted(found)))

    def and_those_of(self, text: str) -> Alphabet:
        more = "".join(sorted({*text} - self.index.keys()))
        return Alphabet(self.letters + more) if more else self

    @cached_property
    def index(self) -> dict[str, int]:
        return {letter: index for index, letter in enumerate(self.letters)}

    @cached_property
    def wide(self) -> Bools:
        """(A,) the letters that are written with more than one byte."""
        return np.frombuffer(self.letters.encode("utf-32-le"), dtype="<u4") > 127

    def matching(self, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> Bools:
        """(A,) the letters that match a pattern of one character."""
        found = np.zeros(len(self.letters), dtype=bool)
        for run in re.finditer(f"(?:{pattern})+", self.letters, flags):
            found[run.start() : run.end()] = True
        return found

    def classes(self, patterns: Sequence[str], flags: re.RegexFlag) -> tuple[Ints, Bools]:
        """(A,) the class of each letter, and (P, C) which patterns the letters of each class match."""
        matches = [self.matching(pattern, flags) for pattern in patterns]
        code = np.zeros(len(self.letters), dtype=np.int64)
        for row in matches:
            code = 2 * code + row
            if code.max(initial=0) >= MANY:
                code = np.unique(code, return_inverse=True)[1].reshape(-1)
        _, example, of = np.unique(code, return_index=True, return_inverse=True)
        return of.reshape(-1), np.array([row[example] for row in matches]).reshape(len(patterns), len(example))
