"""Two folds of utterances: the weight of each is tuned on the other, so that nothing is judged by what it was tuned on.

A group (a speaker) is in one fold with all its utterances. Groups in alphabetical order go in turn to the first fold
and the second. Knows ids alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from besag.arrays import Ints
from besag.errors import BesagError, quoted

_SPEAKER = re.compile(r"([^-_]+)[-_].*", re.DOTALL)


def speakers(utterances: Sequence[str]) -> list[str]:
    """What stands before the first - or _ of each id, as in LibriSpeech's 1272-128104-0000."""
    found = []
    for utt in utterances:
        speaker = _SPEAKER.fullmatch(utt)
        if speaker is None:
            raise BesagError(f"{quoted(utt)} names no speaker: --folds speaker needs ids that begin with SPEAKER-")
        found.append(speaker[1])
    return found


def two_folds(groups: Sequence[str]) -> Ints:
    """(U,) 0 or 1."""
    names = sorted(set(groups))
    if len(names) < 2:
        raise BesagError(f"two folds need two groups at least, and all are of {quoted(names[0] if names else None)}")
    fold = {name: place % 2 for place, name in enumerate(names)}
    return np.array([fold[name] for name in groups], np.int64)
