"""What corrections are judged by: changes place by place, GLEU, and a table of confusions to hold a model against.

    changes   what stands at a place of the written text instead; errors are the changes that lead to the reference
    F1        2 · hits / (made + errors): a sentence hits if all its changes are right and there were errors, a
              character if the change at its place is; for detection the places count, whatever stands there
    GLEU      exp(min(0, 1 − r/c) + ¼ Σ_{n ≤ 4} log p_n),
              p_n = Σ max(0, Σ_g min(H_g, R_g) − Σ_{g ∉ R} min(H_g, S_g)) / Σ (n-grams of H)

of hypothesis H, source S and reference R, sums over sentences; c and r are their lengths (Napoles et al. 2015, as they
mended it in 2016). With several references of a sentence one is drawn, and the mean over draws is taken. Knows texts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

import numpy as np

from besag.arrays import Floats, Ints

ORDER = 4  # of the longest n-grams
DRAWS = 500  # of references, as published
UNIT = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)


def units(text: str) -> list[str]:
    """Words between white space; Chinese characters and kana each alone.

    >>> units("an old 朋友")
    ['an', 'old', '朋', '友']
    """
    return UNIT.findall(text)


# ---- changes


def changes(written: str, other: str) -> dict[int, str]:
    """What `other` has in place of the characters of `written`, by their numbers; what it inserts before character i is
    under −1 − i. Texts of one length are compared place by place.

    >>> changes("abc", "axc"), changes("abc", "abcd"), changes("abcd", "acd")
    ({1: 'x'}, {-4: 'd'}, {1: ''})
    """
    if len(written) == len(other):
        return {place: new for place, (old, new) in enumerate(zip(written, other, strict=True)) if old != new}
    found: dict[int, str] = {}
    for kind, start, end, begin, stop in SequenceMatcher(None, written, other, autojunk=False).get_opcodes():
        if kind == "insert":
            found[-1 - start] = other[begin:stop]
        elif kind != "equal":
            alike = end - start == stop - begin
            for place in range(start, end):
                whole = other[begin:stop] if place == start else ""
                found[place] = other[begin + place - start] if alike else whole
    return found


def counts(written: str, corrected: str, meant: str) -> list[int]:
    """Of a sentence and of its characters: were changes made, are there errors, places hit, changes hit."""
    made, errors = changes(written, corrected), changes(written, meant)
    both = made.keys() & errors.keys()
    right = sum(made[place] == errors[place] for place in both)
    found = bool(errors) and made.keys() == errors.keys()
    return [
        int(bool(made)), int(bool(errors)), int(found), int(found and right == len(errors)),
        len(made), len(errors), len(both), right,
    ]  # fmt: skip


def f1(hits: float, made: float, errors: float) -> float:
    """2PR / (P + R); nan where there is nothing to find and nothing was changed."""
    return 2 * hits / (made + errors) if made + errors else math.nan


# ---- GLEU


def gleu_counts(source: str, hypothesis: str, reference: str) -> list[int]:
    """[c, r, matches and n-grams for n = 1 … 4]: what is summed over sentences."""
    parts = [units(text) for text in (source, hypothesis, reference)]
    found = [len(parts[1]), len(parts[2])]
    for n in range(1, ORDER + 1):
        s, h, r = (Counter(zip(*(words[at:] for at in range(n)), strict=False)) for words in parts)
        only_source = Counter({gram: count for gram, count in s.items() if gram not in r})
        found += [max(0, (h & r).total() - (h & only_source).total()), max(0, len(parts[1]) + 1 - n)]
    return found


def gleu(sums: Floats) -> Floats:
    """From summed counts (…, 2 + 2 · 4); 0 where any of them is."""
    full = np.all(sums > 0, -1, keepdims=True)
    safe = np.where(full, sums, 1.0)
    length, reference = safe[..., 0], safe[..., 1]
    precision = np.log(safe[..., 2::2] / safe[..., 3::2]).mean(-1)
    return np.asarray(np.where(full[..., 0], np.exp(np.minimum(0.0, 1 - reference / length) + precision), 0.0))


def drawn_counts(sentences: Sequence[Sequence[Sequence[int]]], draws: int = DRAWS, seed: int = 0) -> Ints:
    """Return (N, D · 10) counts of each sentence with one of its references, D times; D is 1 where each has one."""
    sizes = np.array([len(one) for one in sentences])
    table = np.zeros((len(sentences), int(sizes.max()), 2 + 2 * ORDER), np.int64)
    for number, one in enumerate(sentences):
        table[number, : len(one)] = one
    if sizes.max() == 1:
        return table[:, 0]
    drawn = np.random.default_rng(seed).random((draws, len(sentences)))
    which: Ints = (drawn * sizes).astype(np.int64)  # (D, N)
    return np.asarray(table[np.arange(len(sentences))[:, None], which.T].reshape(len(sentences), -1), np.int64)


def mean_gleu(sums: Floats) -> float:
    """Return the mean GLEU over draws of references, from the sums (D · 10,) of `drawn_counts` over sentences."""
    return float(gleu(sums.reshape(-1, 2 + 2 * ORDER)).mean())


# ---- a table of confusions


@dataclass(frozen=True)
class Confusions:
    """Which unit became which how often, in pairs; a unit is replaced by what it mostly became, if that is another."""

    instead: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def learn(cls, pairs: Iterable[tuple[str, str]]) -> Confusions:
        """From pairs of a written text and what was meant; runs of units that became as many others count."""
        seen: dict[str, Counter[str]] = {}
        for written, meant in pairs:
            old, new = units(written), units(meant)
            for kind, start, end, begin, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
                if kind == "equal" or end - start == stop - begin:
                    for one, other in zip(old[start:end], new[begin:stop], strict=True):
                        seen.setdefault(one, Counter())[other] += 1
        usual = {one: max(became.items(), key=lambda item: (item[1], item[0] == one)) for one, became in seen.items()}
        return cls({one: other for one, (other, _) in usual.items() if other != one})

    def correct(self, text: str) -> str:
        """The text with its units replaced; what stands between them stays.

        >>> Confusions({"teh": "the"}).correct("teh  cat")
        'the  cat'
        """
        return UNIT.sub(lambda found: self.instead.get(found[0], found[0]), text)
