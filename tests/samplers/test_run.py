"""Steps made one after the other: what a run keeps, where it stops, and what it refuses."""

import numpy as np
import pytest
import torch

from besag.conditionals.table import Table
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank
from besag.samplers import Info, Noise, State, kernel
from besag.samplers.run import SWEEPS, TOGETHER, Trace, walk


def steps_of(law, name, canvas, steps=None, state=None, **options):
    noise = Noise(0, torch.arange(len(canvas.ids)))
    return list(walk(Engine(law, progress=False), kernel(name, **options), canvas, noise, steps, state))


def test_a_trace_keeps_what_is_asked_for():
    law, trace = Table.random(3, 4, seed=0), Trace(every=2)
    for state, info in steps_of(law, "gibbs", blank(law, 4, 5), steps=6):
        trace.add(state, info)
    assert trace.steps == [0, 2, 4, 6]
    assert trace.sequences().shape == (5, 4, 4)
    assert trace.numbers()["passes"].shape == (5, 6)
    assert np.array_equal(trace.sequences()[:, -1], state.ids.numpy())


def test_a_chain_runs_as_long_as_it_is_told_and_a_decoder_to_its_end():
    law = Table.random(3, 4, seed=0)
    assert len(steps_of(law, "gibbs", blank(law, 4, 2), steps=3)) == 1 + 3
    assert len(steps_of(law, "gibbs", blank(law, 4, 2))) == 1 + SWEEPS * 4
    whole = steps_of(law, "ordered", blank(law, 4, 2))
    assert len(whole) == 1 + 4
    rest = steps_of(law, "ordered", blank(law, 4, 2), state=whole[2][0])
    assert [state.step for state, _ in rest] == [2, 3, 4]
    assert torch.equal(rest[-1][0].ids, whole[-1][0].ids)


def test_what_cannot_be_run_is_refused():
    law = Incompatible(2, 3)
    with pytest.raises(BesagError, match="steps=0: make at least 1 step"):
        steps_of(law, "gibbs", blank(law, 3, 2), steps=0)
    law.max_length = 2
    with pytest.raises(BesagError, match="3 tokens are to be sampled together, and 'incompatible' sees 2: take fewer"):
        steps_of(law, "gibbs", blank(law, 3, 2))


def test_the_memory_of_a_trace_is_that_of_its_numbers():
    """A tensor takes a hundred times the memory of the few numbers of a step, so no more than some are kept as such."""
    trace, canvas = Trace(every=None), blank(Table.random(3, 4, seed=0), 4, 2)
    for step in range(2 * TOGETHER + 5):
        trace.add(State(canvas.ids, canvas, step), Info(torch.tensor([step, -step]), torch.ones(2, dtype=torch.long)))
        assert all(len(told) < TOGETHER for told in trace.told.values())
    changed = trace.numbers()["changed"]
    assert np.array_equal(changed, [[*range(2 * TOGETHER + 5)], [*range(0, -2 * TOGETHER - 5, -1)]])


@pytest.mark.parametrize("name", ["remask", "gibbs", "ancestral"])
def test_work_that_nobody_waits_for_ends_before_the_next_step(name):
    """Also where no step asks the model anything."""

    class Unwanted(Engine):
        left = 3

        def check_wanted(self):
            self.left -= 1
            if self.left < 0:
                raise BesagError("cancelled")

    law, steps = Table.random(3, 4, seed=0), []
    options = {"gibbs": {}, "remask": {"grid": 100_000}, "ancestral": {"grid": 64, "cache": False}}[name]
    engine, canvas = Unwanted(law, progress=False), blank(law, 4, 2)
    found = walk(engine, kernel(name, **options), canvas, Noise(0, torch.arange(2)), None)
    with pytest.raises(BesagError, match="cancelled"):
        steps.extend(state.step for state, _ in found)
    assert steps == [0, 1, 2, 3]
