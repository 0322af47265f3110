"""Steps made one after the other: what a run keeps, where it stops, and what it refuses."""

import numpy as np
import pytest
import torch

from besag.conditionals.table import Table
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank
from besag.samplers import Noise, kernel
from besag.samplers.run import SWEEPS, Trace, walk


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
