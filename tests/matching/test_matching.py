"""Pairs on an exact law of interacting sequences: the likeliest permutation of all, and far above chance."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import besag
from besag.engine import Engine
from besag.errors import BesagError
from besag.matching.matching import match

WIDTH, EACH = 3, 2


def interacting(strength: float) -> besag.Table:
    """Two sequences of two symbols: symbol k of the second likes to be that of the first, moved on by one."""
    index = np.indices((WIDTH,) * (2 * EACH))
    agree = sum(index[EACH + place] == (index[place] + 1) % WIDTH for place in range(EACH))
    return besag.Table(np.exp(strength * agree))


def paralogs(law: besag.Table, groups: int, size: int, seed: int = 0) -> tuple[list[str], list[str], list[str]]:
    """Pairs drawn from the law, some to a group: their true order is the one they are drawn in."""
    weights = law.log_probs.exp().numpy()
    draws = np.random.default_rng(seed).choice(weights.size, groups * size, p=weights.ravel())
    whole = np.stack(np.unravel_index(draws, weights.shape), 1)
    said = [[" ".join(f"s{symbol}" for symbol in half) for half in (row[:EACH], row[EACH:])] for row in whole]
    return [a for a, _ in said], [b for _, b in said], [f"g{number // size}" for number in range(len(said))]


@given(seed=st.integers(0, 500))
@settings(max_examples=4, deadline=None)
def test_it_is_the_permutation_of_least_masked_loss(seed):
    law = interacting(1.0)
    first, second, _ = paralogs(law, 1, 4, seed)
    lm = besag.load(law, progress=False)
    found = match(lm.engine, first, second)
    places = [(i, j) for i in range(4) for j in range(4)]
    scores = lm.score([f"{first[i]} {second[j]}" for i, j in places], "pll")
    energy = {place: -score.total for place, score in zip(places, scores, strict=True)}
    least = min(sum(energy[i, j] for i, j in enumerate(way)) for way in permutations(range(4)))
    assert sum(energy[i, j] for i, j in enumerate(found.partner)) == pytest.approx(least, abs=1e-9)
    assert sorted(found.partner) == [0, 1, 2, 3]


def test_partners_are_found_far_above_chance_and_not_where_nothing_interacts():
    first, second, groups = paralogs(interacting(6.0), 30, 4)
    found = match(Engine(interacting(6.0)), first, second, groups)
    right = np.mean([second[own] == second[place] for place, own in enumerate(found.partner)])  # some are the same
    assert found.chance == 0.25
    assert right > 0.95
    blind = match(Engine(interacting(0.0)), *paralogs(interacting(0.0), 60, 4, seed=1))
    assert abs(blind.accuracy - 0.25) < 0.1  # all permutations are equal, and the order of the lists says nothing


def test_partners_stay_within_their_group():
    first, second, groups = paralogs(interacting(2.0), 3, 3)
    found = match(Engine(interacting(2.0)), first, second, groups)
    assert all(groups[place] == groups[own] for place, own in enumerate(found.partner))
    assert [one.group for one in found.pairs] == groups
    assert found.groups == 3


def test_the_margin_is_what_the_next_best_costs():
    law = interacting(1.5)
    first, second, _ = paralogs(law, 1, 3, seed=4)
    lm = besag.load(law, progress=False)
    found = match(lm.engine, first, second)
    energy = [[-lm.score(f"{a} {b}", "pll").total for b in second] for a in first]
    for row, one in enumerate(found.pairs):
        ways = {way: sum(energy[i][j] for i, j in enumerate(way)) for way in permutations(range(3))}
        without = min(cost for way, cost in ways.items() if way[row] != found.partner[row])
        assert one.margin == pytest.approx(without - min(ways.values()), abs=1e-9)
    alone = match(lm.engine, first[:1], second[:1])
    assert (alone.pairs[0].margin, alone.pairs[0].prob) == (np.inf, pytest.approx(1.0))


def test_another_score_may_be_the_energy():
    law = interacting(2.0)
    first, second, groups = paralogs(law, 2, 3)
    chain = match(Engine(law), first, second, groups, method="chain")
    assert chain.method == "chain"
    assert sorted(chain.partner) == list(range(6))


def test_what_cannot_be_paired_is_refused():
    engine = Engine(interacting(1.0))
    cases = {
        "2 sequences and 1 others": lambda: match(engine, ["s0 s1", "s0 s0"], ["s0 s1"]),
        "0 sequences": lambda: match(engine, [], []),
        "1 groups for 2 pairs": lambda: match(engine, ["s0 s1"] * 2, ["s0 s1"] * 2, ["g"]),
        "temperature=0": lambda: match(engine, ["s0 s1"], ["s0 s1"], temperature=0.0),
        "cannot be scored": lambda: match(engine, ["s0 [MASK]"], ["s0 s1"]),
        "there is no scoring method 'plll'": lambda: match(engine, ["s0 s1"], ["s0 s1"], method="plll"),
    }
    for said, run in cases.items():
        with pytest.raises(BesagError) as refused:
            run()
        assert said in str(refused.value)
