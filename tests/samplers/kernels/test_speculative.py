"""Drafted in one pass and verified in one batch, it is the chain rule from left to right: no other law, fewer waits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws import Arbitrary, Counting
from tests.samplers.enumerated import filling_law
from tests.samplers.exact import DRAWN

from besag.conditionals.table import Table
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank, empirical, follows, run
from besag.samplers import Noise, kernel
from besag.samplers.kernels.speculative import judged
from besag.samplers.run import walk

CHAINS = 10_000
GRID = 300


# ---- one place


@given(seed=st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_whatever_is_drafted_the_target_is_drawn(seed):
    """Drafts, decisions and second draws, summed over a grid of all noise: p, and of a draft what both laws share."""
    random = np.random.default_rng(seed)
    p, q = (torch.from_numpy(random.dirichlet([0.7] * 4)) for _ in range(2))
    noise = (torch.arange(GRID) + 0.5) / GRID
    keep, again = (part.reshape(-1) for part in torch.meshgrid(noise, noise, indexing="ij"))
    law, kept = torch.zeros(4, dtype=torch.float64), 0.0
    for token in range(4):
        each = torch.full(keep.shape, token)
        rows = [one.log().expand(len(keep), 4) for one in (p, q)]
        stays, now = judged(*rows, each, keep, again)
        law += q[token] * torch.bincount(now, minlength=4) / len(now)
        kept += float(q[token] * stays.double().mean())
    assert law.numpy() == pytest.approx(p.numpy(), abs=3 / GRID)
    assert kept == pytest.approx(float(torch.minimum(p, q).sum()), abs=3 / GRID)


def test_a_draft_from_the_law_itself_stays_and_one_that_cannot_be_does_not():
    p = torch.tensor([[0.5, 0.5, 0.0]]).log()
    stays, now = judged(p, p, torch.tensor([1]), torch.tensor([1 - 1e-6]), torch.tensor([0.3]))
    assert (stays.tolist(), now.tolist()) == ([True], [1])
    q = torch.tensor([[0.1, 0.1, 0.8]]).log()
    stays, now = judged(p, q, torch.tensor([2]), torch.tensor([1e-12]), torch.tensor([0.9]))
    assert (stays.tolist(), now.tolist()) == ([False], [1])


# ---- the law


@pytest.mark.parametrize("ahead", [None, 1, 2, 3])
def test_it_draws_from_the_joint(ahead):
    law = Table.random(3, 3, seed=1)
    counts = empirical(kernel("speculative", ahead=ahead), law, blank(law, 3, CHAINS))
    assert follows(counts, law.log_probs.exp().numpy())


@pytest.mark.parametrize("start", [[3, 3, 3, 3], [3, 1, 3, 3], [3, 0, 3, 2]])
def test_on_conditionals_of_no_joint_it_has_the_law_of_ordered_from_left_to_right(start):
    law = Incompatible(3, 4, seed=28)
    canvas = blank(law, 4, CHAINS, np.array(start))
    counts = empirical(kernel("speculative"), law, canvas)
    assert follows(counts, filling_law(law, start, "left_to_right"))
    assert not follows(counts, filling_law(law, start, "right_to_left"))
    unverified = filling_law(law, start, "left_to_right", size=4)  # the drafts, as they are drawn
    assert not follows(counts, unverified)


def test_temperature_and_truncation_are_those_of_ordered():
    law, start = Incompatible(3, 3, seed=5), [3, 3, 3]

    for options, change in DRAWN:
        counts = empirical(kernel("speculative", **options), law, blank(law, 3, CHAINS))
        expected = filling_law(law, start, "left_to_right", change=change)
        assert follows(counts, np.where(expected < 1e-200, 0, expected))


def test_the_likeliest_tokens_are_those_of_ordered():
    law = Arbitrary(4)
    texts = []
    for name in ("ordered", "speculative"):
        state, _ = run(kernel(name, pick="argmax"), law, blank(law, 9, 1))
        texts.append(state.ids.tolist())
    assert texts[0] == texts[1]


def test_its_numbers_are_the_log_probability_of_the_text():
    law = Incompatible(3, 4, seed=3)
    canvas = blank(law, 4, 200)
    steps = list(walk(Engine(law, progress=False), kernel("speculative"), canvas, Noise(1, torch.arange(200))))
    total = sum(info.more["log_prob"] for _, info in steps[1:])
    expected = filling_law(law, [3] * 4, "left_to_right")
    index = steps[-1][0].ids @ torch.tensor([27, 9, 3, 1])
    assert total.numpy() == pytest.approx(np.log(expected[index.numpy()]))


# ---- what it costs


def waits(law, places: int, chains: int, **options) -> tuple[np.ndarray, list]:
    """(C,) passes one after the other of each chain; the steps."""
    steps = list(walk(
        Engine(law, progress=False), kernel("speculative", **options), blank(law, places, chains),
        Noise(4, torch.arange(chains)),
    ))[1:]  # fmt: skip
    return sum(info.more["sequential"] for _, info in steps).numpy(), steps


def test_a_step_is_a_draft_and_one_batch_of_all_prefixes():
    law = Counting(Arbitrary(3))
    _, steps = waits(law, 5, 1)
    draft, prefixes = law.batches[:2]
    text = steps[0][0].ids[0].tolist()
    assert draft == [(3, 3, 3, 3, 3)]
    assert len(prefixes) == 4
    assert [row.count(3) for row in prefixes] == [4, 3, 2, 1]  # one, two … drafted places are shown
    shown = int(steps[0][1].more["revealed"])
    assert all(row[:size] == tuple(text[:size]) for size, row in enumerate(prefixes[: shown - 1], start=1))
    assert int(steps[0][1].passes) == 5


def test_it_never_waits_longer_than_ordered_and_two_places_come_at_least():
    for places in (1, 2, 3, 6, 7):
        sequential, steps = waits(Arbitrary(3), places, 20)
        assert sequential.max() <= places
        assert len(steps) <= -(-places // 2)
    sequential, steps = waits(Arbitrary(3), 6, 20, ahead=1)  # nothing to verify: `ordered` itself
    assert (sequential == 6).all()
    assert all((info.passes == 1).all() for _, info in steps)


def test_where_places_do_not_depend_on_each_other_two_passes_are_enough():
    one = np.array([0.2, 0.3, 0.5])
    sequential, steps = waits(Table(np.einsum("a,b,c,d->abcd", one, one, one, one)), 4, 50)
    assert (sequential == 2).all()
    assert len(steps) == 1


def test_the_expected_number_of_passes_is_that_of_the_overlap():
    """Two symbols at three places, all equal. If the second draft is right, as half of them are, the third stays or is
    drawn again: two passes. If not, the third is still hidden: one more."""
    table = np.zeros((2, 2, 2))
    table[0, 0, 0] = table[1, 1, 1] = 0.5
    sequential, _ = waits(Table(table + 1e-9), 3, 4000)
    assert np.isin(sequential, [2, 3]).all()
    assert (sequential == 2).mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(4000))


@pytest.mark.parametrize("ahead", [0, -1, 1.5, True])
def test_what_is_no_number_of_places_is_refused(ahead):
    with pytest.raises(BesagError, match="ahead"):
        kernel("speculative", ahead=ahead)
