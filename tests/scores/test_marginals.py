"""Masked marginals: exactly the conditionals of a table, whatever the columns, the batch and the length."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from tests.laws import Arbitrary, Counting
from tests.scores.test_conformance import text

import besag
from besag.conditionals.table import Table
from besag.engine import IDLE
from besag.errors import BesagError
from besag.language_model import LanguageModel
from besag.scores.marginals import Marginals

LAW = Table.random(3, 4, seed=5, concentration=1.0)


@pytest.fixture(scope="module")
def lm() -> LanguageModel:
    return LanguageModel(LAW, progress=False)


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return besag.load(device="cpu", progress=False)


def brute_force(symbols: list[int]) -> np.ndarray:
    """log p(x_i = v | the rest) from the table itself, (n, V)."""
    p = LAW.log_probs.exp().numpy()
    rows = []
    for place in range(len(symbols)):
        index = tuple(slice(None) if i == place else symbol for i, symbol in enumerate(symbols))
        rows.append(np.log(p[index] / p[index].sum()))
    return np.array(rows)


# ---- the numbers


@pytest.mark.parametrize("symbols", list(itertools.product(range(3), repeat=4))[::7])
def test_they_are_the_conditionals_of_a_table(lm: LanguageModel, symbols: tuple[int, ...]) -> None:
    found = lm.marginals(text(symbols))
    expected = brute_force(list(symbols))
    np.testing.assert_allclose(found.log_probs, expected, atol=1e-12)
    np.testing.assert_allclose(np.exp(found.log_probs).sum(1), 1, atol=1e-12)
    own = expected[np.arange(4), symbols]
    np.testing.assert_allclose(found.own, own, atol=1e-12)
    np.testing.assert_array_equal(found.rank, 1 + (expected > own[:, None] + 1e-12).sum(1))
    np.testing.assert_allclose(found.entropy, -(np.exp(expected) * expected).sum(1), atol=1e-12)
    np.testing.assert_allclose(found.effects, expected - own[:, None], atol=1e-12)
    assert found.columns == ("s0", "s1", "s2")


@pytest.mark.parametrize("base", ["e", 2, 10])
def test_the_own_entries_are_those_of_pll(tiny: LanguageModel, base: str | float) -> None:
    sentence = "The cats are sleeping on the old mat."
    found, score = tiny.marginals(sentence, base=base), tiny.score(sentence, base=base, rank=True, entropy=True)
    np.testing.assert_allclose(found.own, score.log_probs, atol=1e-4)
    np.testing.assert_array_equal(found.rank, score.rank)
    np.testing.assert_allclose(found.entropy, score.entropy, atol=1e-3)
    assert found.tokens == score.tokens
    np.testing.assert_array_equal(found.offsets, score.offsets)
    assert found.log_probs.shape == (len(score), tiny.conditionals.width)
    np.testing.assert_allclose((found.base ** found.log_probs.astype(float)).sum(1), 1, atol=1e-4)
    rows = np.arange(len(found))
    np.testing.assert_allclose(found.log_probs[rows, found.ids], found.own, atol=1e-5)


def test_neither_batches_nor_neighbours_change_them() -> None:
    law = Arbitrary(4)
    texts = [text(symbols) for symbols in ([0, 1, 2, 3, 1], [2], [3, 3], [0, 1, 2, 3, 1])]
    alone = [LanguageModel(law, progress=False).marginals(one) for one in texts]
    for batch_tokens in (1, 7, 1000):
        together = LanguageModel(law, batch_tokens=batch_tokens, progress=False).marginals(texts)
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one.log_probs, other.log_probs)


def test_each_place_is_asked_once() -> None:
    law = Counting(Arbitrary(4))
    LanguageModel(law, progress=False).marginals(text([0, 1, 2]))
    assert len(law.sequences) == 3


def test_small_requests_fill_the_same_table(lm: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    from besag.scores import marginals_asking

    whole = lm.marginals("s0 s1 s2 s0").log_probs
    monkeypatch.setattr(marginals_asking, "NUMBERS", 6)  # two rows of three
    np.testing.assert_array_equal(lm.marginals("s0 s1 s2 s0").log_probs, whole)


def test_long_texts_are_read_in_windows_as_by_pll() -> None:
    lm = LanguageModel(Arbitrary(4, max_length=5), progress=False)
    long = text([0, 1, 2, 3, 1, 0, 2, 2, 3])
    np.testing.assert_allclose(lm.marginals(long).own, lm.score(long).log_probs, atol=1e-12)


# ---- columns


def test_candidates_are_columns_of_the_whole_table(lm: LanguageModel) -> None:
    whole, some = lm.marginals("s0 s1 s2 s0"), lm.marginals("s0 s1 s2 s0", candidates=["s2", 0])
    np.testing.assert_array_equal(some.log_probs, whole.log_probs[:, [2, 0]])
    assert some.columns == ("s2", "s0")
    for name in ("own", "rank", "entropy"):
        np.testing.assert_array_equal(getattr(some, name), getattr(whole, name))
    assert some.normalised == whole.normalised == "the whole vocabulary"


def test_renormalised_over_the_columns(lm: LanguageModel) -> None:
    some = lm.marginals("s0 s1 s2 s0", candidates=["s2", "s0"])
    among = some.renormalised()
    np.testing.assert_allclose(np.exp(among.log_probs).sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(np.diff(among.log_probs), np.diff(some.log_probs), atol=1e-12)
    assert among.normalised == "these 2 tokens"
    assert math.isnan(among.own[1])  # s1 is none of them
    assert among.rank[1] == 0
    np.testing.assert_allclose(among.entropy, -(np.exp(among.log_probs) * among.log_probs).sum(1), atol=1e-12)


def test_words_are_read_where_they_stand(tiny: LanguageModel) -> None:
    found = tiny.marginals("The cat sat on the mat.", candidates=["cat", "dog"], positions=["cat", "mat"])
    assert [tiny.vocabulary.token(id) for id in found.outcomes[0]] == ["▁cat", "▁dog"]
    joint = tiny.marginals("The cat sat on the mat.", positions=["cat"])
    assert found.log_prob(2, "dog") == pytest.approx(joint.log_prob(2, "dog"), abs=1e-4)


def test_special_tokens_can_be_left_out(tiny: LanguageModel) -> None:
    whole, few = tiny.marginals("It rained."), tiny.marginals("It rained.", outcomes="text")
    assert not np.isin(few.outcomes, [*tiny.vocabulary.special_ids]).any()
    np.testing.assert_allclose(few.log_probs, whole.log_probs[:, few.outcomes[0]], atol=1e-5)


# ---- substitutions


def test_the_effect_of_a_substitution(lm: LanguageModel) -> None:
    found, expected = lm.marginals("s0 s1 s2 s0"), brute_force([0, 1, 2, 0])
    assert found.effect("s1", 1, "s2") == pytest.approx(expected[1, 2] - expected[1, 1], abs=1e-12)
    assert found.effect("s0", -1, "s0") == 0
    assert found.top(1, 2)[0][0] == f"s{expected[1].argmax()}"
    with pytest.raises(BesagError, match="is 's1', not 's0'"):
        found.effect("s0", 1, "s2")
    with pytest.raises(BesagError, match=r"token 9 .* was not asked"):
        found.effect("s0", 9, "s2")


def test_some_places_of_a_text_with_a_mask(lm: LanguageModel) -> None:
    found = lm.marginals("s0 [MASK] s2 s0", positions=[2, 1])
    assert found.places.tolist() == [1, 2]
    assert math.isnan(found.own[0])
    assert found.rank.tolist()[0] == 0
    p = LAW.log_probs.exp().numpy()[0, :, :, 0]  # both places hidden where the second is asked
    np.testing.assert_allclose(np.exp(found.log_probs[1]), p.sum(0) / p.sum(), atol=1e-12)
    with pytest.raises(BesagError, match="no value of its own"):
        found.effect("s0", 1, "s2")


def test_a_prefix_is_shown_and_not_asked(lm: LanguageModel) -> None:
    inside, whole = lm.marginals("s2 s0", prefix="s0 s1"), lm.marginals("s0 s1 s2 s0")
    np.testing.assert_array_equal(inside.log_probs, whole.log_probs[2:])
    assert inside.text == "s2 s0"
    assert inside.offsets.tolist() == [[0, 2], [3, 5]]


# ---- in and out


def test_one_for_one_a_list_for_a_list_and_a_stream(lm: LanguageModel) -> None:
    texts = ["s0 s1 s2 s0", "s2 s2 s2 s2"]
    listed = lm.marginals(texts)
    assert [found.text for found in listed] == texts
    streamed = lm.marginals(iter([texts[0], IDLE, texts[1]]))
    for one, other in zip(listed, streamed, strict=True):
        np.testing.assert_array_equal(one.log_probs, other.log_probs)


def test_what_cannot_be_asked_says_so(lm: LanguageModel) -> None:
    found = lm.marginals("")
    assert (found.status, len(found)) == ("empty", 0)
    assert "not asked: the text is empty" in repr(found)
    assert found.to_dict()["places"] == []
    assert "empty" in found._repr_html_()


def test_it_tells_itself(lm: LanguageModel) -> None:
    found: Marginals = lm.marginals("s0 s1 s2 s0", candidates=["s1", "s2"])
    assert "log p of 2 candidates at 4 places, each hidden alone, in nats" in repr(found)
    assert "the whole vocabulary" in found._repr_html_()
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["places"][1]["log_probs"]["s2"] == found.log_prob(1, "s2")
    wide, tall = found.to_pandas(), found.to_pandas(wide=False)
    assert wide.loc[1, "s2"] == found.log_prob(1, "s2")
    assert len(tall) == 8
    row = tall[(tall.place == 1) & (tall.candidate == "s2")].iloc[0]
    assert row.effect == pytest.approx(found.effect("s1", 1, "s2"))
    pytest.importorskip("matplotlib").use("Agg")
    assert [label.get_text() for label in found.plot().get_yticklabels()] == ["s1", "s2"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"candidates": "s1"}, "candidates='s1': give a list"),
        ({"candidates": []}, r"candidates=\[\]: give a list"),
        ({"candidates": [1.5]}, r"candidates\[0\]=1.5: give a text or a whole number"),
        ({"candidates": ["s9"]}, "'s9'"),
        ({"candidates": ["s1", 1]}, "'s1' and 1 are the same token"),
        ({"candidates": [77]}, "the candidate 77 may not stand in a text"),
        ({"positions": [9]}, "there is no token 9"),
        ({"outcomes": "most"}, "outcomes='most'"),
    ],
)  # fmt: skip
def test_wrong_words_are_refused(lm: LanguageModel, options: dict[str, object], said: str) -> None:
    with pytest.raises(BesagError, match=said):
        lm.marginals("s0 s1 s2 s0", **options)  # type: ignore[arg-type]


def test_places_are_those_of_one_text(lm: LanguageModel) -> None:
    with pytest.raises(BesagError, match="name places of one text"):
        lm.marginals(["s0 s1 s2 s0"], positions=[1])


def test_a_word_of_several_tokens_is_refused(tiny: LanguageModel) -> None:
    with pytest.raises(BesagError, match=r"is \d tokens"):
        tiny.marginals("The cat sat.", candidates=["cat", "xylophonists"])


def test_a_causal_model_is_refused() -> None:
    law = Arbitrary(4)
    law.sees = "left"
    with pytest.raises(BesagError, match="a table of masked marginals needs a masked model"):
        LanguageModel(law, progress=False).marginals("s0 s1")
