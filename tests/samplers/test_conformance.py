"""What every kernel must do, whatever it draws: one row for each. Its law is its own file's matter."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.samplers.exact import Incompatible, blank

from besag.conditionals.table import Table
from besag.engine import Engine
from besag.samplers import KERNELS, Canvas, Noise, kernel
from besag.samplers.run import Trace, restore, save, walk

OPTIONS: dict[str, dict] = {  # small ones, so that each does all that it does on four places
    "mask_predict": {"iterations": 3},
    "block_gibbs": {"size": 2},
    "metropolis": {"move": "block", "size": 2},
    "tempering": {"rungs": 3},
    "ancestral": {"grid": 6},
    "remask": {"grid": 6},
    "semi_ar": {"window": 4},  # a table has one length; narrower windows are tested on networks
    "spindle": {"grid": 6, "counts": (9, 3, 1)},
}
NAMES = sorted(KERNELS)
SHOWN = {"refine"}  # asks about places that are shown, which a table refuses
STEPS = 6


def law_for(name: str, seed: int) -> Table | Incompatible:
    return Incompatible(3, 4, seed) if name in SHOWN or seed % 2 else Table.random(3, 4, seed=seed)


def clamped(law: Table | Incompatible, chains: int) -> Canvas:
    """Four places, the second clamped to symbol 1."""
    canvas = blank(law, 4, chains)
    canvas.ids[:, 1] = 1
    canvas.free[:, 1] = False
    return canvas


def run(name, law, canvas, seed, first=0, batch=None):
    engine = Engine(law, batch_tokens=batch, progress=False)
    noise = Noise(seed, torch.arange(first, first + len(canvas.ids)))
    return list(walk(engine, kernel(name, **OPTIONS.get(name, {})), canvas, noise, STEPS))


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 1000), batch=st.integers(1, 40))
@settings(max_examples=4, deadline=None)
def test_noise_belongs_to_the_chain(name, seed, batch):
    """The same seed gives the same chain beside any others, in any batch; another seed another one."""
    law = law_for(name, seed)
    canvas = clamped(law, 5)
    [*_, (whole, _)] = run(name, law, canvas, seed)
    for part in (torch.arange(2), torch.arange(2, 5)):
        [*_, (some, _)] = run(name, law, canvas.rows(part), seed, first=int(part[0]), batch=batch)
        assert torch.equal(some.ids, whole.ids[part])


@pytest.mark.parametrize("name", NAMES)
def test_clamped_places_stay_and_only_allowed_tokens_are_drawn(name):
    law = law_for(name, 1 if name in SHOWN else 0)
    canvas = clamped(law, 40)._replace(allowed=torch.tensor([True, False, True]))
    for state, info in run(name, law, canvas, seed=3):
        assert (state.ids[:, 1] == 1).all()
        free = state.ids[canvas.free]
        assert not (free == 1).any()
        if info is not None:
            assert info.changed.shape == info.passes.shape == (40,)
            assert (info.changed <= 3).all()
            assert all(value.shape == (40,) for value in info.more.values())
    assert (state.ids[canvas.free] != canvas.mask_id).all() or not kernel(name, **OPTIONS.get(name, {})).ends


@pytest.mark.parametrize("name", NAMES)
def test_steps_do_not_write_into_the_state_they_are_given(name):
    law = law_for(name, 4 if name not in SHOWN else 1)
    states = [(state, state.ids.clone()) for state, _ in run(name, law, clamped(law, 6), seed=5)]
    assert all(torch.equal(state.ids, before) for state, before in states)


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_state_goes_on_as_if_nothing_had_happened(name, tmp_path):
    law = law_for(name, 6 if name not in SHOWN else 1)
    canvas = clamped(law, 6)
    states = run(name, law, canvas, seed=7)
    middle = states[len(states) // 2][0]
    save(middle, tmp_path / "state", {"seed": 7})
    engine, noise, moves = Engine(law, progress=False), Noise(7, torch.arange(6)), kernel(name, **OPTIONS.get(name, {}))
    found, about = restore(moves.init(engine, noise, canvas), tmp_path / "state")
    assert about == {"seed": 7}
    assert found.step == middle.step
    [*_, (last, _)] = walk(engine, moves, canvas, noise, STEPS, found)
    assert torch.equal(last.ids, states[-1][0].ids)


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is(name):
    kind = KERNELS[name]
    for fact in ("title", "formula", "law", "passes"):
        assert getattr(kind, fact), fact
    assert kind.__module__.rpartition(".")[2] == name  # one file a kernel


def test_a_trace_keeps_what_is_asked_for():
    law = Table.random(3, 4, seed=0)
    trace = Trace(every=2)
    for state, info in run("gibbs", law, clamped(law, 3), seed=0):
        trace.add(state, info)
    assert trace.steps == [0, 2, 4, 6]
    assert trace.sequences().shape == (3, 4, 4)
    assert trace.numbers()["passes"].shape == (3, STEPS)
    assert np.array_equal(trace.sequences()[:, -1], state.ids.numpy())


# ---- forbidden tokens: an answer given hidden places does not know what is forbidden there


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("gibbs", {}, 0.9),  # the joint, given what is allowed: all other places are shown
        ("ordered", {"order": "left_to_right"}, 0.5),  # the first place knows nothing of the second's
        ("ordered", {"order": "right_to_left"}, 0.9),
        ("first_hitting", {}, 0.7),  # both orders
        ("block_gibbs", {"size": 2}, 0.7),
    ],
)
def test_which_kernels_keep_the_joint_where_tokens_are_forbidden(name, options, expected):
    law, allowed = Table([[0.45, 0.05], [0.05, 0.45]]), torch.tensor([[True, True], [True, False]])
    engine, noise = Engine(law, progress=False), Noise(0, torch.arange(20_000))
    *_, (state, _) = walk(engine, kernel(name, **options), blank(law, 2, 20_000, allowed=allowed), noise, 30)
    assert not state.ids[:, 1].any()
    share = float((state.ids[:, 0] == 0).double().mean())
    assert abs(share - expected) < 4 * 0.5 / 20_000**0.5  # four standard errors: a false alarm in 16,000
