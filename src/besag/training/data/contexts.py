"""Text with what stands beside it: a header of fields for each document, and which documents belong together.

A header is a line of its own, tokenised as one; its fields are remembered as tags are. It lies in a second cache:
document d of both belong together. What documents are related to is read anew at each start, since it is small. Knows
sources and caches; knows no passages.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from besag.arrays import Ints
from besag.errors import BesagError
from besag.training.data import sources
from besag.training.data.cache import Cache, prepared
from besag.training.data.related import Related, by_group, by_links
from besag.training.data.rows import Document
from besag.training.data.sources import Which
from besag.training.recipe import Data
from besag.vocabulary import Vocabulary


class Contexts(NamedTuple):
    text: Cache
    headers: Cache | None  # document d is the header of document d of the text
    related: Related | None

    @property
    def header_sizes(self) -> Ints:
        """(D,) tokens of each header."""
        if self.headers is None:
            return np.zeros(len(self.text.documents) - 1, np.int64)
        return np.diff(self.headers.documents)


def prepare(data: Data, vocabulary: Vocabulary, folder: str | Path, text: Cache, which: Which = "train") -> Contexts:
    """What stands beside the documents of `text`, which was made of the same data."""
    headers = related = None
    count = len(text.documents) - 1
    if data.header is not None:
        made_of = {**sources.fingerprint(data, which), "header": data.header}
        headers = prepared(_headers(data, which), vocabulary, folder, f"{which}-headers", made_of)
        _refuse_unequal(len(headers.documents) - 1, count, "headers")
    if data.links is not None:
        related = by_links(sources.documents(data, which))
    elif data.group is not None:
        found = sources.documents(data, which)
        related = by_group(None if one.beside is None else one.beside.group for one in found)
    if related is not None:
        _refuse_unequal(len(related.low), count, "documents")
    return Contexts(text, headers, related)


def _headers(data: Data, which: Which) -> Iterator[Document]:
    """The headers as documents of their own, each field a tag."""
    for document in sources.documents(data, which):
        assert document.beside is not None
        yield Document(document.beside.header, None, document.origin, list(document.beside.fields))


def _refuse_unequal(found: int, count: int, what: str) -> None:
    if found != count:
        raise BesagError(
            f"there are {found:,} {what}, and {count:,} documents with tokens: some hold nothing that this tokenizer "
            "can write. Leave such rows out"
        )
