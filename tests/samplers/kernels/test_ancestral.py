"""`ancestral` against the enumerated law of its steps, and that law against the joint.

`Partial` walks over all partly masked texts; the other kernels that start from masks are tested with it too.
"""

from itertools import pairwise, product
from math import perm

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import networks
from tests.samplers.exact import Incompatible, blank, conditional, empirical, follows, run, total_variation

from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.engine import Engine
from besag.errors import BesagError
from besag.samplers import (
    Canvas,
    Noise,
    ancestral,  # noqa: F401 (they register themselves)
    first_hitting,  # noqa: F401
    kernel,
    remask,  # noqa: F401
    spindle,  # noqa: F401
)
from besag.samplers.kernels.schedules import SCHEDULES, shown
from besag.samplers.run import restore, save

CHAINS = 20_000


class Partial:
    """Laws over the (V + 1)^n texts in which some places are masked: V is the mask. Every place moves on its own."""

    def __init__(self, law, places):
        self.width, self.places = law.width, places
        self.texts = [np.array(text) for text in product(range(law.width + 1), repeat=places)]
        self.rows = {}  # (text, place) -> (V,) the answer there, where it is hidden
        for text in self.texts:
            hides = [place for place in range(places) if text[place] == law.width]
            self.rows.update({(tuple(text), place): conditional(law, text, hides, place) for place in hides})

    def masks(self):
        """All the mass on the text of masks."""
        start = np.zeros(len(self.texts))
        start[-1] = 1
        return start

    def moved(self, start, move):
        """One step: `move(text, place)` is the law (V + 1,) of what stands at a place next."""
        end = np.zeros(len(self.texts))
        for at in np.flatnonzero(start):
            text = tuple(self.texts[at])
            joint = np.array(start[at])
            for place in range(self.places):
                joint = np.multiply.outer(joint, move(text, place))
            end += joint.ravel()
        return end

    def full(self, law):
        """(V^n,) the law of a text in which nothing is masked."""
        shape = (self.width + 1,) * self.places
        inside = law.reshape(shape)[(slice(self.width),) * self.places]
        assert inside.sum() == pytest.approx(1)
        return inside.ravel()

    def stays(self, token):
        return np.eye(self.width + 1)[token]


def enumerated(law, places, grid, schedule="log_linear"):
    """(V^n,) the law of ancestral sampling, step by step as it is defined."""
    partial = Partial(law, places)
    alpha = shown(SCHEDULES[schedule], grid).numpy()
    now = partial.masks()
    for before, after in pairwise(alpha):
        chance = (after - before) / (1 - before)

        def move(text, place, chance=chance):
            if text[place] < law.width:
                return partial.stays(text[place])
            return np.append(chance * partial.rows[text, place], 1 - chance)

        now = partial.moved(now, move)
    return partial.full(now)


@pytest.mark.parametrize("law", [Table.random(2, 3, seed=1), Incompatible(2, 3)], ids=["joint", "incompatible"])
@pytest.mark.parametrize(("grid", "schedule"), [(1, "log_linear"), (3, "log_linear"), (3, "cosine"), (6, "geometric")])
def test_the_kernel_follows_the_enumerated_law(law, grid, schedule):
    counts = empirical(kernel("ancestral", grid=grid, schedule=schedule), law, blank(law, 3, CHAINS))
    assert follows(counts, enumerated(law, 3, grid, schedule))


def test_the_enumerated_law_is_that_of_places_assigned_to_steps():
    law = Incompatible(2, 3)
    expected = np.zeros(8)
    for steps in product(range(3), repeat=3):  # 27 equally likely assignments
        for at, text in enumerate(product(range(2), repeat=3)):
            chance = 1 / 27
            for step in range(3):
                hides = [place for place in range(3) if steps[place] >= step]
                for place in range(3):
                    if steps[place] == step:
                        chance *= conditional(law, np.array(text), hides, place)[text[place]]
            expected[at] += chance
    assert np.allclose(enumerated(law, 3, 3), expected)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_lost_is_at_most_the_chance_that_two_reveals_share_a_step(seed):
    law = Table.random(2, 3, seed=seed, concentration=0.2)
    joint = law.log_probs.exp().numpy()
    lost = []
    for grid in (1, 2, 4, 8, 16, 64):
        share = 1 - perm(grid, 3) / grid**3
        assert share <= 3 * 2 / (2 * grid)
        lost.append(total_variation(enumerated(law, 3, grid), joint))
        assert lost[-1] <= share + 1e-12
    assert lost[0] > 0.05 > 0.02 > lost[-1]  # there was something to lose


def test_the_schedule_does_not_matter_in_the_limit():
    law = Table.random(2, 3, seed=3, concentration=0.2)
    joint = law.log_probs.exp().numpy()
    for schedule in SCHEDULES:
        coarse, fine = (total_variation(enumerated(law, 3, grid, schedule), joint) for grid in (4, 400))
        assert fine < 0.02 < coarse
        assert follows(empirical(kernel("ancestral", grid=10**6, schedule=schedule), law, blank(law, 3, CHAINS)), joint)
    incompatible = Incompatible(2, 3)
    limits = [enumerated(incompatible, 3, 400, schedule) for schedule in SCHEDULES]
    assert max(total_variation(limits[0], other) for other in limits[1:]) < 0.01


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_is_left_at_the_end_is_drawn(schedule):
    law = Table.random(3, 2, seed=2)
    joint = law.log_probs.exp().numpy()
    product_law = np.outer(joint.sum(1), joint.sum(0))
    counts = empirical(kernel("ancestral", grid=1, schedule=schedule), law, blank(law, 2, CHAINS))
    assert follows(counts, product_law)
    assert counts.max() < 0.9 * CHAINS  # the likeliest tokens alone would be one text
    alone = Table.random(3, 1, seed=4)
    for grid in (2, 5):
        counts = empirical(kernel("ancestral", grid=grid, schedule=schedule), alone, blank(alone, 1, CHAINS))
        assert follows(counts, alone.log_probs.exp().numpy())


@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from(list(SCHEDULES)))
@settings(max_examples=25, deadline=None)
def test_with_and_without_the_cache_the_samples_are_the_same(seed, grid, schedule):
    law = Table.random(3, 4, seed=seed)
    canvas = blank(law, 4, 9)
    cached, fast = run(kernel("ancestral", grid=grid, schedule=schedule), law, canvas, seed=seed)
    plain, slow = run(kernel("ancestral", grid=grid, schedule=schedule, cache=False), law, canvas, seed=seed)
    assert torch.equal(cached.ids, plain.ids)
    assert torch.equal(cached.made, plain.made)
    assert len(fast) <= min(grid, 4)
    assert len(slow) <= grid
    distinct = torch.tensor([len(set(row.tolist())) for row in cached.reveal])
    assert torch.equal(sum(told.passes for told in fast), distinct)  # a pass for each time that reveals, none else
    assert torch.equal(sum(told.passes for told in slow), cached.reveal.amax(1))  # one for each time until the end
    for told in (fast, slow):
        assert torch.equal(sum(info.more["revealed"] for info in told), torch.full((9,), 4))
        assert torch.equal(sum(info.changed for info in told), torch.full((9,), 4))
        times = torch.stack([info.more["time"] for info in told])  # (steps, C)
        assert (times.diff(dim=0) <= 0).all()
        assert torch.allclose(times[-1], 1 - cached.reveal.amax(1).double() / grid)


def test_passes_are_those_that_the_network_made():
    law = Counted(Table.random(2, 4, seed=1))
    for cache in (True, False):
        law.sequences = 0
        _, told = run(kernel("ancestral", grid=20, cache=cache), law, blank(law, 4, 30))
        assert law.sequences == sum(int(info.passes.sum()) for info in told)
    assert law.sequences > 3 * 30 * 4 * 0.9  # without the cache


class Counted:
    """A law that counts the sequences it is asked about."""

    def __init__(self, law):
        self.law, self.sequences = law, 0

    def __getattr__(self, name):
        return getattr(self.law, name)

    def rows(self, questions):
        self.sequences += len(questions.ids)
        return self.law.rows(questions)


def test_temperature_and_truncation():
    law = Table.random(4, 1, seed=5)
    row = law.log_probs.exp().numpy()
    assert follows(empirical(kernel("ancestral", temperature=2.0), law, blank(law, 1, CHAINS)), row**0.5)
    cut = np.where(row >= np.sort(row)[-2], row, 0)
    assert follows(empirical(kernel("ancestral", top_k=2), law, blank(law, 1, CHAINS)), cut)


@given(st.integers(0, 50), st.integers(1, 30), st.sampled_from([True, False]))
@settings(max_examples=20, deadline=None)
def test_noise_belongs_to_the_chain_and_only_hidden_free_places_move(seed, batch, cache):
    law = Table.random(3, 4, seed=seed)
    ids = torch.tensor([[3, 1, 3, 3], [3, 1, 2, 3], [0, 1, 3, 3], [3, 1, 3, 3], [2, 1, 0, 0], [3, 1, 3, 3]])
    free = torch.tensor([True, False, True, True]).expand(6, 4)
    canvas = Canvas(ids, free, 3, allowed=torch.tensor([True, False, True]))
    options = kernel("ancestral", grid=5, cache=cache)
    before = ids.clone()
    whole, _ = run(options, law, canvas, seed=seed)
    assert torch.equal(canvas.ids, before)  # nothing was written into
    assert torch.equal(whole.ids[ids < 3], ids[ids < 3])
    assert 3 not in whole.ids
    assert 1 not in whole.ids[ids == 3]
    engine = Engine(law, batch_tokens=batch, progress=False)
    for part in (torch.arange(2), torch.arange(2, 6)):
        some, _ = run(options, law, canvas.rows(part), seed=seed, first=int(part[0]), engine=engine)
        assert torch.equal(some.ids, whole.ids[part])


def test_on_a_network_the_mask_is_never_an_answer():
    words = networks.vocabulary("bert")
    law = Transformer(networks.tiny("bert"), words)
    ids = torch.full((64, 10), words.mask_id)
    free = torch.ones(64, 10, dtype=torch.bool)
    free[:, [0, -1]] = False
    ids[:, 0], ids[:, -1] = 2, 3
    for allowed in (None, torch.ones(law.width, dtype=torch.bool)):  # not even where the canvas would let it
        state, told = run(kernel("ancestral", grid=30, temperature=5.0), law, Canvas(ids, free, words.mask_id, allowed))
        assert words.mask_id not in state.ids
        assert (state.ids[:, 0] == 2).all()
        assert len(told) == kernel("ancestral", grid=30).steps(Canvas(ids, free, words.mask_id))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"grid": 0}, "grid=0: time goes from 1 to 0 in so many equal steps"),
        ({"grid": 2.5}, "grid=2.5"),
        ({"schedule": "linear"}, "schedule='linear': give one of log_linear, cosine, geometric. Did you mean 'log_lin"),
        ({"temperature": -1.0}, "temperature=-1.0: give a number above 0"),
        ({"steps_total": 10}, "the kernel 'ancestral' has no option 'steps_total': it takes grid, schedule"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told):
        kernel("ancestral", **options)


FROM_MASKS = [
    ("ancestral", {}),
    ("first_hitting", {}),
    ("spindle", {"counts": (3, 2)}),
    ("remask", {}),
    ("remask", {"kind": "p2"}),
]


@pytest.mark.parametrize(("name", "options"), FROM_MASKS)
def test_a_canvas_with_nothing_to_do(name, options):
    law = Table.random(2, 2)
    with pytest.raises(BesagError, match="no free place: nothing can be sampled"):
        run(kernel(name, **options), law, blank(law, 2, 3)._replace(free=torch.zeros(3, 2, dtype=torch.bool)))
    with pytest.raises(BesagError, match="no free place is hidden, and this kernel fills hidden places only"):
        run(kernel(name, **options), law, blank(law, 2, 3, np.array([0, 1])))


@pytest.mark.parametrize(("name", "options"), FROM_MASKS)
def test_a_saved_state_goes_on_as_if_it_never_had_stopped(name, options, tmp_path):
    law = Table.random(2, 4, seed=7)
    canvas, noise, engine = blank(law, 4, 6), Noise(5, torch.arange(6)), Engine(law, progress=False)
    how = kernel(name, **options)
    expected, _ = run(how, law, canvas, seed=5)
    halfway, _ = run(how, law, canvas, steps=2, seed=5)
    save(halfway, tmp_path / "state", {})
    state, _ = restore(how.init(engine, noise, canvas), tmp_path / "state")
    while not how.done(state):
        state, _ = how.step(engine, noise, state)
    assert torch.equal(state.ids, expected.ids)
    assert state.step == expected.step
