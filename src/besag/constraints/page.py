"""The text that is to be written, as constraints see it: free places 0 … n − 1 in the order of the text.

`Page` knows what stands between the places and what every token writes. `Writing` is the page with a token at some or
all places: its text, the letters of a place, and words. A *word* is a run of characters without white space that has a
letter or digit in it, without the signs at its ends: "Don't" in '"Don't!"'. Which tokens spell it does not matter.

While some places are open, a run may still grow: by a token joined to its end where an open place follows. The others
are *settled*. Knows no constraint and no model but its vocabulary.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from besag.arrays import Bools, Ints
from besag.constraints.alphabet import Alphabet
from besag.constraints.pieces import Pieces, pieces
from besag.places.filling import UNFINISHED, filled
from besag.samplers.sheet import Sheet
from besag.vocabulary import Encoded, Vocabulary

RUN, EDGE = re.compile(r"\S+"), re.compile(r"^\W+|\W+$")


class Gap(NamedTuple):
    """What stands between a place and the place before it."""

    text: str  # with the space that is written between two neighbouring masks, if words have one
    masks: bool  # it stands between two neighbouring masks: after a token that is nothing but a space, it is left out
    first: bool  # nothing stands before: the token is written alone
    follows: bool  # its token follows directly on that of the place before
    ended: bool  # a given token stands before it, and nothing is joined to that


class Strings(NamedTuple):
    """What tokens write, each distinct string once, the longest first."""

    distinct: list[str]  # (D,)
    of: Ints  # (V',) the string of each outcome
    lengths: Ints  # (D,)
    letters: Ints  # (D, longest) numbers of letters in the alphabet, 0 behind the end
    torn: Bools  # (D,)


@dataclass(frozen=True, eq=False)
class Page:
    sheet: Sheet
    width: int  # V
    outcomes: Ints  # the tokens that may stand at a free place, in order
    named: str = ""  # letters that are spoken of, though no token may write them alone

    @cached_property
    def order(self) -> list[int]:
        """The numbers that the sheet gives to the places, in the order of the text."""
        return sorted(range(len(self.sheet.positions)), key=self.sheet.positions.__getitem__)

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """(n,) where the places stand among the encoded tokens."""
        return tuple(self.sheet.positions[index] for index in self.order)

    @cached_property
    def at(self) -> Ints:
        """(n,) where they stand in the ids that the model is shown."""
        return np.array([self.sheet.at[index] for index in self.order])

    @property
    def size(self) -> int:
        return len(self.positions)

    @property
    def vocabulary(self) -> Vocabulary:
        return self.sheet.vocabulary

    @property
    def encoded(self) -> Encoded:
        return self.sheet.encoded

    @property
    def mask_id(self) -> int:
        assert self.vocabulary.mask_id is not None  # a sheet has free places
        return self.vocabulary.mask_id

    @cached_property
    def pieces(self) -> Pieces:
        return pieces(self.vocabulary, self.width, tuple(self.outcomes.tolist()))

    def letters(self, place: int) -> tuple[str, ...]:
        """(V,) what each token writes at a place."""
        return self.pieces.first if self.gaps[place].first else self.pieces.letters

    @cached_property
    def gaps(self) -> tuple[Gap, ...]:
        """(n,)"""
        encoded, found, end = self.encoded, [], 0
        string = self.vocabulary.tokenizer.convert_tokens_to_string
        for place, position in enumerate(self.positions):
            start, stop = encoded.offsets[position].tolist()
            follows = place > 0 and self.positions[place - 1] == position - 1
            first = position == 0 or bool(encoded.special[position - 1])
            text = encoded.text[end:start]
            masks = follows and bool((encoded.ids[position - 1 : position + 1] == self.mask_id).all())
            raw = "" if follows or first else str(string([self.vocabulary.token(encoded.ids[position - 1])]))
            ended = not (follows or first) and (not raw or raw[-1].isspace())
            found.append(Gap(text or " " * (masks and self.vocabulary.spaced), masks, first, follows, ended))
            end = stop
        return tuple(found)

    @cached_property
    def tail(self) -> str:
        """What stands after the last place."""
        return self.encoded.text[int(self.encoded.offsets[self.positions[-1], 1]) :]

    def around(self, place: int) -> tuple[str, str] | None:
        """The given text that touches a place on its left and right, if it and a token alone are the whole run there.

        That is so for a token that is not joined to what stands before, and if nothing can be joined behind.
        """
        gap, last = self.gaps[place], place == self.size - 1
        behind = self.tail if last else self.gaps[place + 1].text.rstrip()
        right = RUN.match(behind)
        left = gap.text.split()[-1] if gap.text and not gap.text[-1].isspace() else ""
        open_left = place > 0 and len(left) == len(gap.text)
        open_right = not last and (right.end() if right else 0) == len(behind)
        return None if open_left or open_right else (left, right.group() if right else "")

    @cached_property
    def alphabet(self) -> Alphabet:
        """The letters that a text on this page may be made of."""
        known = self.pieces
        return Alphabet.of(
            [*known.spaces, self.named, self.encoded.text, *known.letters, *known.first], bool(known.torn.any())
        )

    def strings(self, first: bool) -> Strings:
        """What the outcomes write: first in a text, or not."""
        return self._first_strings if first else self._inner_strings

    @cached_property
    def _first_strings(self) -> Strings:
        return self._strings(self.pieces.first)

    @cached_property
    def _inner_strings(self) -> Strings:
        return self._strings(self.pieces.letters)

    def _strings(self, written: tuple[str, ...]) -> Strings:
        own = [written[id] for id in self.outcomes.tolist()]
        distinct = sorted({*own}, key=lambda text: (-len(text), text))
        number = {text: index for index, text in enumerate(distinct)}
        letters = np.zeros((len(distinct), len(distinct[0])), dtype=np.int64)
        for row, text in zip(letters, distinct, strict=True):
            row[: len(text)] = [self.alphabet.index[letter] for letter in text]
        lengths = np.array([len(text) for text in distinct])
        torn = np.array([UNFINISHED in text for text in distinct])
        return Strings(distinct, np.array([number[text] for text in own]), lengths, letters, torn)

    def write(self, tokens: tuple[int | None, ...], upto: int | None = None) -> str:
        """The text with these tokens at its places, or at those before `upto`; None writes a mask."""
        ids = [self.mask_id if token is None else token for token in tokens[:upto]]
        return filled(self.vocabulary, self.encoded, self.positions[:upto], ids)


@dataclass(frozen=True, eq=False)
class Writing:
    """The page with a token at each place, or None where it is open."""

    page: Page
    tokens: tuple[int | None, ...]  # (n,)

    @cached_property
    def text(self) -> str:
        """Open places are written as masks."""
        return self.page.write(self.tokens)

    @property
    def complete(self) -> bool:
        return None not in self.tokens

    def letters(self, place: int) -> str | None:
        """What the token at a place writes; None where it is open."""
        token = self.tokens[place]
        return None if token is None else self.page.letters(place)[token]

    def span(self, place: int) -> tuple[int, int]:
        """Where in the text the letters of a place stand; bytes that only finish a letter have none of their own."""
        end = self._end(place)
        between = self.text[self._end(place - 1) if place else 0 : end]
        gap = self.page.gaps[place].text
        between = between.removeprefix(gap) if between.startswith(gap) else between.removeprefix(gap.rstrip())
        return end - len(between.lstrip()), end

    def _end(self, place: int) -> int:
        """Where the letters of a place end in the text."""
        rest = self.page.encoded.text[int(self.page.encoded.offsets[self.page.positions[place], 1]) :]
        sofar = self.page.write(self.tokens, place + 1).removesuffix(rest)
        pairs = enumerate(zip(sofar, self.text, strict=False))
        differ = next((at for at, (one, other) in pairs if one != other), len(sofar))
        return min(differ + 1, len(sofar))  # one beyond, if the letter there was unfinished up to here

    def word_at(self, place: int) -> str | None:
        """The word that the last letter of a place belongs to; "" if it has none; None while it is not settled."""
        own = self.letters(place)
        if own is None:
            return None
        if not own:
            return ""
        last = self._end(place) - 1
        for match, settled in self._runs:
            if match.start() <= last < match.end():
                return _word(match.group()) if settled else None
        return ""

    @property
    def words(self) -> list[str]:
        """All words of a complete text."""
        return [word for match, _ in self._runs if (word := _word(match.group()))]

    def word(self, number: int) -> str | None:
        """The word of that number, negative from the end; "" if there are fewer; None while it is not settled."""
        runs = self._runs if number >= 0 else self._runs[::-1]
        left = number if number >= 0 else -number - 1
        for match, settled in runs:
            if not settled:
                return None
            if word := _word(match.group()):
                if not left:
                    return word
                left -= 1
        return ""

    @cached_property
    def _runs(self) -> list[tuple[re.Match[str], bool]]:
        """The runs without white space, each with whether it is settled."""
        runs = list(RUN.finditer(self.text))
        if self.complete:
            return [(run, True) for run in runs]
        mask = self.page.vocabulary.mask_token or ""
        after = [*(run.group().startswith(mask) for run in runs[1:]), False]
        return [(run, mask not in run.group() and not grows) for run, grows in zip(runs, after, strict=True)]


def _word(run: str) -> str:
    return EDGE.sub("", run)


def words(text: str) -> list[str]:
    """The words of a text."""
    return [word for run in RUN.findall(text) if (word := _word(run))]
