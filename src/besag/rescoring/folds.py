"""Folds of utterances: the weights of each fold are tuned on all others, so that no utterance is used for both.

`speaker`, or groups that are given: two folds, in which a group (a speaker) stays together. A number K: K folds of
single utterances, where a speaker may be in several. Groups, or ids, in alphabetical order go to the folds in turn, so
that the folds do not depend on the order of the lists.
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
            raise BesagError(
                f"{quoted(utt)} names no speaker: --folds speaker needs ids that begin with SPEAKER-. For folds of "
                "single utterances give a number, as --folds 2"
            )
        found.append(speaker[1])
    return found


def dealt(groups: Sequence[str], folds: int = 2) -> Ints:
    """Return (U,) the fold of each utterance, 0 … folds − 1, from the name of its group."""
    names = sorted(set(groups))
    if len(names) < folds:
        said = f"all are of {quoted(names[0])}" if len(names) == 1 else f"there are {len(names)}"
        raise BesagError(f"{folds} folds need {folds} groups of utterances at least, and {said}: give fewer folds")
    fold = {name: place % folds for place, name in enumerate(names)}
    return np.array([fold[name] for name in groups], np.int64)
