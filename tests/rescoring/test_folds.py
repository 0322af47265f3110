"""Two folds by speaker."""

import pytest

from besag.errors import BesagError
from besag.rescoring.folds import speakers, two_folds


def test_speakers_and_folds() -> None:
    utts = ["b-1-0", "a-1-0", "b-2-0", "c_1", "d_4"]
    assert speakers(utts) == ["b", "a", "b", "c", "d"]
    assert two_folds(speakers(utts)).tolist() == [1, 0, 1, 0, 1]


def test_what_cannot_be_split() -> None:
    with pytest.raises(BesagError, match="'abc' names no speaker"):
        speakers(["a-1", "abc"])
    with pytest.raises(BesagError, match="two groups at least, and all are of 'a'"):
        two_folds(["a", "a"])
