"""Which construction goes with how many places, and how the words in its options are read."""

from __future__ import annotations

import numpy as np
import pytest
from tests.laws import Arbitrary

from besag.engine import Engine
from besag.errors import BesagError
from besag.fills.fill import fill
from besag.joints.block import BlockJoint
from besag.joints.joint import joint
from besag.joints.pair import PairJoint
from besag.language_model import LanguageModel
from besag.places.places import find

LAW = Arbitrary(5)
ENGINE = Engine(LAW, progress=False)


def places(masks: int):
    return find(LAW.vocabulary, "s1" + " [MASK]" * masks)


def test_two_places_are_a_pair_and_three_a_block() -> None:
    assert isinstance(joint(ENGINE, places(2)), PairJoint)
    assert isinstance(joint(ENGINE, places(3)), BlockJoint)


def test_the_door_asks_the_room() -> None:
    """The same numbers by `lm.joint` and by `lm.fill`."""
    here = joint(ENGINE, places(2), "mrf")
    lm = LanguageModel(LAW, progress=False)
    np.testing.assert_array_equal(lm.joint("s1 [MASK] [MASK]", method="mrf").matrix(), here.matrix())
    best = here.top(1)[0]
    assert fill(ENGINE, "s1 [MASK] [MASK]", 1, method="mrf")[0].log_prob == best.log_prob


@pytest.mark.parametrize("how", ["joint", "fill"])
def test_a_pivot_may_be_a_word_wherever_a_joint_is_asked_for(how: str) -> None:
    lm = LanguageModel(LAW, progress=False)
    by_word, by_id = (getattr(lm, how)("s1 [MASK] [MASK]", method="hcb", pivot=pivot) for pivot in ("s3", 3))
    if how == "joint":
        np.testing.assert_array_equal(by_word.matrix(), by_id.matrix())
    else:
        assert [row.log_prob for row in by_word.rows] == [row.log_prob for row in by_id.rows]


@pytest.mark.parametrize(
    ("masks", "method", "said"),
    [
        (1, "ag", "one place only, and a joint needs two or more: fill answers for one"),
        (3, "mrf", "3 places have a joint by 'ag' only, not by 'mrf'"),
        (3, "agg", "Did you mean 'ag'?"),
        (2, "agg", "Did you mean 'ag'?"),
    ],
)
def test_what_does_not_go_together(masks: int, method: str, said: str) -> None:
    with pytest.raises(BesagError) as refused:
        joint(ENGINE, places(masks), method)
    assert said in str(refused.value)
