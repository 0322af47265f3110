"""`first_hitting` against the joint, the average over orders, and the law of exact reveal times."""

from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from besag.conditionals.table import Table
from besag.lab.oracles import (
    FALSE_ALARM,
    Incompatible,
    blank,
    conditional,
    empirical,
    follows,
    run,
    sequences,
    total_variation,
)
from besag.samplers import (
    ancestral,  # noqa: F401 (registers itself)
    first_hitting,  # noqa: F401
    kernel,
)

CHAINS = 10_000


def chain_rule(law, places, order):
    """(V^n,) the law of drawing place after place in this order."""
    expected = np.ones(law.width**places)
    for at, text in enumerate(sequences(law.width, places)):
        for done, place in enumerate(order):
            expected[at] *= conditional(law, text, list(order[done:]), place)[text[place]]
    return expected


def test_a_joint_is_reproduced():
    law = Table.random(3, 3, seed=1, concentration=0.3)
    assert follows(empirical(kernel("first_hitting"), law, blank(law, 3, CHAINS)), law.log_probs.exp().numpy())


def test_without_a_joint_it_is_the_average_over_orders():
    law = Incompatible(2, 3)
    orders = [chain_rule(law, 3, order) for order in permutations(range(3))]
    counts = empirical(kernel("first_hitting"), law, blank(law, 3, CHAINS))
    assert follows(counts, np.mean(orders, 0))
    assert not any(follows(counts, law_of_order) for law_of_order in orders)  # and is none of them


def test_orders_are_uniform_and_times_are_those_of_the_next_of_k():
    law = Table.random(2, 3, seed=2)
    state, told = run(kernel("first_hitting"), law, blank(law, 3, CHAINS))
    seen = np.bincount(state.order.numpy() @ [9, 3, 1], minlength=27)
    assert follows(seen[[5, 7, 11, 15, 19, 21]], np.ones(6))
    assert seen[[5, 7, 11, 15, 19, 21]].sum() == CHAINS
    before, noise = torch.ones(CHAINS, dtype=torch.float64), []
    for masked, info in zip((3, 2, 1), told, strict=True):
        time = info.more["time"]
        noise.append(((time / before) ** masked).numpy())  # u of t·u^{1/k}
        before = time
    assert all(kstest(one, "uniform").pvalue > FALSE_ALARM for one in noise)
    assert np.abs(np.corrcoef(noise)[np.triu_indices(3, 1)]).max() < 4 / np.sqrt(CHAINS)


def test_it_is_ancestral_sampling_on_an_endless_grid():
    law = Incompatible(3, 4)
    one, _ = run(kernel("first_hitting"), law, blank(law, 4, 500), seed=3)
    other, _ = run(kernel("ancestral", grid=10**12), law, blank(law, 4, 500), seed=3)
    coarse, _ = run(kernel("ancestral", grid=4), law, blank(law, 4, 500), seed=3)
    assert torch.equal(one.ids, other.ids)
    assert not torch.equal(one.ids, coarse.ids)


def test_log_probabilities_add_up_to_that_of_the_text():
    table = Table.random(3, 3, seed=4)
    state, told = run(kernel("first_hitting"), table, blank(table, 3, 200))
    total = sum(info.more["log_prob"] for info in told)
    assert torch.allclose(total, table.log_probs[tuple(state.ids.unbind(1))])
    law = Incompatible(3, 3)
    state, told = run(kernel("first_hitting"), law, blank(law, 3, 30))
    total = sum(info.more["log_prob"] for info in told)
    for text, order, log_prob in zip(state.ids.numpy(), state.order.tolist(), total.tolist(), strict=True):
        expected = sum(
            np.log(conditional(law, text, order[done:], place)[text[place]]) for done, place in enumerate(order)
        )
        assert log_prob == pytest.approx(expected)


def test_a_pass_and_a_step_for_each_hidden_place():
    law = Table.random(3, 4, seed=3)
    canvas = blank(law, 4, 3, np.array([[3, 1, 3, 3], [3, 1, 2, 3], [2, 1, 0, 0]]))
    _, told = run(kernel("first_hitting"), law, canvas)
    assert sum(info.passes for info in told).tolist() == [3, 2, 0]
    assert sum(info.changed for info in told).tolist() == [3, 2, 0]
    assert len(told) == 3 == kernel("first_hitting").steps(canvas)


def test_temperature_changes_the_answers_and_not_the_order():
    law = Table.random(2, 2, seed=6, concentration=0.3)
    hot = np.zeros(4)
    for order in permutations(range(2)):
        for at, text in enumerate(sequences(2, 2)):
            rows = [conditional(law, text, list(order[done:]), place) ** 0.5 for done, place in enumerate(order)]
            hot[at] += 0.5 * np.prod([row[text[i]] / row.sum() for row, i in zip(rows, order, strict=True)])
    counts = empirical(kernel("first_hitting", temperature=2.0), law, blank(law, 2, CHAINS))
    assert total_variation(hot, law.log_probs.exp().numpy()) > 0.05
    assert follows(counts, hot)
