from functools import reduce
from itertools import product

import numpy as np
import pytest
import torch
from tests.samplers.enumerated import MOVES, energy_law, energy_of, move_matrix

from besag.conditionals.table import Table
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import (
    Incompatible,
    blank,
    conditional,
    empirical,
    follows,
    number,
    run,
    sequences,
    start_from,
    total_variation,
)
from besag.samplers import kernel, tempering  # noqa: F401 (it registers itself)
from besag.samplers.kernel import Noise


def ladder_matrix(law, places, temperatures, pairs):
    """All rungs moved once, then these pairs swapped: on the product of the rungs' states, the cold rung slowest."""
    targets = [energy_law(law, places, "norm", temperature) for temperature in temperatures]
    moves = [
        move_matrix(law, places, "single", target, lambda row, heat=hot / temperatures[0]: hotter(row, heat))
        for target, hot in zip(targets, temperatures, strict=True)
    ]
    matrix = reduce(np.kron, moves)
    shape = [len(target) for target in targets]
    for cold in pairs:
        swap = np.zeros_like(matrix)
        for at in range(len(matrix)):
            states = list(np.unravel_index(at, shape))
            a, b = states[cold], states[cold + 1]
            ratio = targets[cold][b] * targets[cold + 1][a] / (targets[cold][a] * targets[cold + 1][b])
            states[cold], states[cold + 1] = b, a
            swap[at, np.ravel_multi_index(states, shape)] += min(1, ratio)
            swap[at, at] += 1 - min(1, ratio)
        matrix = matrix @ swap
    return matrix, reduce(np.kron, targets)


def hotter(row, heat):
    return row ** (1 / heat) / (row ** (1 / heat)).sum()


def together(state, width):
    """(C,) the number of the state of all rungs."""
    rungs = torch.cat([state.ids[:, None], state.hotter], 1)  # (C, K, n)
    each = number(rungs.flatten(0, 1), width).reshape(rungs.shape[:2])
    return each @ (width ** rungs.shape[2]) ** np.arange(rungs.shape[1])[::-1]


@pytest.mark.parametrize("name", ["table", "incompatible"])
def test_a_step_is_moves_then_swaps_of_every_other_pair(name):
    law = Table.random(2, 2, seed=3) if name == "table" else Incompatible(2, 2, seed=4)
    step = kernel("tempering", rungs=3, hottest=8.0, energy_temperature=0.5)
    assert step.temperatures == pytest.approx((0.5, 2, 8))
    even, target = ladder_matrix(law, 2, step.temperatures, [0])
    odd, _ = ladder_matrix(law, 2, step.temperatures, [1])
    none, _ = ladder_matrix(law, 2, step.temperatures, [])
    for matrix in (even, odd):
        assert target @ matrix == pytest.approx(target)
    best = np.argmax([total_variation(*rows) for rows in zip(even @ odd @ even, none @ none @ none, strict=True)][::21])
    start, at = sequences(2, 2)[best], best * 21  # all three rungs there, where swaps show most: s·16 + s·4 + s
    expected = {1: even[at], 2: (even @ odd)[at], 3: (even @ odd @ even)[at]}
    assert total_variation(expected[3], (none @ none @ none)[at]) > 0.05
    for steps, law_then in expected.items():
        state, told = run(step, law, blank(law, 2, 6000, start), steps)
        assert follows(np.bincount(together(state, 2), minlength=64), law_then)
    swaps = told[1].more["swapped"]  # only (1, 2) was tried there
    assert set(swaps.tolist()) == {0.0, 1.0}


def two_modes():
    """Two opposite sequences hold nearly everything: one place alone hardly ever leaves them.

    The conditionals of this joint, written down in a table that answers fast.
    """
    weights = np.full((2, 2, 2), 1e-3)
    weights[0, 0, 0], weights[1, 1, 1] = 1.0, 2.0
    joint, fast = Table(weights), Incompatible(2, 3)
    for at, context in enumerate(product(range(3), repeat=3)):
        for place in np.flatnonzero(np.array(context) == 2).tolist():
            row = conditional(joint, np.array(context), [], place)
            fast.logits[place, at] = torch.from_numpy(np.log(row))
    return fast


@pytest.mark.slow
def test_it_leaves_a_mode_that_one_temperature_stays_in():
    law, start, steps, ladder = two_modes(), np.zeros(3, int), 120, {"rungs": 3, "hottest": 9.0}
    target = energy_law(law, 3, "norm")
    assert target[[0, 7]].min() > 0.2
    single = np.linalg.matrix_power(move_matrix(law, 3, "single", target), steps)[0]
    assert total_variation(single, target) > 0.3
    counts = empirical(kernel("tempering", **ladder), law, blank(law, 3, 1500, start), steps)
    assert follows(counts, target)
    one = empirical(kernel("metropolis"), law, blank(law, 3, 1500, start), steps)
    assert follows(one, single)
    assert not follows(one, target)


@pytest.mark.parametrize("energy", ["norm", "raw"])
@pytest.mark.parametrize(("move", "size"), MOVES)
def test_the_cold_rung_keeps_its_law(energy, move, size):
    law = Incompatible(2, 3, seed=4)
    step = kernel("tempering", energy=energy, rungs=3, hottest=3.0, move=move, size=size, temperature=1.3)
    engine, chains = Engine(law, progress=False), 8000
    noise = Noise(1, torch.arange(chains))
    state = step.init(engine, noise, blank(law, 3, chains, np.zeros(3, int)))
    laws = [energy_law(law, 3, energy, hot) for hot in step.temperatures]
    rungs = [start_from(each, chains, seed, places=3) for seed, each in enumerate(laws)]
    ids = torch.from_numpy(np.stack(rungs, 1))  # (C, K, n) every rung from its own law
    every = torch.tensor([energy_of(law, sequence, energy) for sequence in sequences(2, 3)], dtype=torch.float64)
    known = every[torch.from_numpy(number(ids.flatten(0, 1), 2))].view(chains, 3)
    state = state._replace(ids=ids[:, 0], hotter=ids[:, 1:], energy=known)
    for _ in range(3):
        state, _ = step.step(engine, noise, state)
    assert follows(np.bincount(number(state.ids, 2), minlength=8), laws[0])
    for rung, expected in ((0, laws[1]), (1, laws[2])):
        assert follows(np.bincount(number(state.hotter[:, rung], 2), minlength=8), expected)


def test_every_rung_keeps_what_is_clamped_and_what_is_allowed():
    law = Table.random(3, 4, seed=3)
    canvas = blank(law, 4, 20, np.array([3, 1, 2, 3]), allowed=torch.tensor([True, False, True]))
    canvas = canvas._replace(free=torch.tensor([True, False, True, True]).expand(20, 4))
    for move, size in MOVES:
        state, _ = run(kernel("tempering", rungs=3, move=move, size=size), law, canvas, steps=5)
        every = torch.cat([state.ids[:, None], state.hotter], 1)
        assert (every[:, :, 1] == 1).all()
        assert set(every[:, :, [0, 2, 3]].flatten().tolist()) <= {0, 2}


def test_rungs_do_not_share_noise():
    law = Table(np.ones((4, 4, 4)))
    state = kernel("tempering", rungs=4).init(
        Engine(law, progress=False), Noise(0, torch.arange(500)), blank(law, 3, 500)
    )
    rungs = torch.cat([state.ids[:, None], state.hotter], 1)  # (C, K, n) uniform draws
    for one, other, chain in product(range(4), range(4), range(2)):  # of the same chain, and of the next
        if (one, chain) != (other, 0):
            alike = rungs[: 500 - chain, one] == rungs[chain:, other]
            assert float(alike.double().mean()) == pytest.approx(0.25, abs=0.06)


def test_the_first_step_pays_for_the_start_of_every_rung():
    law = Table.random(3, 3, seed=2)
    _, told = run(kernel("tempering", rungs=3), law, blank(law, 3, 4), steps=1)
    assert (told[0].passes >= 3 * (3 + 3 + 1)).all()


@pytest.mark.slow
def test_states_of_probability_zero_are_left_behind():
    law = Incompatible(3, 2, seed=4, scale=0.4)
    law.logits[0, 3 * 4 + 1] = torch.tensor([0.3, -torch.inf, -0.2])  # given "? 1": never "1 1"
    state, told = run(kernel("tempering", rungs=3), law, blank(law, 2, 2000, np.array([1, 1])), steps=40)
    assert not any(value.isnan().any() for info in told for value in info.more.values())
    assert state.energy.isfinite().all()
    assert follows(np.bincount(number(state.ids, 3), minlength=9), energy_law(law, 2, "norm"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rungs": 1}, "rungs=1: a ladder has at least 2"),
        ({"hottest": 1.0}, "hottest=1.0: the ladder climbs from energy_temperature=1.0, so it must be above that"),
        ({"hottest": 0.0}, "hottest: an energy temperature is a number above 0, not 0.0"),
        ({"energy_temperature": -1.0}, "energy_temperature: an energy temperature is a number above 0"),
        ({"energy": "row"}, r"energy='row': give one of norm, raw. Did you mean 'raw'\?"),
        ({"size": 2}, "size=2: a single move has one place"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told):
        kernel("tempering", **options)


def test_a_canvas_that_is_too_small():
    law = Table.random(2, 3, seed=1)
    with pytest.raises(BesagError, match="size=4: move='adjacent' needs that many free places; there are 3"):
        run(kernel("tempering", move="adjacent", size=4), law, blank(law, 3, 2), steps=1)
