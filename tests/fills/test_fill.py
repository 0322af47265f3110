"""The likeliest fillings of all masks: exactly where it says so, by a search where it says so."""

import itertools
import json

import numpy as np
import pytest
from scipy.stats import chi2
from tests.laws import Arbitrary, Counting
from tests.scores.test_conformance import text

import besag
from besag import noise
from besag.conditionals.table import Table
from besag.engine import Engine
from besag.errors import BesagError
from besag.fills.fill import fill
from besag.joints import construction
from besag.joints.asking import unaries
from besag.language_model import LanguageModel
from besag.places.places import find


def filling(law, masked, k=5, **options):
    return fill(Engine(law, progress=False), masked, k, **options)


def best_of(table, shown, count, k):
    """The k likeliest fillings of the last `count` places, from the table itself."""
    p = table.log_probs[tuple(shown)].exp().numpy()
    p = p / p.sum()
    order = np.argsort(-p, axis=None, kind="stable")[:k]
    return [tuple(map(int, index)) for index in zip(*np.unravel_index(order, p.shape), strict=True)], p.ravel()[order]


def ids(found):
    return [tuple(token.id for token in row.tokens) for row in found.rows]


# ---- what is the likeliest


@pytest.mark.parametrize("masks", [1, 2, 3, 4])
def test_on_an_exact_table_the_likeliest_fillings_are_found(masks):
    table = Table.random(4, 5, seed=masks, concentration=1.0)
    shown = [1, 2, 0, 3][: 5 - masks]
    found = filling(table, text(shown) + " [MASK]" * masks, k=6, **({"tolerance": 1e-12} if masks > 1 else {}))
    expected, probs = best_of(table, shown, masks, 6)
    assert ids(found) == expected[: len(found)]
    assert len(found) == min(6, 4**masks)
    np.testing.assert_allclose([row.prob for row in found.rows], probs, atol=1e-9)
    assert found.how.startswith("exact over ")
    assert found.lost == pytest.approx((0,) * masks, abs=1e-12)
    assert found.best == text([*shown, *expected[0]])


@pytest.mark.parametrize("masks", [1, 2, 3])
def test_draws_follow_the_joint(masks):
    table = Table.random(3, 3, seed=masks, concentration=1.0)
    shown = [1, 2][: 3 - masks]
    masked = text(shown) + " [MASK]" * masks
    found = filling(table, masked, k=4000, sample=True, seed=3, **({"tolerance": 1e-12} if masks > 1 else {}))
    p = table.log_probs[tuple(shown)].exp().numpy()
    p = p / p.sum()
    counts = np.zeros_like(p)
    for row in ids(found):
        counts[row] += 1
    chi_square = ((counts - 4000 * p) ** 2 / (4000 * p)).sum()
    assert chi_square < chi2.ppf(1 - 1e-4, p.size - 1)
    drawn = np.array([p[row] for row in ids(found)])
    np.testing.assert_allclose([row.prob for row in found.rows], drawn, atol=1e-9)
    assert found.how.startswith("drawn, seed 3, from the joint over ")
    fewer = filling(table, masked, k=5, sample=True, seed=3, **({"tolerance": 1e-12} if masks > 1 else {}))
    assert ids(fewer) == ids(found)[:5]


def test_a_draw_for_one_mask_never_has_probability_0(monkeypatch):
    """Ten probabilities of a tenth sum to less than 1 by rounding; what is above that sum is no other token."""
    weights = np.array([0.1] * 10 + [0.0] * 3)
    assert np.cumsum(weights)[-1] < 1
    monkeypatch.setattr(noise, "uniform", lambda seed, stream, draw: np.full(len(draw), 1 - 2.0**-53))
    drawn = filling(Table(weights), "[MASK]", k=3, sample=True)
    assert ids(drawn) == [(9,)] * 3
    assert all(row.prob == pytest.approx(0.1) for row in drawn.rows)


def test_one_mask_needs_no_joint_and_names_none():
    table = Table.random(4, 2)
    one, two = filling(table, "s1 [MASK]"), filling(table, "[MASK] [MASK]")
    assert (one.method, two.method) == (None, "ag")
    assert not any("ag" in fact.split() for fact in one.facts)
    assert json.loads(json.dumps(one.to_dict()))["method"] is None


def test_candidates_that_are_all_impossible_are_refused():
    table = Table([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.1, 0.1, 0.1]])
    with pytest.raises(BesagError, match="probability 0"):
        filling(table, "s0 [MASK]", candidates=[["s2"]])


def test_a_beam_draws_nothing():
    with pytest.raises(BesagError, match="beam=3 searches for the likeliest fillings and draws none"):
        filling(Table.random(3, 3, seed=0), "[MASK] [MASK] [MASK]", beam=3, sample=True)


@pytest.mark.parametrize(
    "likely",
    [{(0, 1): 0.3, (1, 0): 0.29, (0, 0): 0.05}, {(0, 1, 2): 0.27, (1, 2, 0): 0.26, (2, 0, 1): 0.25, (0, 0, 0): 0.05}],
    ids=["two masks", "three masks"],
)
def test_tokens_are_chosen_to_go_together(likely):
    """Each place alone is likeliest s0; all at once they hardly ever are."""
    places = len(next(iter(likely)))
    weights = np.full((3,) * places, 0.01)
    for index, weight in likely.items():
        weights[index] = weight
    marginals = [weights.sum(tuple(j for j in range(places) if j != i)) for i in range(places)]
    assert [int(marginal.argmax()) for marginal in marginals] == [0] * places
    found = filling(Table(weights), "[MASK] " * places, 1)
    assert ids(found) == [next(iter(likely))]
    assert found[0].prob == pytest.approx(weights[ids(found)[0]] / weights.sum(), abs=1e-6)


def test_two_masks_by_any_construction():
    law = Arbitrary(5)
    engine, places = Engine(law), find(law.vocabulary, "s0 [MASK] s3 [MASK]")
    table = unaries(engine, places)
    for name, options in (
        ("ag", {"weights": "marginal"}),
        ("stationary", {}),
        ("mlm", {}),
        ("order", {"direction": "ba"}),
    ):
        built = construction(name, **options).build(table)
        log_q = built.law.cells(table).numpy()
        x, y = np.unravel_index(log_q.argmax(), log_q.shape)
        found = fill(engine, "s0 [MASK] s3 [MASK]", 1, method=name, **options)
        assert ids(found) == [(int(table.ids_a[x]), int(table.ids_b[y]))]
        assert found[0].log_prob == pytest.approx(log_q.max(), abs=1e-12)
        assert found.method == name


def test_candidates_limit_what_may_stand_there():
    law = Arbitrary(6)
    found = filling(law, "[MASK] s1 [MASK]", k=9, candidates=2)
    assert len(found) == 4
    assert found.how.startswith("exact over candidate sets of 2 × 2, which hold ")
    share = [np.sort(np.exp(law.log_probs([6, 1, 6], i)))[-2:].sum() for i in (0, 2)]
    assert found.lost == pytest.approx(tuple(1 - part for part in share), abs=0.5)
    words = filling(law, "[MASK] s1 [MASK]", k=9, candidates=[["s4", "s2"], ["s5"]])
    assert {row.text for row in words.rows} == {"s4 s1 s5", "s2 s1 s5"}
    one = filling(law, "s1 [MASK]", candidates=[["s4", "s2"]])
    row = np.exp(law.log_probs([1, 6], 1)[[4, 2]])
    np.testing.assert_allclose([filled.prob for filled in one.rows], np.sort(row / row.sum())[::-1])
    assert one.how.startswith("exact over 2 candidates, which hold ")


def test_the_whole_vocabulary_is_compared_where_that_is_cheap():
    law = Counting(Arbitrary(7))
    found = filling(law, "[MASK] [MASK]")
    assert found.how == "exact over all pairs of 7 text tokens"
    assert len({*law.sequences}) == 2 * 7 + 1
    large = Counting(Arbitrary(300))
    found = filling(large, "[MASK] " * 2 + "s0 " * 200, k=1)
    assert "candidate sets of 200 × 200, which hold " in found.how


# ---- the search


def test_a_wide_beam_on_an_exact_table_finds_the_likeliest():
    table = Table.random(3, 6, seed=2, concentration=1.0)
    for masks in (2, 5):
        found = filling(table, text([1] * (6 - masks)) + " [MASK]" * masks, k=4, beam=300, candidates=3)
        expected, probs = best_of(table, [1] * (6 - masks), masks, 4)
        assert ids(found) == expected
        np.testing.assert_allclose([row.prob for row in found.rows], probs, atol=1e-9)
        assert found.how.startswith("beam search over the chain of AG pair blocks: not guaranteed to be the best")
        assert found.lost is None


@pytest.mark.parametrize("options", [{}, {"method": "stationary"}, {"weights": "marginal"}], ids=str)
def test_a_beam_gives_the_probability_that_ag_chain_gives(options):
    law = Arbitrary(4)
    found = filling(law, "[MASK] " * 5, k=8, beam=20, candidates=3, **options)
    scoring = {"joint" if key == "method" else key: value for key, value in options.items()}
    scores = LanguageModel(law).score([row.text for row in found.rows], "ag_chain", candidates=3, **scoring)
    np.testing.assert_allclose([row.log_prob for row in found.rows], [score.total for score in scores], atol=1e-9)
    assert [row.log_prob for row in found.rows] == sorted((row.log_prob for row in found.rows), reverse=True)


def test_a_beam_may_miss_the_best_which_is_why_it_says_so():
    law = Arbitrary(4)
    everything = [text(x) for x in itertools.product(range(4), repeat=4)]
    totals = [score.total for score in LanguageModel(law).score(everything, "ag_chain", candidates=4)]
    wide, narrow = (filling(law, "[MASK] " * 4, k=1, beam=width, candidates=4)[0].log_prob for width in (256, 1))
    assert wide == pytest.approx(max(totals), abs=1e-9)
    assert narrow <= wide


def test_many_masks_are_searched_without_being_told():
    found = filling(Arbitrary(30), "[MASK] " * 7, k=3)
    assert found.how.startswith("beam search")
    assert len(found) == 3


@pytest.mark.parametrize("options", [{}, {"beam": 9, "candidates": 3}], ids=str)
def test_masks_farther_apart_than_the_model_sees_are_refused_whatever_compares_them(options):
    law = Arbitrary(3, max_length=5)
    with pytest.raises(besag.BesagError, match="11 apart, and the model sees 5"):
        filling(law, "[MASK] " + "s0 s1 " * 5 + "[MASK]", **options)


def test_a_beam_sees_the_window_around_the_masks_that_all_others_see():
    law = Counting(Arbitrary(3, max_length=5))
    before, after = "s0 s1 s2 s0 ", " s1 s0 s2 s2"
    found = filling(law, f"{before}[MASK] s1 [MASK]{after}", beam=9, candidates=3)
    assert {len(sequence) for sequence in law.sequences} == {5}
    alone = filling(Arbitrary(3), "s0 [MASK] s1 [MASK] s1", beam=9, candidates=3)  # the window itself
    assert [row.text for row in found.rows] == [before + row.text[3:-3] + after for row in alone.rows]
    assert [row.log_prob for row in found.rows] == pytest.approx([row.log_prob for row in alone.rows])


# ---- what it says


def test_it_is_told_in_every_form():
    found = filling(Arbitrary(4), "s0 [MASK]  [MASK]", k=3)
    said = json.loads(json.dumps(found.to_dict()))
    assert [row["text"] for row in said["fillings"]] == [row.text for row in found.rows]
    assert said["how"] == found.how
    frame = found.to_pandas()
    assert frame.columns.tolist() == ["token_1", "token_2", "prob", "log_prob", "text"]
    assert frame.attrs["how"] == found.how
    for form in (repr(found), found._repr_html_()):
        assert found.best in form
        assert "exact over all pairs of 4 text tokens" in form
    long = filling(Arbitrary(4), "s0 " * 100 + "[MASK]", k=2)
    assert len(long.best.split()) == 101
    assert max(map(len, repr(long).splitlines())) < 250  # the tokens, not the whole text in every row


def test_what_is_wrong_is_quoted():
    law = Arbitrary(4)
    for masked, options, message in (
        ("s0 s1", {}, r"'s0 s1' has no mask: write \[MASK\]"),
        ("s0 [MASK]", {"k": 0}, "k=0"),
        ("s0 [MASK] [MASK]", {"beam": 0}, "beam=0"),
        ("s0 [MASK] [MASK]", {"method": "agg"}, "no joint construction 'agg'.*'ag'"),
        ("[MASK] [MASK] [MASK]", {"method": "hcb"}, "3 places have a joint by 'ag' or 'loglinear' only, not by 'hcb'"),
        ("[MASK] [MASK] [MASK]", {"method": "hcb", "beam": 2}, "ag or stationary, not by 'hcb'"),
        ("[MASK] [MASK] [MASK]", {"beam": 2, "weight": 3}, "no option 'weight': it takes .*weights.*'weights'"),
        ("[MASK] [MASK]", {"beam": 2, "candidates": [["s0"], ["s1"]]}, "a beam takes a number of candidates"),
        ("[MASK] [MASK]", {"pivot": "s0"}, "no option 'pivot'"),
        ("[MASK]", {"weights": "marginal"}, "of one mask, which needs no joint, has no option 'weights'"),
        ("[MASK]", {"candidates": [["s0"], ["s1"]]}, "a list with one list of words"),
    ):
        with pytest.raises(besag.BesagError, match=message):
            filling(law, masked, **options)
    with pytest.raises(besag.BesagError, match="needs a masked model"):
        filling(Arbitrary(4, sees="left"), "[MASK]")
