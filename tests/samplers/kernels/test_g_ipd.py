"""Fixed groups, N apart: against the law enumerated from the definition."""

import numpy as np
import pytest
import torch
from tests.laws import Counting
from tests.samplers.exact import Hashed

from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.lab.oracles import blank, empirical, follows, run, sequences, total_variation
from besag.samplers.kernel import kernel

CHAINS = 10_000


def enumerated(law, blocks, places):
    """(V^n,) the chain rule over blocks, a product within each."""
    every = sequences(law.width, places)
    probs = np.ones(len(every))
    for at, sequence in enumerate(every):
        shown = [law.width] * places
        for block in blocks:
            rows = [np.exp(law.log_probs(shown, place)) for place in block]
            probs[at] *= np.prod([row[sequence[place]] for row, place in zip(rows, block, strict=True)])
            for place in block:
                shown[place] = int(sequence[place])
    return probs


def test_groups_are_every_nth_place_and_come_one_after_the_other():
    law = Hashed()
    expected = enumerated(law, [[0, 2], [1, 3]], 4)
    assert expected.sum() == pytest.approx(1)
    counts = empirical(kernel("g_ipd", groups=2), law, blank(law, 4, CHAINS))
    assert follows(counts, expected)
    side_by_side = enumerated(law, [[0, 1], [2, 3]], 4)
    assert total_variation(expected, side_by_side) > 0.02  # else the last line would prove little
    assert not follows(counts, side_by_side)


def test_as_many_groups_as_places_is_the_chain_rule():
    law = Table.random(2, 4, seed=1)
    assert follows(empirical(kernel("g_ipd", groups=4), law, blank(law, 4, CHAINS)), law.log_probs.exp().numpy())
    law, canvas = Hashed(), blank(Hashed(), 5, 50)
    one, _ = run(kernel("g_ipd", groups=9), law, canvas)
    other, _ = run(kernel("ordered"), law, canvas)
    assert torch.equal(one.ids, other.ids)


def test_a_group_in_several_rounds_reveals_its_surest_places_first():
    law = Hashed()
    state, told = run(kernel("g_ipd", groups=1, rounds=4), law, blank(law, 4, 200))
    other, _ = run(kernel("ordered", order="confidence"), law, blank(law, 4, 200))
    assert torch.equal(state.ids, other.ids)
    assert len(told) == 4


def test_passes_and_what_is_given():
    law = Counting(Hashed())
    canvas = blank(law, 7, 2)
    canvas = canvas._replace(ids=canvas.ids.clone(), free=canvas.free.clone())
    canvas.ids[1, 0], canvas.free[1, 0] = 1, False  # groups are of what is hidden: the second place is of the first
    made = kernel("g_ipd", groups=3, rounds=2)
    state, told = run(made, law, canvas)
    assert torch.stack([info.passes for info in told]).sum(0).tolist() == [6, 3 * 2]
    assert len(told) == made.steps(canvas) == 6
    assert state.ids[1, 0] == 1
    assert (state.ids < 2).all()


def test_options_that_make_no_sense():
    for options in ({"groups": 0}, {"rounds": 0}):
        with pytest.raises(BesagError, match="at least 1"):
            kernel("g_ipd", **options)
