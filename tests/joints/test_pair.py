"""A joint of two places, against brute force on the dense table."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from tests.joints.example_pairs import casino, make, worded
from tests.joints.tables import single

from besag.errors import BesagError
from besag.joints import CONSTRUCTIONS, construction, pair
from besag.joints.pair import PairJoint
from besag.results.status import Status

methods = pytest.mark.parametrize("method", CONSTRUCTIONS)


# ---- the numbers


@methods
@given(m=st.integers(3, 6), k=st.integers(3, 6), seed=st.integers(0, 10_000))
def test_every_number_is_that_of_the_dense_table(method, m, k, seed):
    joint = make(method, m, k, seed)
    dense = joint.matrix()  # (m, k)
    q = np.exp(dense)
    assert q.shape == (m, k)
    assert q.sum() == pytest.approx(1, abs=1e-9)
    for x, y in [(0, 0), (m - 1, k - 1), (1, 2)]:
        assert joint.log_prob(f"s{x}", y) == pytest.approx(dense[x, y], abs=1e-12)
    u, v = joint.marginals
    np.testing.assert_allclose(np.exp(u), q.sum(1), atol=1e-5)  # of a construction that stops at a tolerance
    np.testing.assert_allclose(np.exp(v), q.sum(0), atol=1e-5)
    of_a, of_b = joint.conditionals
    np.testing.assert_allclose(of_a, dense - logsumexp(dense, 0), atol=1e-12)
    np.testing.assert_allclose(of_b, dense - logsumexp(dense, 1)[:, None], atol=1e-12)
    np.testing.assert_allclose(joint.conditional_a("s1"), of_a[:, 1], atol=1e-12)
    np.testing.assert_allclose(joint.conditional_b("s2"), of_b[2], atol=1e-12)
    assert joint.entropy == pytest.approx(-(q * dense).sum(), abs=1e-9)
    independent = np.log(q.sum(1))[:, None] + np.log(q.sum(0))
    assert joint.mutual_information == pytest.approx((q * (dense - independent)).sum(), abs=1e-4)


@methods
def test_the_top_is_the_top_of_the_table(method):
    joint = make(method, 6, 5, seed=1)
    dense = joint.matrix()
    top = joint.top(7)
    np.testing.assert_allclose([one.log_prob for one in top], np.sort(dense.ravel())[::-1][:7], atol=1e-12)
    for (a, b), text, log_prob, prob in top:
        assert text == joint.text(a, b)
        assert dense[int(a[1:]), int(b[1:])] == pytest.approx(log_prob, abs=1e-12)
        assert (joint.log_prob(a, b), float(np.exp(log_prob))) == (log_prob, prob)
    assert len(joint.top(1000)) == 30


def test_single_precision_stays_single_and_near():
    double = make("stationary", 5, 5)
    joint = PairJoint.build(
        double.places, single(double.unaries), double.construction,
        vocabulary=double.vocabulary, model="tiny", dtype="float32",
    )  # fmt: skip
    assert joint.matrix().dtype == np.float32
    assert joint.marginals[0].dtype == np.float64
    np.testing.assert_allclose(joint.matrix(), double.matrix(), atol=1e-4)


def test_metrics_are_measured_once(monkeypatch):
    counted = []
    real = pair.measure
    monkeypatch.setattr(pair, "measure", lambda *given: counted.append(1) or real(*given))
    joint = make()
    assert joint.metrics() is joint.metrics()
    assert (joint.entropy, joint.mutual_information) == (joint.metrics().entropy, joint.metrics().mutual_information)
    repr(joint)
    assert counted == [1]


def test_another_construction_uses_the_same_conditionals():
    joint = make("mlm")
    other = joint.by(construction("ag"))
    assert (other.method, other.unaries is joint.unaries) == ("ag", True)
    np.testing.assert_allclose(other.matrix(), make("ag").matrix(), atol=1e-12)


# ---- draws

FAR = 56.5  # a χ² of 15 degrees of freedom is larger once in a million


def chi_square(joint, law, n=20_000, seed=7):
    counts = np.zeros((4, 4))
    for a, b in joint.sample(n, seed):
        counts[int(a[1:]), int(b[1:])] += 1
    expected = n * np.exp(law.matrix())
    return ((counts - expected) ** 2 / expected).sum()


@pytest.mark.parametrize("method", ["ag", "order", "mrf"])
def test_draws_follow_the_joint(method):
    joint = make(method, 4, 4, seed=2)
    assert chi_square(joint, joint) < FAR
    assert chi_square(joint, joint.by(construction("mlm"))) > FAR  # and not another one


def test_a_draw_does_not_depend_on_how_many_are_drawn():
    joint = make("ag", 6, 6)
    many = joint.sample(1000, seed=3)
    assert joint.sample(10, seed=3) == many[:10]
    assert joint.sample(1000, seed=3) == many
    assert joint.sample(1000, seed=4) != many


def test_what_has_no_probability_is_never_drawn():
    certain = np.array([-np.inf, 0.0, -np.inf])
    assert pair._inverse(certain, np.array([1e-17, 0.5, 1 - 2.0**-53])).tolist() == [1, 1, 1]


def test_draws_name_themselves():
    joint = casino()
    drawn = {a for a, _ in joint.sample(500)}
    assert {"▁man", "man"} <= drawn
    assert all(joint.log_prob(a, b) == joint.log_prob(a.id, b.id) for a, b in joint.sample(50))


# ---- tokens


def test_a_token_is_a_word_at_its_place_its_own_writing_or_an_id():
    joint = casino()
    word, piece = (joint.matrix()[x, y] for x, y in ((0, 0), (2, 2)))
    for x in ("man", "▁man", 390, np.int64(390)):
        assert joint.log_prob(x, "is") == pytest.approx(word, abs=1e-12)
    id = joint.vocabulary.id("man")  # "man" as in "woman", which only its id can name …
    assert joint.log_prob(id, "was") == pytest.approx(piece, abs=1e-12)
    [a] = {one.a for one in joint.top(12) if one.a.id == id}
    assert (a, joint.log_prob(a, "was")) == ("man", joint.log_prob(id, "was"))  # … or what names itself


def test_inside_a_word_a_piece_is_read_as_one():
    joint = worded("The man is at the kasbah.", (8, 9), ["s", "▁the"], ["b", "▁in"])
    dense = pytest.approx(joint.matrix(), abs=1e-12)
    assert [[joint.log_prob(x, y) for y in ("b", "▁in")] for x in ("s", "▁the")] == dense


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("woman", r"'woman' \('▁woman'\) is not among the 4 candidates of a"),
        ("▁dob", "'▁dob' is not a token.*Did you mean"),
        ("kasbah", "'kasbah' is 4 tokens"),
        (9, r"9 \('<0x04>'\) is not among the 4 candidates of a"),
        (10**6, "1000000 .*<no token 1000000>.* is not among"),
        (True, r"tokens\[0\]=True: give a text or a whole number"),
        (1.5, r"tokens\[0\]=1.5: give a text"),
    ],
)
def test_a_token_that_is_no_outcome_is_answered(token, said):
    with pytest.raises(BesagError, match=said):
        casino().log_prob(token, "is")


def test_the_nearest_outcome_is_named():
    with pytest.raises(BesagError, match=r"the 3 candidates of b\. Did you mean '▁was'\?"):
        casino().conditional_a("has")


def test_the_text_is_filled_in():
    joint = casino()
    assert joint.text("dog", "was") == "The dog was at the casino."
    assert joint.text(joint.vocabulary.id("man"), "is") == "Theman is at the casino."
    masked = worded("The [MASK] is [MASK] here.", (2, 4), ["▁man", "man"], ["▁not", "▁is"])
    assert masked.text("man", "not") == "The man is not here."
    assert make().text("s3", "s0") == "s0 s3 s0"


# ---- what it is


def test_what_it_is_normalised_over():
    assert make(m=5, k=5).normalised == "all 5 × 5 pairs of text tokens"
    assert make(m=5, k=4).normalised == "pairs of tokens: 5 × 4 candidates"
    assert casino().normalised == "pairs of tokens: 4 × 3 candidates, which hold 93.1% / 95.2% of the mass"


def test_special_tokens_among_the_outcomes_are_named():
    joint = make(m=5, k=5)
    smaller = make(m=4, k=4)  # of the vocabulary s0 … s3 and [MASK]
    joint = replace(joint, vocabulary=smaller.vocabulary)
    assert joint.normalised == "all 5 × 5 pairs of tokens, special ones too"


def test_gold_is_the_text_s_own_pair():
    joint = make()
    assert joint.gold.tokens == ("s1", "s2")
    assert joint.gold.log_prob == joint.log_prob("s1", "s2")
    assert make(gold=False).gold is None
    assert joint.lost == joint.unaries.lost


def test_non_convergence_is_a_status():
    joint = make("stationary", limit=1)
    assert joint.status is Status.NOT_CONVERGED
    assert make("ag").status == "ok"


@pytest.mark.parametrize("part", ["matrix", "conditionals"])
def test_too_many_cells_are_refused(monkeypatch, part):
    monkeypatch.setattr(pair, "MOST_CELLS", 19)
    joint = make(m=5, k=4)
    with pytest.raises(
        BesagError, match=rf"{part} would hold 5 × 4 numbers.*top\(n\), log_prob\(x, y\), conditional_a"
    ):
        getattr(joint, part)() if part == "matrix" else joint.conditionals


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "3"])
@pytest.mark.parametrize("what", ["top", "sample", "plot"])
def test_a_wrong_number_is_quoted(what, n):
    with pytest.raises(BesagError, match=rf"^n={n!r}: give a whole number"):
        getattr(make(), what)(n=n)


def test_nothing_is_conditioned_on_what_cannot_be():
    joint = make("mlm", 3, 3)
    log_u = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64).log()
    built = joint.built._replace(law=replace(joint.built.law, row=log_u), log_u=log_u)
    joint = replace(joint, built=built)
    assert joint.log_prob("s2", "s0") == -math.inf
    with pytest.raises(BesagError, match="a = 's2' has probability 0"):
        joint.conditional_b("s2")
    with pytest.raises(BesagError, match="probability 0 at a"):
        joint.conditionals  # noqa: B018
