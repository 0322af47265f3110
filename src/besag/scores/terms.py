"""A teacher's terms on disk: a file of JSON lines that grows as texts are scored, and is read again by the next run.

    {"kind": "besag terms", "teacher": …}            the first line: whose terms they are
    {"text": "The cats sleep.", "terms": [−2.1, …]}   one a text; no terms where it could not be scored

A text is found again by what it says, so a run that was killed goes on, and one with more texts scores the new ones
alone. A last line that was torn is cut off. Knows nothing of how terms are computed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from besag.arrays import Floats
from besag.errors import BesagError, quoted
from besag.files.appending import Appended
from besag.files.claim import Claim
from besag.files.progress import differences
from besag.scores.score import Score

KIND = "besag terms"


class Kept:
    """The terms of one teacher. One process at a time; `close` it."""

    def __init__(self, path: str, about: Mapping[str, Any], *, force: bool = False) -> None:
        """`about` the teacher: what must be the same for its terms to be; `force` begins anew where it is not."""
        self.path = path
        self._claim = Claim(path)
        self.terms: dict[str, Floats] = {}
        self._file = Appended(path)
        head = json.loads(json.dumps({"kind": KIND, **about}))
        try:
            whole, found = self._read(path, head, force)
        except BesagError:
            self._claim.release()
            raise
        self.terms.update(found)
        self._file.keep(whole)
        if not whole:
            self._append(head)

    def missing(self, texts: Iterable[str]) -> Iterator[str]:
        """Those without terms, in order."""
        return (text for text in texts if text not in self.terms)

    def add(self, score: Score) -> None:
        terms = score.log_probs if score.status == "ok" else np.empty(0)
        self.terms[score.text] = terms
        self._append({"text": score.text, "terms": [float(f"{term:.7g}") for term in terms]})

    def of(self, texts: Iterable[str]) -> dict[str, Floats]:
        """The terms of each of these that could be scored."""
        return {text: self.terms[text] for text in texts if len(self.terms.get(text, ()))}

    def flush(self) -> None:
        self._file.size()

    def close(self) -> None:
        try:
            self._file.close()
        finally:
            self._claim.release()

    def _append(self, row: Mapping[str, Any]) -> None:
        self._file.append((json.dumps(row, ensure_ascii=True) + "\n").encode())

    def _read(self, path: str, head: Mapping[str, Any], force: bool) -> tuple[int, dict[str, Floats]]:
        """How many bytes of the file stay, and the terms in them."""
        if not os.path.exists(path):
            return 0, {}
        whole, found, first = 0, {}, True
        with open(path, "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                row = _parsed(line)
                if first and (row is None or row.get("kind") != KIND):
                    raise BesagError(f"{quoted(path)} is there, and holds no terms of a teacher: move it away")
                if first and row != head:
                    if force:
                        return 0, {}
                    other = "; ".join(differences(row or {}, head))
                    raise BesagError(
                        f"{quoted(path)} holds the terms of another teacher ({other}): choose another --output, or say "
                        "--force to begin anew"
                    )
                if not first:
                    terms = None if row is None else _terms(row)
                    if terms is None:
                        break
                    found[terms[0]] = terms[1]
                whole, first = whole + len(line), False
        return whole, found


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _terms(row: Mapping[str, Any]) -> tuple[str, Floats] | None:
    text, terms = row.get("text"), row.get("terms")
    if not isinstance(text, str) or not isinstance(terms, list):
        return None
    try:
        found = np.array(terms, np.float64)
    except (TypeError, ValueError):
        return None
    return (text, found) if found.ndim == 1 and np.isfinite(found).all() else None
