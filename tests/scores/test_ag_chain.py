"""The chain rule over pairs, against plain loops over the law itself, and as the probability that it says it is."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws import Arbitrary, Counting
from tests.scores.pair_blocks import ag_chain, block
from tests.scores.test_conformance import Asked, draw_law, laws, text

import besag
from besag.conditionals.table import Table
from besag.language_model import LanguageModel
from besag.scores.ag_chain import AgChain

OPTIONS = [
    {},
    {"candidates": 2},
    {"candidates": 3, "order": "right-to-left"},
    {"candidates": 2, "order": "confident"},
    {"candidates": 3, "joint": "stationary"},
    {"candidates": 3, "weights": "marginal"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@settings(max_examples=12)
@given(spec=laws, seed=st.integers(0, 1000), batch_tokens=st.integers(1, 64))
def test_it_equals_its_definition(options, spec, seed, batch_tokens):
    law, width, places = draw_law(spec)
    generator = np.random.default_rng(seed)
    texts = [generator.integers(0, width, places).tolist() for _ in range(3)]
    scores = LanguageModel(law, batch_tokens=batch_tokens).score([text(x) for x in texts], "ag_chain", **options)
    asked = Asked(law)
    for x, score in zip(texts, scores, strict=True):
        np.testing.assert_allclose(score.log_probs, partial(ag_chain, **options)(asked, x, None), atol=1e-10)


# ---- what it is


@pytest.mark.parametrize(
    "options",
    [
        {"candidates": 2}, {"candidates": 2, "order": "confident"},
        {"candidates": 2, "order": "random", "seed": 3}, {"candidates": 4},
        {"candidates": 2, "joint": "stationary"},
        {"candidates": 2, "weights": "marginal", "order": "right-to-left"}, {"candidates": 1},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize(("width", "places"), [(4, 3), (3, 4), (3, 5)])
def test_it_is_a_probability_even_of_incompatible_conditionals(options, width, places):
    everything = [text(x) for x in itertools.product(range(width), repeat=places)]
    scores = LanguageModel(Arbitrary(width)).score(everything, "ag_chain", **options)
    assert np.exp([score.total for score in scores]).sum() == pytest.approx(1, abs=1e-10)
    assert scores[0].normalised == "token sequences of this length"


def test_text_longer_than_the_model_still_sums_to_one():
    everything = [text(x) for x in itertools.product(range(2), repeat=7)]
    for options in ({"candidates": 2}, {"candidates": 1, "order": "random"}, {"candidates": 2, "order": "confident"}):
        scores = LanguageModel(Arbitrary(2, max_length=4)).score(everything, "ag_chain", **options)
        assert np.exp([score.total for score in scores]).sum() == pytest.approx(1, abs=1e-10)


@given(st.integers(2, 3), st.integers(1, 4), st.integers(0, 1000))
def test_on_an_exact_table_it_is_the_truth(width, places, seed):
    table = Table.random(width, places, seed)
    everything = list(itertools.product(range(width), repeat=places))
    for options in (
        {},
        {"candidates": 2, "order": "confident"},
        {"joint": "stationary"},
        {"weights": "marginal", "candidates": 2},
    ):
        scores = LanguageModel(table).score([text(x) for x in everything], "ag_chain", **options)
        np.testing.assert_allclose(
            [score.total for score in scores], [float(table.log_probs[x]) for x in everything], atol=1e-9
        )


def test_tokens_share_a_block_by_the_chain_rule():
    lm = LanguageModel(Arbitrary(5))
    by_first = [lm.score(f"s{x} s2 s1", "ag_chain", candidates=3).log_probs for x in range(5)]
    assert np.exp([values[0] for values in by_first]).sum() == pytest.approx(1, abs=1e-12)
    for x in range(5):
        by_second = [lm.score(f"s{x} s{y} s1", "ag_chain", candidates=3).log_probs for y in range(5)]
        assert np.exp([values[1] for values in by_second]).sum() == pytest.approx(1, abs=1e-12)
        assert {round(values[0], 12) for values in by_second} == {round(by_first[x][0], 12)}


def test_a_box_of_one_is_the_plain_chain_and_a_wider_one_is_not():
    texts = [text(x) for x in itertools.product(range(3), repeat=4)]
    lm = LanguageModel(Arbitrary(3))
    chain = [score.total for score in lm.score(texts, "chain")]
    np.testing.assert_allclose([score.total for score in lm.score(texts, "ag_chain", candidates=1)], chain, atol=1e-12)
    assert np.abs(np.subtract([score.total for score in lm.score(texts, "ag_chain", candidates=2)], chain)).max() > 0.1


def test_only_pairs_of_likely_tokens_leave_the_chain():
    """Outside the box the chain's law stands, and inside it has the same mass."""
    lm, asked = LanguageModel(Arbitrary(4)), Asked(Arbitrary(4))
    pairs = list(itertools.product(range(4), repeat=2))
    first, second = (np.argsort(-asked.row([0, 0], {0, 1}, i))[:2].tolist() for i in (0, 1))
    chain, boxed = (
        np.array([score.total for score in lm.score([text(x) for x in pairs], method, **options)])
        for method, options in (("chain", {}), ("ag_chain", {"candidates": 2}))
    )
    inside = np.array([x in first and y in second for x, y in pairs])
    np.testing.assert_allclose(boxed[~inside], chain[~inside], atol=1e-12)
    assert np.abs(boxed[inside] - chain[inside]).min() > 1e-6
    assert np.exp(boxed[inside]).sum() == pytest.approx(np.exp(chain[inside]).sum(), abs=1e-12)


@pytest.mark.parametrize(("size", "order"), [(5, "left-to-right"), (4, "random"), (5, "confident")])
def test_how_many_sequences_are_run(size, order):
    law = Counting(Arbitrary(20))
    LanguageModel(law).score(text(range(size)), "ag_chain", candidates=4, order=order)
    distinct = len({*law.sequences})
    assert len(law.sequences) == distinct
    blocks, alone = size // 2, size % 2
    assert blocks * (1 + 2 * 4) + alone <= distinct <= blocks * (2 + 2 * 4) + alone


def test_scores_do_not_depend_on_the_batch():
    texts = [text(x) for x in ([0, 1, 2, 2, 1], [2, 2, 2, 2, 2], [0, 1], [1], [0, 1, 2, 2, 0])]
    alone = [LanguageModel(Arbitrary(3)).score(one, "ag_chain", candidates=2).log_probs for one in texts]
    together = LanguageModel(Arbitrary(3), batch_tokens=7).score(texts, "ag_chain", candidates=2)
    for one, score in zip(alone, together, strict=True):
        np.testing.assert_allclose(score.log_probs, one, atol=1e-13)


@pytest.mark.parametrize("order", ["left-to-right", "confident"])
@pytest.mark.parametrize("numbers", [30, 200, 1000])
def test_much_text_is_asked_a_part_at_a_time(monkeypatch, order, numbers):
    import besag.scores.ag_chain

    texts = ["s0 s1 s2 " * 5, "s1 s1 s0 " * 5, "s2 s0 s0 " * 5]
    whole = LanguageModel(Arbitrary(3)).score(texts, "ag_chain", candidates=2, order=order)
    monkeypatch.setattr(besag.scores.ag_chain, "BLOCK", numbers)  # one pair of one text takes 75
    again = LanguageModel(Arbitrary(3)).score(texts, "ag_chain", candidates=2, order=order)
    for one, other in zip(whole, again, strict=True):
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-13)


def test_zeros_of_an_exact_law_are_zeros():
    equal = LanguageModel(Table([[0.7, 0.0], [0.0, 0.3]]))
    for options in ({}, {"joint": "stationary"}, {"weights": "marginal"}):
        totals = [equal.score(x, "ag_chain", **options).total for x in ("s0 s0", "s1 s1", "s0 s1")]
        np.testing.assert_allclose(np.exp(totals), [0.7, 0.3, 0], atol=1e-12)
    never = LanguageModel(Table([[0.5, 0.2, 0], [0.1, 0.2, 0], [0, 0, 0]]))
    assert never.score("s0 s1", "ag_chain").total == pytest.approx(np.log(0.2))
    assert np.exp(never.score("s0 s2", "ag_chain").log_probs) == pytest.approx([0.7, 0])


def test_context_is_shown_and_never_hidden():
    score = LanguageModel(Arbitrary(3)).score("s1 s2", "ag_chain", prefix="s0", suffix="s2", candidates=2)
    expected = block(Asked(Arbitrary(3)), [0, 1, 2, 2], {1, 2}, [1, 2], 2, "ag", "uniform")
    np.testing.assert_allclose(score.log_probs, expected, atol=1e-10)


def test_wrong_options_are_answered_with_the_nearest():
    for options, message in (
        ({"order": "confidnt"}, r"order='confidnt'.*'confident'"),
        ({"joint": "stationry"}, r"joint='stationry': give one of ag, stationary\. Did you mean 'stationary'"),
        ({"weights": "marginals"}, r"weights='marginals'.*'marginal'"),
        ({"joint": "stationary", "weights": "marginal"}, "weighs contexts by itself"),
        ({"candidates": 0}, "candidates=0: give a number from 1 to 256"),
        ({"candidates": 2.5}, r"candidates=2\.5"),
    ):
        with pytest.raises(besag.BesagError, match=message):
            AgChain(**options)
    with pytest.raises(besag.BesagError, match="no one rank"):
        LanguageModel(Arbitrary(3)).score("s0 s1", "ag_chain", rank=True)
