"""One place at a time: the matrix of each scan, its law, and what temperature and truncation make of it."""

import numpy as np
import pytest

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
    sequences,
    start_from,
    stationary,
    total_variation,
)
from besag.samplers import kernel

CHAINS = 10_000


@pytest.mark.parametrize("scan", ["random", "systematic"])
def test_a_joint_is_invariant(scan):
    law = Table.random(3, 3, seed=1)
    joint = law.log_probs.exp().numpy()
    canvas = blank(law, 3, CHAINS, start_from(joint, CHAINS))
    assert follows(empirical(kernel("gibbs", scan=scan), law, canvas, steps=5), joint)


@pytest.mark.parametrize("scan", ["random", "systematic"])
def test_one_step_is_the_matrix_of_its_scan(scan):
    law, start = Incompatible(3, 3), np.array([2, 0, 1])
    matrices = [gibbs_matrix(law, 3, place) for place in range(3)]
    [at] = number(start[None], 3)
    expected = np.mean(matrices, 0)[at] if scan == "random" else matrices[0][at]
    assert follows(empirical(kernel("gibbs", scan=scan), law, blank(law, 3, CHAINS, start), steps=1), expected)


@pytest.mark.slow
def test_incompatible_conditionals_have_one_law_a_scan():
    law = Incompatible(2, 3)
    matrices = [gibbs_matrix(law, 3, place) for place in range(3)]
    one_place, in_turn = np.mean(matrices, 0), matrices[0] @ matrices[1] @ matrices[2]
    random, sweep = stationary(one_place), stationary(in_turn)
    assert total_variation(random, sweep) > 0.01  # else this test could not tell them apart
    # chains have long forgotten where they began
    assert total_variation(np.linalg.matrix_power(one_place, 40)[0], random) < 1e-6
    assert total_variation(np.linalg.matrix_power(in_turn, 10)[0], sweep) < 1e-6
    canvas = blank(law, 3, CHAINS, np.zeros(3, int))
    assert follows(empirical(kernel("gibbs"), law, canvas, steps=40), random)
    assert follows(empirical(kernel("gibbs", scan="systematic"), law, canvas, steps=30), sweep)


def test_a_subset_is_a_product_of_conditionals_of_one_pass():
    law, start = Table.random(2, 3, seed=3), np.array([0, 1, 0])
    expected = np.zeros(8)
    subsets = [[i for i in range(3) if pattern >> i & 1] for pattern in range(1, 8)]
    for hide in subsets:
        weight = 1 / 3 / {1: 3, 2: 3, 3: 1}[len(hide)]  # the size first, then the subset
        rows = {place: conditional(law, start, hide, place) for place in hide}
        for at, sequence in enumerate(sequences(2, 3)):
            if all(sequence[i] == start[i] for i in range(3) if i not in hide):
                expected[at] += weight * np.prod([rows[place][sequence[place]] for place in hide])
    assert follows(empirical(kernel("gibbs", scan="subset"), law, blank(law, 3, CHAINS, start), steps=1), expected)


def test_temperature_and_truncation_change_the_law_as_they_say():
    law, start = Table.random(5, 1, seed=4), np.array([0])
    row = law.log_probs.exp().numpy()
    hot = row**0.5
    cut = np.where(row >= np.sort(row)[-2], row, 0)
    order = np.argsort(-row)
    few = np.zeros(5)
    few[order[: int((np.cumsum(row[order]) < 0.6).sum()) + 1]] = 1
    for options, expected in [({"temperature": 2.0}, hot), ({"top_k": 2}, cut), ({"top_p": 0.6}, row * few)]:
        assert follows(empirical(kernel("gibbs", **options), law, blank(law, 1, CHAINS, start), steps=1), expected)


def test_an_unknown_scan():
    with pytest.raises(
        BesagError, match=r"scan='ramdom': give one of random, systematic, subset. Did you mean 'random'\?"
    ):
        kernel("gibbs", scan="ramdom")
