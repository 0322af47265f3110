"""Joints of several places, against exact laws, against their own condition by brute force, and against pairs."""

import itertools
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws import Arbitrary, Counting

import besag
from besag.conditionals.table import Table
from besag.engine import Engine
from besag.joints import construction
from besag.joints.asking import unaries
from besag.joints.block import block_joint
from besag.joints.block_ag import solve
from besag.joints.block_asking import affordable, ask, cost
from besag.joints.pair import PairJoint
from besag.places.places import find
from besag.results.status import Status


def joint(law, text="[MASK] [MASK] [MASK]", positions=None, progress=False, **options):
    places = find(law.vocabulary, text, positions, law.max_length)
    return block_joint(Engine(law, progress=progress), places, **options)


def dense(block, width):
    """p over all tokens, by id."""
    p = np.zeros((width,) * len(block))
    p[np.ix_(*block.ids)] = np.exp(block.log_probs)
    return p


def conditionals(law, ids, k):
    """c_i(x) by asking the law itself: one array a place, over the candidates."""
    tables = []
    for i in range(k):
        table = np.empty([len(part) for part in ids])
        for index in itertools.product(*(range(len(part)) for part in ids)):
            shown = [int(part[at]) for part, at in zip(ids, index, strict=True)]
            row = np.exp(law.log_probs([*shown[:i], law.width, *shown[i + 1 :]], i))
            table[index] = row[shown[i]] / row[ids[i]].sum()
        tables.append(table)
    return tables


def objective(tables, log_p):
    """Σ_i Σ_{x_−i} KL(c_i ‖ p(·|x_−i))."""
    return sum(
        float((table * (np.log(table) - (log_p - np.logaddexp.reduce(log_p, i, keepdims=True)))).sum())
        for i, table in enumerate(tables)
    )


# ---- the mathematics


@settings(max_examples=10)
@given(st.integers(2, 3), st.integers(2, 4), st.integers(0, 1000))
def test_the_joint_of_an_exact_table_is_found(width, places, seed):
    table = Table.random(width, places + 1, seed, concentration=1.0)
    found = joint(table, "s1" + " [MASK]" * places, tolerance=1e-12)
    assert found.status == "ok"
    truth = table.log_probs[1].exp().numpy()
    np.testing.assert_allclose(dense(found, width), truth / truth.sum(), atol=1e-9)
    assert found.details["objective"] == pytest.approx(0, abs=1e-9)
    assert found.lost.hidden == pytest.approx((0,) * places, abs=1e-12)


@settings(max_examples=10)
@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 1000))
def test_two_places_have_the_joint_of_a_pair(width, places, seed):
    law = Arbitrary(width)
    text = " ".join(f"s{seed * i % width}" for i in range(places))
    engine, found = Engine(law), find(law.vocabulary, text, [0, 1])
    block = block_joint(engine, found, tolerance=1e-13, limit=10_000)
    pair = construction("ag", tolerance=1e-13, limit=10_000).build(table := unaries(engine, found))
    assert block.status == pair.status == "ok"
    expected = np.zeros((width, width))
    expected[np.ix_(table.ids_a, table.ids_b)] = pair.law.cells(table).exp().numpy()
    np.testing.assert_allclose(dense(block, width), expected, atol=1e-9)


@pytest.mark.parametrize(("width", "places"), [(3, 3), (2, 4)])
def test_its_condition_holds_for_incompatible_conditionals(width, places):
    law = Arbitrary(width)
    found = joint(law, "[MASK] " * places, tolerance=1e-13)
    p, tables = np.exp(found.log_probs), conditionals(law, found.ids, places)
    inverse = sum(1 / p.sum(i, keepdims=True) for i in range(places))
    np.testing.assert_allclose(p * inverse, sum(tables), rtol=1e-8)
    assert found.details["objective"] == pytest.approx(objective(tables, found.log_probs), abs=1e-9)
    generator = np.random.default_rng(0)
    for size in (1, 0.1, 1e-3):
        assert objective(tables, found.log_probs + size * generator.normal(size=p.shape)) > found.details["objective"]


def test_the_objective_never_rises():
    law = Arbitrary(4)
    found = joint(law)
    tables = conditionals(law, found.ids, 3)
    log_c = torch.from_numpy(np.log(sum(tables)))
    falls = [solve(log_c, tolerance=1e-15, limit=steps).details["objective"] for steps in range(1, 40)]
    assert (np.diff(falls) <= 1e-12).all()
    assert falls[0] - falls[-1] > 0.1


def test_probabilities_far_below_single_precision_are_kept():
    law = Arbitrary(3)
    logits = law.logits
    law.logits = lambda context, place: 60 * logits(context, place)
    found = joint(law)
    assert np.isfinite(found.log_probs).all()
    assert found.log_probs.min() < -100
    assert np.logaddexp.reduce(found.log_probs, axis=None) == pytest.approx(0, abs=1e-12)


def test_what_does_not_converge_says_so():
    found = joint(Arbitrary(4), limit=3)
    assert found.status is Status.NOT_CONVERGED
    assert found.facts[0].startswith("NOT CONVERGED: residual")
    assert "NOT CONVERGED" in repr(found)


# ---- the log-linear joint


@settings(max_examples=10)
@given(st.integers(2, 3), st.integers(2, 5), st.integers(0, 1000))
def test_the_log_linear_joint_of_an_exact_table_is_the_table(width, places, seed):
    table = Table.random(width, places, seed, concentration=1.0)
    found = joint(table, "[MASK] " * places, method="loglinear")
    assert (found.status, found.method) == ("ok", "loglinear")
    np.testing.assert_allclose(dense(found, width), table.log_probs.exp().numpy(), atol=1e-10)
    assert found.details["misfit"] == pytest.approx(0, abs=1e-6)


def test_the_log_linear_joint_of_two_places_is_that_of_a_pair():
    law = Arbitrary(6)
    engine, places = Engine(law), find(law.vocabulary, "s0 [MASK] [MASK]")
    block = block_joint(engine, places, "loglinear", candidates="all")
    pair = construction("loglinear").build(table := unaries(engine, places))
    expected = np.zeros((6, 6))
    expected[np.ix_(table.ids_a, table.ids_b)] = pair.law.cells(table).exp().numpy()
    np.testing.assert_allclose(dense(block, 6), expected, atol=1e-12)
    assert block.details["misfit"] == pytest.approx(pair.details["misfit"])


@pytest.mark.parametrize(("width", "places"), [(3, 3), (2, 4), (2, 5)])
def test_no_joint_has_log_conditionals_nearer_than_the_log_linear_one(width, places):
    """Against a dense least-squares solver: log c_i = log q + α_i(x_−i)."""
    law = Arbitrary(width)
    found = joint(law, "[MASK] " * places, method="loglinear")
    tables, cells = conditionals(law, found.ids, places), width**places
    index = np.indices((width,) * places).reshape(places, cells)
    contexts = [np.eye(cells // width)[np.ravel_multi_index(np.delete(index, i, 0), (width,) * (places - 1))]
                for i in range(places)]  # fmt: skip
    system = np.block([
        [np.eye(cells), *(context if j == i else np.zeros_like(context) for j, context in enumerate(contexts))]
        for i in range(places)
    ])  # fmt: skip
    wanted = np.concatenate([np.log(table).ravel() for table in tables])
    solution, _, rank, _ = np.linalg.lstsq(system, wanted, rcond=None)
    log_q = solution[:cells] - np.logaddexp.reduce(solution[:cells])
    np.testing.assert_allclose(found.log_probs.ravel(), log_q, atol=1e-9)
    left = np.square(system @ solution - wanted).sum()
    assert found.details["misfit"] == pytest.approx(np.sqrt(left / (len(wanted) - rank)))


def test_a_block_with_a_conditional_of_zero_has_no_log_linear_joint():
    table = Table([[[0.2, 0.2], [0.1, 0.1]], [[0.0, 0.1], [0.1, 0.2]]])
    with pytest.raises(besag.BesagError, match="fits logarithms, and a conditional of the block is 0: ag takes it"):
        joint(table, method="loglinear")
    with pytest.raises(besag.BesagError, match="3 places by 'loglinear' has no option 'limit': it takes no options"):
        joint(table, method="loglinear", limit=3)


# ---- what is asked


def test_the_cost_is_what_is_run_and_is_said_before(capsys):
    assert cost([2, 3, 4]) == (12 + 8 + 6, 24, cost([24]).bytes)
    law = Counting(Arbitrary(5))
    found = joint(law, "s0 [MASK] [MASK] [MASK]", candidates=2, progress=True)
    assert "3 places over 2 × 2 × 2 candidates: 12 sequences, 8 cells" in capsys.readouterr().err
    assert len(law.sequences) == 1 + 12  # the first one hides all places
    assert found.details["sequences"] == 12


def test_what_would_not_fit_is_refused_with_a_way_out():
    law = Arbitrary(20)
    with pytest.raises(besag.BesagError, match=r"20 × 20 .*64,000,000 cells.*candidates=\d+ .*beam=16"):
        joint(law, "[MASK] " * 6, candidates="all")
    fewer = affordable(law, find(law.vocabulary, "[MASK] " * 6))
    assert cost([fewer] * 6).sequences * 6 <= 40_000


def test_candidates_are_the_likeliest_and_hold_the_mass_they_say():
    law = Arbitrary(6)
    found = joint(law, candidates=2)
    for i, ids in enumerate(found.ids):
        row = law.log_probs([6, 6, 6], i)
        assert ids.tolist() == np.argsort(-row)[:2].tolist()
        assert found.lost.hidden[i] == pytest.approx(1 - np.exp(row[ids]).sum())
    p = np.exp(found.log_probs)
    lost = sum(
        p.sum(0)[y, z] * (1 - np.exp(law.log_probs([6, found.ids[1][y], found.ids[2][z]], 0)[found.ids[0]]).sum())
        for y, z in itertools.product(range(2), repeat=2)
    )
    assert found.lost.given[0] == pytest.approx(lost)
    assert "2 × 2 × 2 candidates, which hold" in found.normalised


def test_words_may_be_given_and_the_own_tokens_are_never_missing():
    law = Arbitrary(6)
    words = joint(law, candidates=[["s1", "s4"], ["s0"], ["s3", "s2", "s5"]])
    assert [ids.tolist() for ids in words.ids] == [[1, 4], [0], [3, 2, 5]]
    rare = [int(law.log_probs([6, 6, 6], i).argmin()) for i in range(3)]
    own = joint(law, " ".join(f"s{x}" for x in rare), positions=[0, 1, 2], candidates=2)
    assert own.forced == (True, True, True)
    assert [ids[-1] for ids in own.ids] == rare
    assert own.gold.tokens == tuple(f"s{x}" for x in rare)
    assert own.gold.log_prob == own.log_prob(*own.gold.tokens)
    assert own.rank == 1 + (own.log_probs > own.gold.log_prob).sum()
    assert "← the text" in repr(own)
    assert "was added to the candidates" in repr(own)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": 0}, "candidates=0: give how many"),
        ({"candidates": "some"}, "candidates='some'"),
        ({"candidates": [["s0"]]}, "give 3 lists of words"),
        ({"candidates": [["s0"], ["s1", "s1"], ["s0"]]}, "'s1' and 's1' of place 2 are the same token"),
        ({"weights": "marginal"}, "no option 'weights': it takes tolerance, limit"),
        ({"tolerance": -1.0}, "tolerance=-1.0: give a number"),
        ({"outcomes": "txt"}, "outcomes='txt'.*'text'"),
    ],
)
def test_wrong_wishes_are_answered(options, message):
    with pytest.raises(besag.BesagError, match=message):
        joint(Arbitrary(6), **options)


def test_one_place_is_no_joint_and_a_causal_model_has_none():
    with pytest.raises(besag.BesagError, match=r"needs two places or more.*fill\(\)"):
        joint(Arbitrary(3), "s0 [MASK]")
    with pytest.raises(besag.BesagError, match="needs a masked model"):
        joint(Arbitrary(3, sees="left"))


# ---- the result


@pytest.fixture(scope="module")
def found():
    return joint(Table.random(4, 4, 3), "s2 [MASK] [MASK] [MASK]", tolerance=1e-13)


@pytest.fixture(scope="module")
def truth():
    p = Table.random(4, 4, 3).log_probs[2].exp().numpy()
    return p / p.sum()


def test_its_numbers_are_those_of_the_law(found, truth):
    assert found.log_prob("s1", "s0", 3) == pytest.approx(np.log(truth[1, 0, 3]), abs=1e-8)
    for i, log_p in enumerate(found.marginals):
        expected = truth.sum(tuple(j for j in range(3) if j != i))
        np.testing.assert_allclose(np.exp(log_p), expected[found.ids[i]], atol=1e-9)
    given = truth[:, 2].sum(1) / truth[:, 2].sum()
    np.testing.assert_allclose(np.exp(found.conditional(0, {1: "s2"})), given[found.ids[0]], atol=1e-9)
    given = truth[3, 2] / truth[3, 2].sum()
    np.testing.assert_allclose(np.exp(found.conditional(2, {1: "s2", 0: "s3"})), given[found.ids[2]], atol=1e-9)
    assert found.entropy == pytest.approx(-(truth * np.log(truth)).sum())
    marginals = [truth.sum(axes) for axes in ((1, 2), (0, 2), (0, 1))]
    apart = sum(-(p * np.log(p)).sum() for p in marginals)
    assert found.total_correlation == pytest.approx(apart - found.entropy)


def test_the_top_is_sorted_and_complete(found, truth):
    top = found.top(100)
    assert len(top) == 64
    np.testing.assert_allclose([row.prob for row in top], np.sort(truth.ravel())[::-1], atol=1e-9)
    best = np.unravel_index(truth.argmax(), truth.shape)
    assert found.top(1) == top[:1]
    assert top[0].tokens == tuple(f"s{x}" for x in best)
    assert top[0].text == " ".join(["s2", *top[0].tokens]) == found.text(*top[0].tokens)


def test_draws_follow_the_law(found, truth):
    draws = found.sample(4000, seed=1)
    assert found.sample(10, seed=1) == draws[:10]
    assert found.sample(10, seed=2) != draws[:10]
    counts = np.zeros_like(truth)
    for draw in draws:
        counts[tuple(token.id for token in draw)] += 1
    assert ((counts - 4000 * truth) ** 2 / (4000 * truth)).sum() < 63 + 5 * np.sqrt(2 * 63)


def test_what_is_wrong_is_quoted(found):
    for call, message in (
        (lambda: found.log_prob("s0", "s1"), r"takes 3 tokens.*not 2"),
        (lambda: found.log_prob("s0", "s1", "t9"), "'t9'"),
        (lambda: found.log_prob("s0", "s1", 4), "4 is not among the 4 candidates of place 2"),
        (lambda: found.log_prob("s0", "s1", 0.5), r"tokens\[2\]=0\.5: give a text or a whole number"),
        (lambda: found.conditional(3, {}), "no place 3: they are numbered 0 to 2"),
        (lambda: found.conditional(1, {1: "s0"}), "both asked and shown"),
        (lambda: found.text("s0 s1"), r"text takes 3 tokens.*not 1"),
        (lambda: found.top(0), "n=0: give a whole number"),
    ):
        with pytest.raises(besag.BesagError, match=message):
            call()


def test_it_is_told_in_every_form(found):
    said = json.loads(json.dumps(found.to_dict()))
    assert said["top"][0]["tokens"] == list(found.top(1)[0].tokens)
    assert (said["status"], said["candidates"], said["gold"]) == ("ok", [4, 4, 4], None)
    frame = found.to_pandas(3)
    assert frame.columns.tolist() == ["token_1", "token_2", "token_3", "prob", "log_prob", "text"]
    assert frame.index.tolist() == [1, 2, 3]
    assert frame.attrs["normalised"] == found.normalised == "3-tuples of tokens: 4 × 4 × 4 candidates"
    for form in (repr(found), found._repr_html_()):
        assert found.top(1)[0].text in form
        assert "total correlation" in form


def test_words_are_read_where_they_stand():
    """On a network: a block over a word of several tokens."""
    from tests import networks

    from besag.conditionals.loading import load_conditionals

    law = load_conditionals((networks.tiny("bert"), networks.vocabulary("bert").tokenizer), device="cpu")
    places = find(law.vocabulary, "The cats sleep on the mat.", positions=[1, 2, 3])
    engine = Engine(law)
    block = block_joint(engine, places, candidates=3)
    assert block.status == "ok"
    assert block.gold.text == "the cats sleep on the mat."  # an uncased model
    pair = find(law.vocabulary, "The cats sleep on the mat.", positions=[1, 2])
    three = block_joint(engine, pair, candidates=3, tolerance=1e-10)
    words = [[law.vocabulary.token(id) for id in ids] for ids in three.ids]
    table = unaries(engine, pair, candidates=words)
    how = construction("ag", tolerance=1e-6)
    expected = PairJoint.build(pair, table, how, vocabulary=law.vocabulary, model="", dtype="")
    assert three.gold.prob == pytest.approx(expected.gold.prob, abs=1e-5)


def test_blocks_are_solved_in_double_precision_whatever_the_network_answers_in():
    class Single(Arbitrary):
        dtype = torch.float32

        def logits(self, context, place):
            return super().logits(context, place).astype(np.float32)

    law = Single(12)
    sums = []
    ask(
        Engine(law),
        find(law.vocabulary, "[MASK] [MASK] [MASK]"),
        lambda place, log_c: sums.append(float(log_c.exp().sum())),
        outcomes="text",
        candidates=12,
    )
    assert sums == pytest.approx([12**2] * 3, abs=1e-10)  # each conditional sums to 1
    block = joint(law, candidates=12, tolerance=1e-13)
    tables, p = conditionals(law, block.ids, 3), np.exp(block.log_probs)
    update = sum(tables) / sum(1 / p.sum(i, keepdims=True) for i in range(3))
    np.testing.assert_allclose(p, update / update.sum(), rtol=1e-6)  # of the answers, in float32
    assert p.sum() == pytest.approx(1, abs=1e-12)
