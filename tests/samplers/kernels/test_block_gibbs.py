"""Blocks against transition matrices that plain loops write down from the definition."""

from functools import cache
from itertools import combinations, permutations, product

import numpy as np
import pytest
import torch
from tests.scores.pair_blocks import arnold_gokhale

from besag.conditionals.ising import Ising
from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.lab.oracles import (
    Incompatible,
    blank,
    conditional,
    empirical,
    follows,
    gibbs_matrix,
    number,
    run,
    sequences,
    start_from,
    stationary,
    total_variation,
)
from besag.samplers import block_gibbs, kernel

CHAINS, FEWER = 10_000, 6000


# ---- the definitions


def asked(law, sequence, hide, place):
    """(V,) p(x_place | what is shown when `hide` are hidden), each asked once."""
    return _once(law, tuple(filled(sequence, hide, law.width).tolist()), place)


@cache
def _once(law, shown, place):
    return conditional(law, np.array(shown), [place], place)


def filled(sequence, places, tokens):
    moved = np.array(sequence)
    moved[list(places)] = tokens
    return moved


def shaped(row, temperature=1.0, top_k=None):
    row = row ** (1 / temperature)
    if top_k is not None:
        row = np.where(row >= np.sort(row)[-top_k], row, 0)
    return row / row.sum()


def independent(law, sequence, block, **shape):
    """(V, …, V) the law of the block's tokens: the product of one pass."""
    joint = np.ones(())
    for place in block:
        joint = np.multiply.outer(joint, shaped(asked(law, sequence, block, place), **shape))
    return joint


def sequential(law, sequence, block, **shape):
    """The chain rule, all orders averaged."""
    joint = np.zeros((law.width,) * len(block))
    orders = list(permutations(range(len(block))))
    for tokens, order in product(product(range(law.width), repeat=len(block)), orders):
        probability = 1.0
        for turn, at in enumerate(order):
            if probability > 0:
                shown = filled(sequence, [block[i] for i in order[:turn]], [tokens[i] for i in order[:turn]])
                row = asked(law, shown, [block[i] for i in order[turn:]], block[at])
                probability *= shaped(row, **shape)[tokens[at]]
        joint[tokens] += probability / len(orders)
    return joint


def paired(law, sequence, pair, candidates):
    """(V, V) the Arnold-Gokhale joint over the likeliest tokens, by its plain iteration."""
    return _joined(law, tuple(filled(sequence, pair, law.width).tolist()), pair, candidates)


@cache
def _joined(law, context, pair, candidates):
    first, second = pair
    x, y = (np.argsort(-asked(law, context, pair, place), kind="stable")[:candidates] for place in pair)
    a = np.stack([asked(law, filled(context, [second], token), [first], first)[x] for token in y], 1)
    b = np.stack([asked(law, filled(context, [first], token), [second], second)[y] for token in x])
    flat, ones = np.full(len(x), 1 / len(x)), np.ones(len(x))
    joint = np.zeros((law.width, law.width))
    joint[np.ix_(x, y)] = arnold_gokhale(a / a.sum(0), b / b.sum(1, keepdims=True), flat, flat, ones, ones)
    return joint


def corrected(law, sequence, pair, candidates, escape=block_gibbs.ESCAPE):
    """(V, V) where one corrected step leads from this sequence."""
    q, m = paired(law, sequence, pair, candidates), sequential(law, sequence, pair)
    old, moved = tuple(np.array(sequence)[list(pair)]), np.zeros_like(q)
    for new in product(range(law.width), repeat=2):
        if q[new] > 0 and q[old] > 0:  # no way back, no way there
            moved[new] += q[new] * min(1.0, m[new] * q[old] / (m[old] * q[new]))
    moved[old] += 1 - moved.sum()
    return escape * m + (1 - escape) * moved


def blocks(places, size, where):
    runs = [tuple(range(first, first + size)) for first in range(places - size + 1)]
    return runs if where == "adjacent" else list(combinations(range(places), size))


def one_step(law, sequence, chosen, step):
    """(V^n,) where one step leads from a sequence, the block uniform among the chosen."""
    reached = np.zeros(law.width ** len(sequence))
    for block in chosen:
        joint = step(law, sequence, block)
        for tokens in product(range(law.width), repeat=len(block)):
            [at] = number(filled(sequence, block, tokens)[None], law.width)
            reached[at] += joint[tokens] / len(chosen)
    return reached


def matrix(law, places, chosen, step):
    return np.stack([one_step(law, sequence, chosen, step) for sequence in sequences(law.width, places)])


# ---- sequential


@pytest.mark.parametrize(("size", "where"), [(2, "random"), (2, "adjacent"), (3, "adjacent")])
def test_sequential_blocks_leave_a_joint_invariant(size, where):
    law = Table.random(2, 4, seed=1)
    joint = law.log_probs.exp().numpy()
    exact = matrix(law, 4, blocks(4, size, where), sequential)
    np.testing.assert_allclose(joint.ravel() @ exact, joint.ravel(), atol=1e-12)
    canvas = blank(law, 4, CHAINS, start_from(joint, CHAINS))
    assert follows(empirical(kernel("block_gibbs", size=size, where=where), law, canvas, steps=3), joint)


@pytest.mark.parametrize("where", ["random", "adjacent"])
@pytest.mark.parametrize("inner", ["independent", "sequential"])
@pytest.mark.parametrize("size", [2, 3])
def test_one_step_is_the_law_of_its_definition(where, inner, size):
    law, start = Incompatible(2, 4, seed=2), np.array([1, 0, 0, 1])
    step = {"independent": independent, "sequential": sequential}[inner]
    expected = one_step(law, start, blocks(4, size, where), step)
    seen = empirical(kernel("block_gibbs", size=size, where=where, inner=inner), law, blank(law, 4, CHAINS, start), 1)
    assert follows(seen, expected)
    other = {"independent": sequential, "sequential": independent}[inner]
    assert not follows(seen, one_step(law, start, blocks(4, size, where), other))
    elsewhere = {"random": "adjacent", "adjacent": "random"}[where]
    assert not follows(seen, one_step(law, start, blocks(4, size, elsewhere), step))


@pytest.mark.slow
def test_on_incompatible_answers_it_converges_to_the_eigenvector_of_its_own_matrix():
    law = Incompatible(2, 3)
    own = stationary(matrix(law, 3, blocks(3, 2, "random"), sequential))
    single = stationary(np.mean([gibbs_matrix(law, 3, place) for place in range(3)], 0))
    assert total_variation(own, single) > 0.01  # else this test could not tell them apart
    canvas = blank(law, 3, CHAINS, np.zeros(3, int))
    seen = empirical(kernel("block_gibbs"), law, canvas, steps=25)
    assert follows(seen, own)
    assert not follows(seen, single)


@pytest.mark.slow
def test_larger_blocks_mix_faster():
    """The steps in which chains forget where they began, 1/(1 − λ₂), on four spins in a row: a figure of the docs."""
    law, found = Ising.chain(4, 1.0), {}
    for size, where in product((1, 2, 3, 4), ("random", "adjacent")):
        exact = matrix(law, 4, blocks(4, size, where), sequential)
        found[size, where] = 1 / (1 - np.sort(np.linalg.eigvals(exact).real)[-2])
    assert [round(found[size, "random"], 1) for size in (1, 2, 3, 4)] == [37.4, 11.0, 3.8, 1.0]
    assert [round(found[size, "adjacent"], 1) for size in (1, 2, 3, 4)] == [37.4, 8.0, 3.6, 1.0]


@pytest.mark.parametrize("inner", ["independent", "sequential"])
def test_blocks_of_one_are_gibbs(inner):
    law, start = Incompatible(3, 3), np.array([2, 0, 1])
    [at] = number(start[None], 3)
    expected = np.mean([gibbs_matrix(law, 3, place) for place in range(3)], 0)[at]
    for where in ("random", "adjacent"):
        chain = kernel("block_gibbs", size=1, inner=inner, where=where)
        assert follows(empirical(chain, law, blank(law, 3, CHAINS, start), steps=1), expected)


# ---- independent


@pytest.mark.parametrize("block", [(1, 3), (0, 1, 2), (0, 1, 2, 3)])
def test_an_independent_block_loses_its_conditional_total_correlation(block):
    law = Table.random(2, 4, seed=3)
    joint = law.log_probs.exp().numpy()
    rest = joint.sum(block, keepdims=True)  # π(x_∖K)
    product_of_rows = rest
    for place in block:
        others = tuple(set(block) - {place})
        product_of_rows = product_of_rows * joint.sum(others, keepdims=True) / rest  # π(x_i | x_∖K)
    correlation = (joint * np.log(joint / product_of_rows)).sum()  # E KL(π(x_K | x_∖K) ‖ Π_i π(x_i | x_∖K))
    after = joint.ravel() @ matrix(law, 4, [block], independent)
    assert correlation > 0.05
    assert (joint.ravel() * np.log(joint.ravel() / after)).sum() == pytest.approx(correlation, abs=1e-12)
    free = torch.zeros(CHAINS, 4, dtype=torch.bool)
    free[:, list(block)] = True  # a block as large as what is free is always the same
    canvas = blank(law, 4, CHAINS, start_from(joint, CHAINS))._replace(free=free)
    seen = empirical(kernel("block_gibbs", size=len(block), inner="independent"), law, canvas, steps=1)
    assert follows(seen, after)
    assert not follows(seen, joint)


# ---- Arnold-Gokhale


def ag(candidates):
    return lambda law, sequence, pair: paired(law, sequence, pair, candidates)


def correction(candidates):
    return lambda law, sequence, pair: corrected(law, sequence, pair, candidates)


def test_ag_with_all_candidates_leaves_a_joint_invariant():
    law = Table.random(3, 3, seed=4)
    joint = law.log_probs.exp().numpy()
    canvas = blank(law, 3, FEWER, start_from(joint, FEWER))
    assert follows(empirical(kernel("block_gibbs", inner="ag", candidates=3), law, canvas, steps=3), joint)


@pytest.mark.slow
def test_with_fewer_candidates_only_the_correction_does():
    law = Table.random(3, 3, seed=4)
    joint = law.log_probs.exp().numpy()
    canvas = blank(law, 3, FEWER, start_from(joint, FEWER))
    uncorrected = empirical(kernel("block_gibbs", inner="ag", candidates=2), law, canvas, steps=4)
    assert total_variation(uncorrected, joint) > 0.1
    options = {"inner": "ag", "candidates": 2, "metropolis": True}
    assert follows(empirical(kernel("block_gibbs", **options), law, canvas, steps=4), joint)
    exact = matrix(law, 3, blocks(3, 2, "random"), correction(2))
    np.testing.assert_allclose(joint.ravel() @ exact, joint.ravel(), atol=1e-10)
    np.testing.assert_allclose(stationary(exact), joint.ravel(), atol=1e-8)  # and no other law is


def test_one_step_of_ag_and_of_its_correction_on_incompatible_answers():
    law, start = Incompatible(3, 3, seed=1), np.array([0, 1, 1])
    canvas, pairs = blank(law, 3, CHAINS, start), blocks(3, 2, "adjacent")
    laws = {}
    for metropolis, step in ((False, ag(2)), (True, correction(2))):
        laws[metropolis] = one_step(law, start, pairs, step)
        options = {"inner": "ag", "candidates": 2, "metropolis": metropolis, "where": "adjacent"}
        assert follows(empirical(kernel("block_gibbs", **options), law, canvas, steps=1), laws[metropolis])
    assert total_variation(laws[True], laws[False]) > 0.05


def test_the_correction_is_towards_the_law_of_sequential():
    """Of two places, nothing else given: reversible for m, and m is neither the AG joint nor the law of Gibbs."""
    law = Incompatible(3, 2, seed=3)
    m = sequential(law, [0, 0], (0, 1)).ravel()
    exact = matrix(law, 2, [(0, 1)], correction(2))
    flow = m[:, None] * exact
    np.testing.assert_allclose(flow, flow.T, atol=1e-12)
    np.testing.assert_allclose(stationary(exact), m, atol=1e-9)
    assert total_variation(m, paired(law, [0, 0], (0, 1), 3)) > 0.02
    q = paired(law, [0, 0], (0, 1), 2)
    tempting = [
        m if q[tuple(old)] == 0 else corrected(law, old, (0, 1), 2, escape=0).ravel() for old in sequences(3, 2)
    ]
    assert abs(m @ np.stack(tempting) - m).sum() > 0.02  # to escape just where one must: m is not kept
    canvas = blank(law, 2, FEWER, start_from(q, FEWER))
    seen = empirical(kernel("block_gibbs", inner="ag", candidates=2, metropolis=True), law, canvas, steps=5)
    assert follows(seen, q.ravel() @ np.linalg.matrix_power(exact, 5))


@pytest.mark.parametrize("shape", [{"temperature": 2.0}, {"temperature": 0.7, "top_k": 2}])
def test_the_correction_knows_what_shapes_the_draws(shape):
    law = Incompatible(3, 2, seed=5)
    m = sequential(law, [0, 0], (0, 1), **shape)
    assert total_variation(m, sequential(law, [0, 0], (0, 1))) > 0.05
    canvas = blank(law, 2, FEWER, start_from(m, FEWER))
    options = {"inner": "ag", "candidates": 2, "metropolis": True, **shape}
    assert follows(empirical(kernel("block_gibbs", **options), law, canvas, steps=2), m)
    assert follows(empirical(kernel("block_gibbs", **shape), law, canvas, steps=1), m)


def test_no_way_back_no_way_there(monkeypatch):
    law = Incompatible(3, 2, seed=3)
    q = paired(law, [0, 0], (0, 1), 2)
    outside, inside = (sequences(3, 2)[found][0] for found in (q.ravel() == 0, q.ravel() > 0))
    chain = kernel("block_gibbs", inner="ag", candidates=2, metropolis=True)
    state, [info] = run(chain, law, blank(law, 2, 5000, outside), steps=1)
    escaped = info.more["escaped"].bool()
    assert torch.equal(info.more["accepted"].bool(), escaped)
    assert (state.ids[~escaped] == torch.as_tensor(outside)).all()
    assert abs(float(escaped.double().mean()) - block_gibbs.ESCAPE) < 0.02  # 4.7 standard errors
    monkeypatch.setattr(block_gibbs, "ESCAPE", 0.0)
    state, _ = run(chain, law, blank(law, 2, 500, outside), steps=5)
    assert (state.ids == torch.as_tensor(outside)).all()
    _, [info] = run(chain, law, blank(law, 2, CHAINS, inside), steps=1)
    m = sequential(law, [0, 0], (0, 1))
    old = tuple(inside)
    expected = sum(q[new] * min(1, m[new] * q[old] / m[old] / q[new]) for new in zip(*np.nonzero(q), strict=True))
    assert abs(float(info.more["accepted"].mean()) - expected) < 4 * (expected * (1 - expected) / CHAINS) ** 0.5


def test_a_hidden_pair_is_filled_first():
    law = Incompatible(3, 2, seed=3)
    chain = kernel("block_gibbs", inner="ag", candidates=2, metropolis=True)
    seen = empirical(chain, law, blank(law, 2, CHAINS), steps=1)
    assert follows(seen, sequential(law, [0, 0], (0, 1)))
    half = blank(law, 2, CHAINS, np.array([3, 1]))
    assert follows(empirical(chain, law, half, steps=1), sequential(law, [0, 0], (0, 1)))
    plain = empirical(kernel("block_gibbs", inner="ag", candidates=2), law, blank(law, 2, CHAINS), steps=1)
    assert follows(plain, paired(law, [0, 0], (0, 1), 2))


# ---- passes and places

INNERS = [
    {"inner": "independent", "size": 3},
    {"inner": "sequential", "size": 2},
    {"inner": "ag", "candidates": 2},
    {"inner": "ag", "candidates": 2, "metropolis": True},
]


@pytest.mark.parametrize("options", INNERS)
def test_what_a_step_costs(options):
    law = Table.random(3, 4, seed=2)
    _, told = run(kernel("block_gibbs", **options), law, blank(law, 4, 30), steps=4)
    expected = {"independent": {1}, "sequential": {2}, "ag": {5} | ({2} if options.get("metropolis") else set())}
    assert {int(spent) for info in told for spent in info.passes} == expected[options["inner"]]


def test_neighbours_are_neighbours_among_the_free_places():
    law = Table.random(3, 5, seed=6)
    canvas = blank(law, 5, 2000, np.zeros(5, int))
    canvas = canvas._replace(free=canvas.free & torch.tensor([True, False, True, True, False]))
    state, _ = run(kernel("block_gibbs", where="adjacent", inner="independent"), law, canvas, steps=1)
    moved = {tuple(np.flatnonzero(row)) for row in (state.ids != 0).numpy()}
    assert (0, 2) in moved
    assert (2, 3) in moved
    assert (0, 3) not in moved


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"size": 0}, "size=0: a block has at least 1 place"),
        ({"inner": "ag", "size": 3}, "size=3: inner='ag' draws pairs, size=2"),
        ({"metropolis": True}, "metropolis=True corrects inner='ag'; inner='sequential' proposes nothing"),
        ({"candidates": 0}, "candidates=0: a place needs at least 1"),
        ({"where": "adjacant"}, r"where='adjacant': give one of random, adjacent. Did you mean 'adjacent'\?"),
        ({"inner": "parallel"}, "inner='parallel': give one of independent, sequential, ag"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told):
        kernel("block_gibbs", **options)


def test_more_places_than_are_free():
    law = Table.random(2, 3)
    canvas = blank(law, 3, 2)
    with pytest.raises(BesagError, match="size=4: a block cannot be larger than the 3 free places of a text"):
        kernel("block_gibbs", size=4).check(canvas)
    free = torch.tensor([[True, True, True], [False, True, False]])
    with pytest.raises(BesagError, match="than the 1 free place of a text; give size=1"):
        kernel("block_gibbs").check(canvas._replace(free=free))
