"""Words exchanged for their counterparts in a share of the training documents: counterfactual text.

    he ↔ she, him ↔ her, actor ↔ actress …          data.swap = "gender", or a table of one's own

A network that reads as often of her as of him at every place has nothing to tell them apart by (Lu et al. 2018). A
document is swapped as a whole, so that its pronouns still agree, or not at all, so that no text is read twice
(counterfactual substitution, Hall Maudslay et al. 2019). Which documents, a hash of their text decides: the same ones
in every run, whatever stands around them. Held-out text stays as it is.

The words of the table are the given spans of every document, swapped or not: a law of masks about spans hides them, as
Gender-tuning hides gender words (Ghanbarzadeh et al. 2023).

A table has the columns `one`, `other` and perhaps `before`, a regular expression that what follows must match. Of
several rows for a word the first one that fits decides: "her" is "his" before a noun, and "him" elsewhere. An entry in
lower case fits any case, which its counterpart takes on; one with a capital fits as it is written.

Knows text and tables; no tokenizer and no grammar.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

from besag.errors import BesagError, nearest, quoted
from besag.files import columns, rows
from besag.training.data.rows import Document

TABLES = {"gender": Path(__file__).with_name("gender.tsv")}
SALT = "swapped or not: "  # so that this share and the one that is held out have nothing to do with each other


class Counterpart(NamedTuple):
    word: str
    before: re.Pattern[str] | None  # what must follow; None: anything


class Swaps:
    """A table of words and their counterparts, both ways, and which share of documents it changes."""

    def __init__(self, table: Mapping[str, list[Counterpart]], rate: float) -> None:
        self.table, self.rate = table, rate
        longest_first = sorted(table, key=len, reverse=True)
        self._words = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)

    @classmethod
    def read(cls, name: str, rate: float) -> Self:
        """The table of a name, or in a file."""
        path = file_of(name)
        table: dict[str, list[Counterpart]] = {}
        for row in rows.read(str(path), None if rows.format_of(str(path)) != "text" else "tsv"):
            if not isinstance(row.values, Mapping):
                raise BesagError(f"{row.where}: a table of words has the columns one and other, not a text alone")
            one, other = (columns.text(row.values, side, row.where).strip() for side in ("one", "other"))
            if not one or not other or one == other:
                raise BesagError(f"{row.where}: {quoted(one)} and {quoted(other)}: give a word and its counterpart")
            given = columns.value(row.values, "before", row.where) if "before" in row.values else None
            before = _pattern(given, row.where)
            table.setdefault(one, []).append(Counterpart(other, before))
            table.setdefault(other, []).append(Counterpart(one, before))
        if not table:
            raise BesagError(f"{path} holds no words: give rows with one and other")
        return cls(table, rate)

    def __call__(self, document: Document) -> Document:
        """The document, swapped or as it was; the words of the table are its spans."""
        text, spans = self.swapped(document.text, change=self.chosen(document.text))
        return document._replace(text=text, spans=spans)

    def chosen(self, text: str) -> bool:
        """Is this one of the documents that are swapped?"""
        digest = hashlib.blake2b((SALT + text).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") < self.rate * 2.0**64

    def swapped(self, text: str, *, change: bool = True) -> tuple[str, list[tuple[int, int]]]:
        """The text with all words exchanged at once, and where they stand in it; without `change`, where they stand."""
        parts, spans, end, size = [], [], 0, 0
        for found in self._words.finditer(text):
            other = self._counterpart(found[0], text, found.end())
            if other is None:
                continue
            written = other if change else found[0]
            parts += [text[end : found.start()], written]
            size += found.start() - end
            spans.append((size, size + len(written)))
            end, size = found.end(), size + len(written)
        return "".join([*parts, text[end:]]), spans

    def _counterpart(self, word: str, text: str, end: int) -> str | None:
        """What takes the place of a word that is followed by the text from `end` on."""
        entries = self.table.get(word) or self.table.get(word.lower(), [])
        for one in entries:
            if one.before is None or one.before.match(text, end):
                return _cased(one.word, word)
        return None


def file_of(name: str) -> Path:
    """Where the table of this name lies."""
    path = TABLES.get(name, Path(name))
    if not path.is_file():
        raise BesagError(
            f"data.swap = {quoted(name)} is neither a table of besag ({', '.join(TABLES)}) nor a file."
            f"{nearest(name, TABLES)}"
        )
    return path


def _pattern(given: object, where: str) -> re.Pattern[str] | None:
    if not given:
        return None
    try:
        return re.compile(str(given), re.IGNORECASE)
    except re.error as failure:
        raise BesagError(f"{where}: before is {quoted(given)}, which is no regular expression: {failure}") from failure


def _cased(word: str, like: str) -> str:
    """
    >>> _cased("she", "He"), _cased("she", "HE"), _cased("Mrs", "Mr")
    ('She', 'SHE', 'Mrs')
    """
    if word != word.lower():  # written as it is in the table
        return word
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word
