"""What a method may ask beyond the text's own tokens: other tokens shown, other tokens asked for, also in windows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws import Arbitrary, Counting

from besag.engine import Engine
from besag.reductions import Logit, Target
from besag.scores.passage import Passage

WIDTH, MASK = 4, 4


def passage(law, *texts: list[int]) -> Passage:
    encoded = law.vocabulary.encode([" ".join(f"s{token}" for token in text) for text in texts])
    return Passage(encoded, law)


def asked(law, asking):
    return next(Engine(law).run([asking]))


@given(st.integers(0, 1000), st.integers(1, 3), st.integers(1, 4), st.sampled_from([None, 1, 3]))
def test_other_tokens_are_shown_and_asked_for(seed, texts, copies, targets):
    generator, size = np.random.default_rng(seed), 4
    law = Arbitrary(WIDTH)
    words = generator.integers(0, WIDTH, (texts, size)).tolist()
    hide = generator.random((texts, copies, size)) < 0.4
    shown = generator.integers(0, WIDTH, (texts, copies, size))
    row, index = generator.integers(0, copies, (texts, 5)), generator.integers(0, size, (texts, 5))
    target = generator.integers(0, WIDTH, (texts, 5) if targets is None else (texts, 5, targets))
    answers = asked(law, passage(law, *words).ask(hide, row, index, Logit(), shown=shown, target=target))
    assert answers["target"].shape == answers["logit"].shape == target.shape
    for b in range(texts):
        for m in range(5):
            copy = np.where(hide[b, row[b, m]], MASK, shown[b, row[b, m]]).tolist()
            place = int(index[b, m])
            np.testing.assert_allclose(answers["target"][b, m], law.log_probs(copy, place)[target[b, m]], atol=1e-12)
            np.testing.assert_allclose(answers["logit"][b, m], law.logits(copy, place)[target[b, m]], atol=1e-12)


def test_the_text_s_own_tokens_unless_told_otherwise():
    law = Arbitrary(WIDTH)
    words = passage(law, [0, 1, 2], [3, 2, 1])
    hide, row, index = np.eye(3, dtype=bool), np.arange(3), np.arange(3)
    plain = asked(law, words.ask(hide, row, index))
    own = np.repeat(words.ids[:, None], 3, 1)
    told = asked(law, words.ask(hide, row, index, shown=own, target=words.ids))
    np.testing.assert_array_equal(plain["target"], told["target"])
    other = asked(law, words.ask(hide, row, index, shown=(own + 1) % WIDTH))
    assert not np.isclose(plain["target"], other["target"]).any()


@pytest.mark.parametrize("targets", [None, 2])
def test_windows_are_cut_from_what_is_shown(targets):
    """A text of 9 in a model of 5: each asked copy is a stretch of the copy, not of the text."""
    law = Counting(Arbitrary(WIDTH, max_length=5))
    generator, size = np.random.default_rng(0), 9
    words = generator.integers(0, WIDTH, size).tolist()
    index = np.array([0, 4, 6, 8])
    shown = generator.integers(0, WIDTH, (1, 4, size))
    hide = np.zeros((4, size), bool)
    hide[np.arange(4), index] = True
    hide[1, 5] = True
    target = generator.integers(0, WIDTH, (1, 4) if targets is None else (1, 4, targets))
    answers = asked(law, passage(law, words).ask(hide, np.arange(4), index, shown=shown, target=target))
    for m, place in enumerate(index.tolist()):
        start = min(max(place - 2, 0), size - 5)
        copy = np.where(hide[m], MASK, shown[0, m])[start : start + 5].tolist()
        expected = law.inner.log_probs(copy, place - start)[target[0, m]]
        np.testing.assert_allclose(answers["target"][0, m], expected, atol=1e-12)
    assert all(len(sequence) == 5 for sequence in law.sequences)


def test_windows_of_one_copy_with_several_asks():
    law = Arbitrary(WIDTH, max_length=5)
    size, generator = 12, np.random.default_rng(1)
    shown = generator.integers(0, WIDTH, (2, 1, size))
    texts = passage(law, *generator.integers(0, WIDTH, (2, size)).tolist())
    hide = np.zeros((1, size), bool)
    hide[0, [1, 6, 10]] = True
    index = np.array([1, 6, 10])
    target = generator.integers(0, WIDTH, (2, 3, 2))
    answers = asked(law, texts.ask(hide, np.zeros(3, int), index, shown=shown, target=target))
    whole = np.where(hide, MASK, shown[:, 0])
    for b in range(2):
        for m, place in enumerate(index.tolist()):
            windows = [(start, whole[b, start : start + 5].tolist()) for start in range(max(0, place - 4), size - 4)]
            possible = [law.log_probs(ids, place - start)[target[b, m]] for start, ids in windows if start <= place]
            assert any(np.allclose(answers["target"][b, m], one, atol=1e-12) for one in possible)


def test_the_default_reduction_is_the_target():
    assert passage(Arbitrary(WIDTH), [0]).wanted == (Target(),)
