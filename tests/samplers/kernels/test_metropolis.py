"""`metropolis` against the matrix of its definition, its energy law, and the states that it can never enter."""

import numpy as np
import pytest
import torch
from tests import networks
from tests.samplers.enumerated import MOVES, energy_law, energy_of, move_matrix, sets_of

from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.engine import Engine
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
from besag.samplers import kernel
from besag.samplers.kernel import Canvas, Noise

CHAINS = 8_000
LAWS = {"table": Table.random(2, 3, seed=1, concentration=1.0), "incompatible": Incompatible(3, 3, seed=1)}


def likeliest_two(row):
    return np.where(row >= np.sort(row)[-2], row, 0) / np.sort(row)[-2:].sum()


def comes_to(matrix, steps, target):
    """Has the chain forgotten, after so many steps, where it began, to a hundredth of what a test could see?"""
    return max(total_variation(row, target) for row in np.linalg.matrix_power(matrix, steps)) < 1e-4


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("energy", ["norm", "raw"])
@pytest.mark.parametrize(("move", "size"), MOVES)
def test_a_step_is_the_matrix_of_the_definition_which_is_in_detailed_balance(name, energy, move, size):
    law, start = LAWS[name], np.array([1, 0, 1])
    target = energy_law(law, 3, energy, temperature=2.0)
    matrix = move_matrix(law, 3, move, target)
    flow = target[:, None] * matrix
    assert np.abs(flow - flow.T).max() < 1e-14
    step = kernel("metropolis", energy=energy, energy_temperature=2.0, move=move, size=size)
    row = matrix[number(start[None], law.width)[0]]
    assert follows(empirical(step, law, blank(law, 3, CHAINS, start), steps=1), row)
    assert follows(empirical(step, law, blank(law, 3, CHAINS, start_from(target, CHAINS, places=3)), steps=2), target)


@pytest.mark.slow
@pytest.mark.parametrize("energy", ["norm", "raw"])
def test_from_nothing_it_comes_to_its_law_and_gibbs_to_another(energy):
    law = Incompatible(2, 3, seed=5, scale=0.5)
    target = energy_law(law, 3, energy)
    gibbs = stationary(np.mean([gibbs_matrix(law, 3, place) for place in range(3)], 0))
    assert total_variation(target, gibbs) > 0.1
    assert comes_to(move_matrix(law, 3, "single", target), 80, target)
    counts = empirical(kernel("metropolis", energy=energy), law, blank(law, 3, 2500), steps=80)
    assert follows(counts, target)
    assert not follows(counts, gibbs)
    gibbs_counts = empirical(kernel("gibbs"), law, blank(law, 3, 2500, np.zeros(3, int)), steps=60)
    assert follows(gibbs_counts, gibbs)
    assert not follows(gibbs_counts, target)


@pytest.mark.parametrize(("move", "size"), MOVES)
def test_a_truncated_proposal_that_cannot_come_back_is_rejected(move, size):
    law = LAWS["incompatible"]
    target = energy_law(law, 3, "norm")
    right = move_matrix(law, 3, move, target, likeliest_two)
    flow = target[:, None] * right
    assert np.abs(flow - flow.T).max() < 1e-14  # as it is rejected; the plain formula with 0/… left out would not be
    step = kernel("metropolis", move=move, size=size, top_k=2)
    every = sequences(3, 3)

    def stuck_at(sequence):
        pairs = [(hide, place) for hide in sets_of(move, 3) for place in hide]
        return any(likeliest_two(conditional(law, sequence, *pair))[sequence[pair[1]]] == 0 for pair in pairs)

    start = next(sequence for sequence in every if stuck_at(sequence))
    canvas = blank(law, 3, CHAINS, start)
    assert follows(empirical(step, law, canvas, steps=1), right[number(start[None], 3)[0]])
    state, [info] = run(step, law, canvas, steps=1)
    stuck = info.more["log_ratio"] == -torch.inf
    assert stuck.any()
    assert not info.more["accepted"][stuck].any()
    assert torch.equal(state.ids[stuck], canvas.ids[stuck])
    assert (info.passes[stuck] == 1 + 3).all()  # one for the proposal, n for the start; no energy that cannot matter


def test_the_proposal_does_not_change_the_target():
    law = LAWS["incompatible"]
    target = energy_law(law, 3, "norm")
    start = start_from(target, CHAINS, places=3)
    for options in ({"temperature": 3.0}, {"top_p": 0.9}, {"top_k": 2, "move": "block", "temperature": 0.7}):
        assert follows(empirical(kernel("metropolis", **options), law, blank(law, 3, CHAINS, start), steps=3), target)


@pytest.mark.slow
def test_clamped_words_condition_the_law_of_whole_sentences():
    law = Incompatible(3, 3, seed=3, scale=0.6)
    every = sequences(3, 3)
    whole = np.exp([-energy_of(law, sequence, "norm") for sequence in every]) * (every[:, 1] == 2)
    free_terms = whole.copy()
    for at, sequence in enumerate(every):
        free_terms[at] /= conditional(law, sequence, [1], 1)[sequence[1]]
    assert total_variation(whole, free_terms) > 0.1  # the clamped place's own term matters
    canvas = blank(law, 3, 4000, np.array([3, 2, 3]))
    canvas = canvas._replace(free=torch.tensor([True, False, True]).expand(4000, 3))
    counts = empirical(kernel("metropolis"), law, canvas, steps=60)
    assert follows(counts, whole)
    assert not follows(counts, free_terms)


def test_allowed_tokens_restrict_the_law_and_others_are_left_at_once():
    law = Incompatible(3, 2, seed=3, scale=0.8)
    every = sequences(3, 2)
    target = energy_law(law, 2, "norm") * (every != 1).all(1)
    canvas = blank(law, 2, 3000, np.array([1, 1]), allowed=torch.tensor([True, False, True]))
    state, told = run(kernel("metropolis"), law, canvas, steps=40)
    assert told[0].more["log_ratio"].isposinf().all()
    assert told[0].more["energy"].isposinf().all()  # the other place still holds what is not allowed
    assert told[-1].more["energy"].isfinite().all()
    assert not any(value.isnan().any() for info in told for value in info.more.values())
    assert follows(np.bincount(number(state.ids, 3), minlength=9), target)


@pytest.mark.slow
def test_impossible_states_are_left_and_never_entered():
    law = Incompatible(3, 2, seed=4, scale=0.4)
    law.logits[0, 3 * 4 + 1] = torch.tensor([0.3, -torch.inf, -0.2])  # given "? 1": never "1 1"
    law.logits[1, 2 * 4 + 3] = torch.tensor([0.1, 0.5, -torch.inf])  # given "2 ?": never "2 2"
    target = energy_law(law, 2, "norm")
    impossible = [number(np.array([pair]), 3)[0] for pair in ([1, 1], [2, 2])]
    assert (target[impossible] == 0).all()
    for move in ("single", "block"):
        step = kernel("metropolis", move=move)
        assert comes_to(move_matrix(law, 2, move, target), 60, target)
        state, told = run(step, law, blank(law, 2, 2500, np.array([1, 1])), steps=60)
        assert not any(value.isnan().any() for info in told for value in info.more.values())
        assert follows(np.bincount(number(state.ids, 3), minlength=9), target)


def test_annealing_runs_through_its_temperatures_and_says_that_it_has_no_law():
    law, start = Incompatible(2, 3, seed=2), np.array([0, 1, 1])
    search = kernel("metropolis", anneal=(8.0, 0.5, 4))
    assert not search.invariant
    assert kernel("metropolis").invariant
    assert "not invariant" in search.law
    temperatures = [search.temperature_at(step) for step in range(6)]
    assert temperatures == pytest.approx([8, 4, 2, 1, 0.5, 0.5])
    expected = np.zeros(8)
    expected[number(start[None], 2)[0]] = 1
    for temperature in temperatures:
        expected = expected @ move_matrix(law, 3, "single", energy_law(law, 3, "norm", temperature))
    assert follows(empirical(search, law, blank(law, 3, CHAINS, start), steps=6), expected)
    assert total_variation(expected, energy_law(law, 3, "norm", 0.5)) > 0.05  # where it ends is not the law at the end


@pytest.mark.parametrize(("move", "size"), MOVES)
def test_what_a_step_costs_with_those_of_the_start_in_the_first(move, size):
    law = Table.random(3, 4, seed=2)
    canvas = blank(law, 4, 5, np.array([3, 0, 3, 3]))
    canvas = canvas._replace(free=torch.tensor([True, False, True, True]).expand(5, 4))
    step = kernel("metropolis", move=move, size=size)
    _, told = run(step, law, canvas, steps=8)
    full = 4 if move == "single" else 5
    assert int(told[1].passes.max()) <= full  # one place's term is known from the proposal
    assert {int(spent) for info in told for spent in info.passes} >= {1, full}
    assert (told[0].passes >= 3 + 4 + 1).all()


def test_the_energy_it_remembers_is_that_of_its_state():
    law = Incompatible(3, 3, seed=6)
    for move, size in MOVES:
        state, told = run(kernel("metropolis", energy="raw", move=move, size=size), law, blank(law, 3, 50), steps=9)
        expected = [energy_of(law, sequence, "raw") for sequence in state.ids.numpy()]
        assert state.energy.numpy() == pytest.approx(expected, abs=1e-9)
        assert torch.equal(told[-1].more["energy"], state.energy)


def test_one_place_is_enough():
    law = Table(np.array([0.5, 0.3, 0.2]))  # one place: E = −log p, and the proposal is the target
    counts = empirical(kernel("metropolis"), law, blank(law, 1, CHAINS, np.array([2])), steps=1)
    assert follows(counts, np.array([0.5, 0.3, 0.2]))


def test_it_runs_on_a_network():
    network = Transformer(networks.tiny("bert"), networks.vocabulary("bert"))
    [encoded] = network.vocabulary.encode(["the cat sat on the mat"])
    ids = torch.from_numpy(encoded.ids).repeat(3, 1)
    free = torch.zeros_like(ids, dtype=torch.bool)
    free[:, encoded.places[1:4]] = True
    canvas = Canvas(ids.masked_fill(free, network.vocabulary.mask_id), free, network.vocabulary.mask_id)
    for move, size in MOVES[:2]:
        step = kernel("metropolis", move=move, size=size, top_k=50)
        state, told = run(step, network, canvas, steps=5)
        assert torch.equal(state.ids[~free], ids[~free])
        assert (state.ids[free] != network.vocabulary.mask_id).all()
        assert all(info.more["energy"].isfinite().all() for info in told)
        fresh = step.init(Engine(network, progress=False), Noise(0, torch.arange(3)), canvas._replace(ids=state.ids))
        assert fresh.energy.numpy() == pytest.approx(state.energy.numpy(), abs=1e-3)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"energy": "nrom"}, r"energy='nrom': give one of norm, raw. Did you mean 'norm'\?"),
        ({"energy_temperature": 0}, "energy_temperature: an energy temperature is a number above 0, not 0"),
        ({"move": "blocks"}, r"move='blocks': give one of single, block, adjacent. Did you mean 'block'\?"),
        ({"move": "block", "size": 0}, "size=0: move='block' needs at least 1 place"),
        ({"size": 3}, "size=3: a single move has one place"),
        ({"anneal": (2.0, 1.0)}, r"anneal=\(2.0, 1.0\): give \(start, end, steps\)"),
        ({"anneal": (2.0, 1.0, 0)}, "give .start, end, steps."),
        ({"anneal": (2.0, 0.0, 5)}, "anneal: an energy temperature is a number above 0, not 0.0"),
        ({"anneal": (2.0, 1.0, 5), "energy_temperature": 0.5}, "leave out energy_temperature=0.5"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told):
        kernel("metropolis", **options)


def test_a_canvas_that_is_too_small():
    law = Table.random(2, 3, seed=1)
    with pytest.raises(BesagError, match="size=4: move='block' needs that many free places; there are 3"):
        run(kernel("metropolis", move="block", size=4), law, blank(law, 3, 2), steps=1)
