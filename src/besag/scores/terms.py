"""A teacher's terms on disk: a file of JSON lines that grows as texts are scored, and is read again by the next run.

    {"kind": "besag terms", "teacher": …}            the first line: whose terms they are
    {"text": "The cats sleep.", "terms": [−2.1, …]}   one a text; no terms where it could not be scored

A text is found again by what it says, so a run that was killed goes on, and one with more texts scores the new ones
alone. Terms are written with all digits of a float64, so that a run that is resumed learns from the numbers that an
uninterrupted one learns from. The first line is written with the first text. A last line that was torn is cut off; a
file that does not begin with a whole first line of this form, and one with another line that cannot be read, is
rejected and left as it is.
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
        self._head = None if whole else head  # to be written with the first text

    def missing(self, texts: Iterable[str]) -> Iterator[str]:
        """Those without terms, in order."""
        return (text for text in texts if text not in self.terms)

    def add(self, score: Score) -> None:
        whole = score.status == "ok" and bool(np.isfinite(score.log_probs).all())
        terms = np.asarray(score.log_probs if whole else [], np.float64)
        self.terms[score.text] = terms
        if self._head is not None:
            self._append(self._head)
            self._head = None
        self._append({"text": score.text, "terms": terms.tolist()})

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
        found = {}
        with open(path, "rb") as file:
            first = file.readline()
            if not first:
                return 0, {}
            row = _parsed(first) if first.endswith(b"\n") else None
            if row is None or row.get("kind") != KIND:
                raise BesagError(
                    f"{quoted(path)} exists and does not begin as a file of a teacher's terms: move it away, or choose "
                    "another --output"
                )
            if row != head:
                if force:
                    return 0, {}
                other = "; ".join(differences(row, head))
                raise BesagError(
                    f"{quoted(path)} holds the terms of another teacher ({other}): choose another --output, or use "
                    "--force to start again"
                )
            whole = len(first)
            for number, line in enumerate(file, 2):
                if not line.endswith(b"\n"):
                    break  # torn: only the last can be
                row = _parsed(line)
                terms = None if row is None else _terms(row)
                if terms is None:
                    said = quoted(line.decode("utf-8", "replace").rstrip())
                    raise BesagError(
                        f"{path}, line {number}: {said} is no text with its terms: remove the line, and its text is "
                        "scored again"
                    )
                found[terms[0]] = terms[1]
                whole += len(line)
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
