import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import networks
from tests.laws import Arbitrary, Counting

from besag.conditionals.table import Table
from besag.engine import Engine
from besag.errors import BesagError
from besag.joints import candidates
from besag.joints.candidates import choose, outcome_ids
from besag.joints.joint import joint
from besag.places.places import Places, find


def pair(law, text="s0 s1 s2 s1", positions=(1, 3)) -> Places:
    return find(law.vocabulary, text, positions)


def chosen(law, places, outcomes="text", wanted=3):
    return next(Engine(law).run([choose(law, places, outcomes, wanted)]))


def ranking(law: Arbitrary, places: Places, at: int, through: int) -> np.ndarray:
    """The score of each candidate of a place, by its definition."""
    hidden = places.ids.copy()
    hidden[list(places.at)] = law.width
    alone, other = (np.exp(law.log_probs(hidden.tolist(), places.at[i])) for i in (at, 1 - at))
    chain = np.zeros(law.width)
    for y in np.argsort(-other)[:through]:
        shown = hidden.copy()
        shown[places.at[1 - at]] = y
        chain += other[y] * np.exp(law.log_probs(shown.tolist(), places.at[at]))
    return alone / 2 + chain / chain.sum() / 2


@given(st.integers(2, 8), st.integers(1, 10), st.integers(1, 3), st.booleans())
def test_the_likeliest_in_the_mean_of_two_sources(width, wanted, through, reverse):
    law = Arbitrary(width)
    places = pair(law, "s0 [MASK] s1 [MASK]", (3, 1) if reverse else (1, 3))  # no gold
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "THROUGH", through)
        sides = chosen(law, places, wanted=wanted)
    for at, side in enumerate(sides):
        order = np.argsort(-ranking(law, places, at, through))
        assert side.ids.tolist() == order[:wanted].tolist()  # likeliest first, and no more than there are
        assert side.gold is None
        assert not side.forced


def test_ties_go_by_id():
    law = Table(np.ones((6, 6)))  # everything is equally likely
    a, b = chosen(law, pair(law, "[MASK] [MASK]", None), wanted=4)
    assert a.ids.tolist() == b.ids.tolist() == [0, 1, 2, 3]


def test_the_text_s_own_tokens_are_forced_in_for_the_last_of_the_likeliest():
    law = Arbitrary(8)
    free = chosen(law, pair(law, "s0 [MASK] s2 [MASK]", None), wanted=3)
    for gold in range(8):
        places = pair(law, f"s0 s{gold} s2 s{gold}")
        for before, side in zip(free, chosen(law, places, wanted=3), strict=True):
            if gold in before.ids:
                assert side.ids.tolist() == before.ids.tolist()
                assert not side.forced
            else:
                assert side.ids.tolist() == [*before.ids[:-1], gold]
                assert side.forced
            assert side.ids[side.gold] == gold


def test_given_words_are_all_there_is_and_keep_their_order():
    law = Arbitrary(6)
    a, b = chosen(law, pair(law), wanted=[["s5", "s0"], ["s2", "s1"]])
    assert a.ids.tolist() == [5, 0]  # the text's own is s1, and nobody asked for it
    assert b.ids.tolist() == [2, 1]
    assert (a.gold, a.forced, b.gold, b.forced) == (None, False, None, False)
    assert a.hidden.tolist() == pytest.approx(law.log_probs([0, 6, 2, 6], 1)[[5, 0]])
    a, b = chosen(law, pair(law), wanted=[["s5", "s1"], ["s2", "s1"]])
    assert (a.gold, a.forced, b.gold, b.forced) == (1, False, 1, False)


@pytest.mark.parametrize("ids", [[[5, 0], [2, 1]], [np.array([5, 0]), ("s2", np.int64(1))], np.array([[5, 0], [2, 1]])])
def test_token_ids_are_candidates_as_words_are(ids):
    law = Arbitrary(6)
    a, b = chosen(law, pair(law), wanted=ids)
    assert (a.ids.tolist(), b.ids.tolist()) == ([5, 0], [2, 1])


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ([[7], [1]], "the candidate 7 is no token of this model, whose vocabulary has 7"),
        ([[6], [1]], "the candidate 6 is a special token: outcomes='all'"),
        ([[10**30], [1]], "give a text or a whole number of at most 18 digits"),
        ([[-1], [1]], "a token is named by its text or its id, not by -1"),
        ([[1.5], [1]], "candidates[0][0]=1.5: give a text or a whole number"),
        ([[None], [1]], "candidates[0][0]=None: give a text or a whole number"),
        ([[True], [1]], "candidates[0][0]=True: give a text or a whole number"),
        ([["s1", 1], [1]], "the candidates 's1' and 1 of place 1 are the same token"),
        ([1, 2], "candidates[0]=1: give a list of texts or whole numbers"),
        ([[], []], "place 1 was given no words"),
        *((value, "candidates=") for value in (0, -1, 10**9, 10**30, float("nan"), float("inf"), "x", None, True)),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_candidates_is_quoted(wanted, said):
    law = Arbitrary(6)
    with pytest.raises(BesagError, match=re.escape(said)):
        joint(Engine(law), pair(law), candidates=wanted)
    of_three = [*wanted, ["s0"]] if isinstance(wanted, list) else wanted
    with pytest.raises(BesagError, match=re.escape(said.replace("2 lists", "3 lists"))):
        joint(Engine(law), pair(law, positions=(1, 3, 0)), candidates=of_three)


def test_impossible_tokens_are_not_shown_to_an_exact_law():
    weights = np.ones((4, 4))
    weights[3] = weights[:, 2] = 0  # the first is never s3, the second never s2
    law = Table(weights)
    a, b = chosen(law, pair(law, "[MASK] [MASK]", None), wanted=3)
    assert a.ids.tolist() == [0, 1, 2]
    assert b.ids.tolist() == [0, 1, 3]


def test_a_token_that_may_not_stand_there_is_no_gold():
    law = Arbitrary(5)
    law.vocabulary.special_ids |= {1}
    a, b = chosen(law, with_gold(law, (1, 1)))
    assert a.gold is None
    assert b.gold is None
    assert 1 not in a.ids
    a, b = chosen(law, with_gold(law, (1, 1)), "all", 5)
    assert a.ids[a.gold] == b.ids[b.gold] == 1


def with_gold(law, gold: tuple[int, int]) -> Places:
    places = pair(law, "s0 [MASK] s2 [MASK]", None)
    return Places(places.encoded, places.ids, places.at, places.positions, gold)


def test_outcomes_of_text_leave_out_special_tokens_and_ids_without_a_token():
    from besag.conditionals.transformer import Transformer

    words = networks.vocabulary("bert")
    law = Transformer(networks.tiny("bert", words.size + 3), words)  # three rows of the head have no token
    text, everything = outcome_ids(law, "text"), outcome_ids(law, "all")
    assert everything.tolist() == list(range(words.size + 3))
    assert text.tolist() == [i for i in range(words.size) if words.token(i) not in words.tokenizer.all_special_tokens]
    with pytest.raises(BesagError, match="Did you mean 'text'"):
        outcome_ids(law, "texts")


def test_what_cannot_be_chosen_is_said():
    law = Arbitrary(5)
    places = pair(law)
    for wanted, message in [
        (0, "candidates=0"),
        (-3, "candidates=-3"),
        (True, "candidates=True"),
        (2.5, "candidates=2.5"),
        ("some", "candidates='some'"),
        (["s1", "s2"], "2 lists of words"),
        ([["s1"]], "2 lists of words"),
        ([["s1"], []], "place 2 was given no words"),
        ([["s1", "s2", "s1"], ["s0"]], "'s1' and 's1' of place 1 are the same token"),
        ([["s9"], ["s0"]], "'s9'"),
    ]:
        with pytest.raises(BesagError, match=message):
            chosen(law, places, wanted=wanted)
    law = Arbitrary(5)
    law.vocabulary.special_ids |= {2}
    with pytest.raises(BesagError, match="'s2' is a special token: outcomes='all'"):
        chosen(law, places, wanted=[["s2"], ["s0"]])
    assert chosen(law, places, "all", [["s2"], ["s0"]])[0].ids.tolist() == [2]


def test_a_pair_has_two_places_and_two_sides():
    law = Arbitrary(3)
    with pytest.raises(BesagError, match=r"here is one: 's1' \(token 1\)"):
        chosen(law, pair(law, positions=(1,)))
    with pytest.raises(BesagError, match=r"here are 3: 's0' \(token 0\), 's1' \(token 1\) and 's2'"):
        chosen(law, pair(law, positions=(0, 1, 2)))
    with pytest.raises(BesagError, match="sees the left side"):
        chosen(Arbitrary(3, sees="left"), pair(law))


def test_nothing_is_asked_before_the_words_are_understood():
    law = Counting(Arbitrary(3))
    with pytest.raises(BesagError):
        chosen(law, pair(law), wanted=[["s1"], ["s1", "s1"]])
    assert law.sequences == []
