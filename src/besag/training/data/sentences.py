"""Where sentences begin and end in a text, by rules: no model, no language setting, linear time.

A sentence ends at a run of . ! ? … with the quotes and brackets that close after it, if white space follows and what
comes then may begin a sentence. It does not end after a title (Mr.), an initial (J. Smith), a number at its very
beginning (1. Introduction, IV. Of kings), or before a small letter; after what may or may not end one (U.S., Inc.,
p.m.) only where a usual first word follows. The full stops of other scripts need no white space. A line break always
ends one.

Knows characters only. A wrong cut costs training little, since a passage may begin anywhere.
"""

from __future__ import annotations

import re

from besag.checks import checked

_CLOSING = "\"'”’»›)\\]}*_"  # noqa: RUF001
_OPENING = "\"'“‘«‹„¿¡(\\[{*_"  # noqa: RUF001
# Possessive throughout: nothing is read twice, so a line of ten megabytes of full stops takes no longer than others.
_ENDS = re.compile(rf"\n|[.!?…]++[{_CLOSING}]*+|[。！？｡．।॥؟۔።]++[{_CLOSING}」』）】》〉]*+")  # noqa: RUF001
_NEXT = re.compile(rf"\s++[-–—{_OPENING}]*+\s?+([^\W_]?+)", re.UNICODE)  # the first letter of what follows
_WORD = re.compile(r"[^\W_]+")
_BEFORE = re.compile(r"[\w.'’-]+\Z")
_BLANK = re.compile(r"\s*+")
_NUMERAL = re.compile(r"\d+|[IVXLCDM]+")
_REACH = 32  # characters looked at before a full stop


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NEVER = _set(
    "mr mrs ms mx dr prof st mt ft rev hon messrs mme mlle gen col lt sgt capt cmdr maj adm gov sen rep pres supt insp "
    "e.g i.e eg ie vs v cf viz ca approx al esp incl resp ed eds trans hrsg bzw z.b d.h p.ex"
)
_BEFORE_NUMBER = _set(
    "no nos nr fig figs eq eqs sec ch chap vol vols p pp art pt par op bk jan feb mar apr jun jul aug sep sept oct nov "
    "dec tel ext c b d"
)
_SOMETIMES = _set("inc ltd co corp jr sr bros a.m p.m am pm ph.d m.d b.c a.d b.a m.a etc esq")
_FIRST = _set(
    "the a an he she it they we i you this that these those there here his her its their our my your in on at by for "
    "from with after before when while where if as but and or so yet although though however since because until "
    "what who why how which one some many most all no not both each every another other such then thus now later "
    "during despite under over through to according also"
)


@checked
def sentences(text: str) -> list[tuple[int, int]]:
    """(start, end) in characters of each sentence, in order; white space between them belongs to none.

    >>> text = "Dr. Smith paid $3.50. Did he? Yes."
    >>> [text[start:end] for start, end in sentences(text)]
    ['Dr. Smith paid $3.50.', 'Did he?', 'Yes.']
    """
    found: list[tuple[int, int]] = []
    start = _skip(text, 0)
    for match in _ENDS.finditer(text):
        if match.end() <= start or not _ends(text, start, match):
            continue
        end = match.start() if match[0] == "\n" else match.end()
        end = _trim(text, start, end)
        if end > start:
            found.append((start, end))
        start = _skip(text, match.end())
    end = _trim(text, start, len(text))
    if end > start:
        found.append((start, end))
    return found


def _skip(text: str, at: int) -> int:
    """The first character at or after `at` that is not white space."""
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def _trim(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1].isspace():
        end -= 1
    return end


def _ends(text: str, start: int, match: re.Match[str]) -> bool:
    """Does the sentence that began at `start` end at this match?"""
    sign = match[0]
    if sign == "\n" or sign[0] not in ".!?…":
        return True
    follows = _NEXT.match(text, match.end())
    if follows is None:
        return match.end() == len(text)  # a letter, a comma: "3.14", "example.org", "etc.,"
    first = follows[1]
    if not first:  # the end of the text, a dash, a symbol: only what cannot go on with a full stop or a comma
        return follows.end() >= len(text) or text[follows.end()] not in ".,;:!?…)]}"
    if first.islower():
        return False
    return sign[0] != "." or sign.startswith("..") or _stop(text, start, match.start(), follows.start(1))


def _stop(text: str, start: int, at: int, following: int) -> bool:
    """Is the full stop at `at` the end of a sentence, and not of an abbreviation? What follows has a capital."""
    before = _BEFORE.search(text[max(start, at - _REACH) : at])
    if before is None:
        return True
    word = before[0].strip("'’-")
    if _NUMERAL.fullmatch(word) and start + len(word) == at:
        return False  # "1. Introduction", "IV. Of kings": one sentence
    small = word.lower()
    if small in _NEVER:
        return False
    if small in _BEFORE_NUMBER and text[following].isdigit():
        return False
    initial = len(word) == 1 and word.isalpha() and word != "I"  # "World War I. The …"
    dotted = "." in word and all(len(part) == 1 for part in word.split("."))  # U.S, e.g: letters with full stops
    if initial and word.isupper():
        return False
    if dotted or small in _SOMETIMES:
        match = _WORD.match(text, following)
        return match is not None and match[0].lower() in _FIRST
    return True
