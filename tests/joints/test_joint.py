"""Which construction goes with how many places, and how the words in its options are read."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from tests.laws import Arbitrary

import besag
from besag.engine import Engine
from besag.errors import BesagError
from besag.fills import fill as filling
from besag.fills.fill import fill
from besag.joints.block import BlockJoint
from besag.joints.joint import OWN, joint
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
        (3, "mrf", "3 places have a joint by 'ag' or 'loglinear' only, not by 'mrf'"),
        (3, "agg", "Did you mean 'ag'?"),
        (2, "agg", "Did you mean 'ag'?"),
    ],
)
def test_what_does_not_go_together(masks: int, method: str, said: str) -> None:
    with pytest.raises(BesagError) as refused:
        joint(ENGINE, places(masks), method)
    assert said in str(refused.value)


# ---- what no joint takes


HOSTILE = (0, -1, 10**9, 10**30, math.nan, math.inf, "many", 1.5, True)


@pytest.mark.parametrize("places", [2, 3])
def test_hostile_numbers_are_quoted_with_the_name_of_the_argument(places):
    lm = besag.load(Arbitrary(4), progress=False)
    text = "s0 " + "[MASK] " * places
    found = lm.joint(text)
    for value in HOSTILE:
        for name, ask in {
            "candidates": lambda value=value: lm.joint(text, candidates=value),
            "limit": lambda value=value: lm.joint(text, limit=value),
            "n": lambda value=value: found.top(value),
            "n=": lambda value=value: found.sample(value),
            "k": lambda value=value: lm.fill(text, k=value),
            "beam": lambda value=value: lm.fill(text, beam=value),
        }.items():
            with pytest.raises(BesagError, match=name):
                ask()
    for value in (0, -1, 10**9, math.nan, math.inf, "small", True):
        with pytest.raises(BesagError, match="tolerance"):
            lm.joint(text, tolerance=value)
    for value in (10**30, math.nan, "one", 1.5, None, True):
        with pytest.raises(BesagError, match="seed"):
            found.sample(1, seed=value)
        with pytest.raises(BesagError, match="seed"):
            lm.fill(text, sample=True, seed=value)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("[MASK] [MASK]", {"candidats": 3}, "joint() with the joint construction 'ag' has no option 'candidats': it "
         "takes positions, method, outcomes, candidates, gold, weights, tolerance, limit, accelerate, newton, paper. "
         "Did you mean 'candidates'?"),
        ("[MASK] [MASK]", {"method": "hcb", "pivott": 3}, "Did you mean 'pivot'?"),
        ("[MASK] [MASK] [MASK]", {"golt": 3}, "joint() of 3 places has no option 'golt': it takes positions, method, "
         "outcomes, candidates, gold, tolerance, limit. Did you mean 'gold'?"),
    ],
    ids=str,
)  # fmt: skip
def test_an_argument_that_there_is_not_is_named_beside_those_there_are(text, options, said):
    with pytest.raises(BesagError) as refusal:
        besag.load(Arbitrary(4)).joint(text, **options)
    assert said in str(refusal.value)


def test_the_arguments_that_are_named_are_those_of_the_verbs():
    for verb, own in ((LanguageModel.joint, OWN), (fill, filling.OWN)):
        taken = inspect.signature(verb).parameters
        assert {*own} == {*taken} - {"self", "engine", "text", "options"}
