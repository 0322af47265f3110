"""Folds by speaker, and of single utterances."""

import pytest

from besag.errors import BesagError
from besag.rescoring.folds import dealt, speakers


def test_speakers_and_folds() -> None:
    utts = ["b-1-0", "a-1-0", "b-2-0", "c_1", "d_4"]
    assert speakers(utts) == ["b", "a", "b", "c", "d"]
    assert dealt(speakers(utts)).tolist() == [1, 0, 1, 0, 1]


def test_folds_of_utterances_do_not_depend_on_their_order() -> None:
    assert dealt(["c", "a", "e", "b", "d"], 3).tolist() == [2, 0, 1, 1, 0]
    assert dealt(["a", "b", "c", "d", "e"], 3).tolist() == [0, 1, 2, 0, 1]


def test_what_cannot_be_split() -> None:
    with pytest.raises(BesagError, match="'abc' names no speaker"):
        speakers(["a-1", "abc"])
    with pytest.raises(BesagError, match="2 groups of utterances at least, and all are of 'a'"):
        dealt(["a", "a"])
    with pytest.raises(BesagError, match="5 groups of utterances at least, and there are 3"):
        dealt(["a", "b", "c"], 5)
