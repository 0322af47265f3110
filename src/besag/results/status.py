"""Whether a result can be used, or why not: one list for all kinds of results.

A status is its own short name ("ok", "mask"), in JSON and tables too, and has a sentence for a reader. What belongs to
one result alone (how large the residual still is, how many passes were spent) is none of a status's business: that
stands in the facts and details of the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Status(StrEnum):
    """`status == "ok"` holds, `str(status)` is the name, and `status.sentence` says what it means."""

    sentence: str

    def __new__(cls, name: str, sentence: str = "") -> Status:  # `Status("ok")` finds a member by its name
        one = str.__new__(cls, name)
        one._value_, one.sentence = name, sentence
        return one

    OK = "ok", "there is nothing to add to the numbers"

    # of a text
    EMPTY = "empty", "the text is empty"
    UNDECODABLE = "undecodable", "the text holds bytes that are not UTF-8, or half of a surrogate pair"
    UNKNOWN = "unknown", "the text holds only unknown tokens"
    MASK = "mask", "the text holds the mask token, so a part of it is hidden"
    LONG = "long", "the text has more tokens than the model sees"
    LONG_SOURCE = "long source", "the source of the text has more tokens than the model reads"
    NO_CONTEXT = "no context", "the row has no context, where one was to be shown with its text"
    UNREADABLE = "unreadable", "the row could not be read: it is not what its format says"
    REFUSED = "refused", "the text cannot be asked this, and the reason stands beside it"
    FAILED = "failed", "an error ended the work on this row; a resumed job tries it again"
    NOT_FINITE = "not finite", "the model answered with a number that is not finite"

    # of two places of a text
    SHORT = "short", "the text has no (further) two places of this kind"
    FAR = "far", "the places are too far apart for the model"

    # of many rows together
    PARTLY = "partly", "some rows have no numbers, and their own status says why"

    # of numbers that are there all the same
    NOT_CONVERGED = "not converged", "an iteration ended before it converged, so the numbers are not final"
    UNSURE = "unsure", "there is too little to go by, so the numbers should not be relied on"
    NEVER_MIXES = "never mixes", "the chain does not come to one law, so it has no mixing time"

    REFUTED = "refuted", "what was claimed does not hold in these numbers"

    # of a search
    SOLVED = "solved", "as many solutions as were wanted"
    ALL = "all", "fewer solutions than wanted, and these are all there are"
    UNSATISFIABLE = "unsatisfiable", "there is no solution"
    NOT_FOUND = "not found", "fewer solutions than wanted among the candidates; there may be more"
    BUDGET = "budget", "fewer solutions than wanted when the forward passes were spent"

    # of a text that was written anew
    HIDDEN = "hidden", "some places are still hidden"
    MISREAD = "misread", "the text reads as other tokens than were drawn"
    FIXED = "fixed", "no word of the text may change"
    UNLIKE = "unlike", "the new texts were too unlike the old one, so it is as it was"
    UNREAD = "unread", "the new texts would read as other tokens, or with a sign for a word, so the old one stays"
    SAME = "same", "the words of the text were drawn again, so it is as it was"
    REPEATED = "repeated", "no further copy was found that differs from the others, so the text is as it was"

    @property
    def fine(self) -> bool:
        """Is there nothing that a program should complain about?"""
        return self in (Status.OK, Status.SOLVED, Status.ALL)


def together(statuses: Iterable[Status]) -> Status:
    """Of rows that are reported as one: not converged where one of them is not, "partly" where one has no numbers."""
    found = set(statuses) - {Status.OK}
    if not found:
        return Status.OK
    return Status.NOT_CONVERGED if Status.NOT_CONVERGED in found else Status.PARTLY
