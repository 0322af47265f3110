import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.samplers.exact import (
    Incompatible,
    blank,
    conditional,
    empirical,
    follows,
    gibbs_matrix,
    number,
    run,
    sequences,
    stationary,
    total_variation,
)

from besag.conditionals.table import Table
from besag.engine import Engine
from besag.errors import BesagError
from besag.samplers import kernel

CHAINS = 20_000


def start_from(law: np.ndarray, chains: int = CHAINS, seed: int = 0) -> np.ndarray:
    """(C, n) sequences drawn from a table."""
    flat = law.ravel() / law.sum()
    drawn = np.random.default_rng(seed).choice(len(flat), size=chains, p=flat)
    return sequences(law.shape[0], law.ndim)[drawn]


@pytest.mark.parametrize("scan", ["random", "systematic"])
def test_a_joint_is_invariant(scan):
    law = Table.random(3, 3, seed=1)
    joint = law.log_probs.exp().numpy()
    canvas = blank(law, 3, CHAINS, start_from(joint))
    assert follows(empirical(kernel("gibbs", scan=scan), law, canvas, steps=5), joint)


@pytest.mark.parametrize("scan", ["random", "systematic"])
def test_one_step_is_the_matrix_of_its_scan(scan):
    law, start = Incompatible(3, 3), np.array([2, 0, 1])
    matrices = [gibbs_matrix(law, 3, place) for place in range(3)]
    [at] = number(start[None], 3)
    expected = np.mean(matrices, 0)[at] if scan == "random" else matrices[0][at]
    assert follows(empirical(kernel("gibbs", scan=scan), law, blank(law, 3, CHAINS, start), steps=1), expected)


def test_incompatible_conditionals_have_one_law_a_scan():
    law = Incompatible(2, 3)
    matrices = [gibbs_matrix(law, 3, place) for place in range(3)]
    random = stationary(np.mean(matrices, 0))
    sweep = stationary(matrices[0] @ matrices[1] @ matrices[2])
    assert total_variation(random, sweep) > 0.01  # else this test could not tell them apart
    canvas = blank(law, 3, CHAINS, np.zeros(3, int))
    assert follows(empirical(kernel("gibbs"), law, canvas, steps=300), random)
    assert follows(empirical(kernel("gibbs", scan="systematic"), law, canvas, steps=150), sweep)


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


def test_forbidden_tokens_are_never_drawn():
    law = Table.random(4, 2, seed=5)
    allowed = torch.tensor([True, False, True, True])
    state, _ = run(kernel("gibbs"), law, blank(law, 2, 2000, allowed=allowed), steps=20)
    assert 1 not in state.ids
    by_place = torch.tensor([[True, False, False, False], [False, True, True, False]])
    state, _ = run(kernel("gibbs"), law, blank(law, 2, 2000, allowed=by_place), steps=20)
    assert set(state.ids[:, 0].tolist()) == {0}
    assert set(state.ids[:, 1].tolist()) == {1, 2}


@given(st.integers(0, 50), st.sampled_from(["random", "systematic", "subset"]), st.integers(1, 30))
@settings(max_examples=25, deadline=None)
def test_noise_belongs_to_the_chain_and_clamped_places_never_move(seed, scan, batch):
    law = Table.random(3, 4, seed=seed)
    canvas = blank(law, 4, 6, np.array([0, 1, 2, 0]))
    canvas = canvas._replace(free=canvas.free & torch.tensor([True, False, True, True]))
    whole, _ = run(kernel("gibbs", scan=scan), law, canvas, steps=7, seed=seed)
    engine = Engine(law, batch_tokens=batch, progress=False)
    for part in (torch.arange(2), torch.arange(2, 6)):
        some, _ = run(kernel("gibbs", scan=scan), law, canvas.rows(part), 7, seed, first=int(part[0]), engine=engine)
        assert torch.equal(some.ids, whole.ids[part])
    assert (whole.ids[:, 1] == 1).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"temperature": 0}, "temperature=0: give a number above 0"),
        ({"temperature": float("nan")}, "temperature=nan"),
        ({"top_p": 0.0}, "top_p=0.0: the share of probability to keep is above 0 and at most 1"),
        ({"top_p": 1.5}, "top_p=1.5"),
        ({"top_k": 0}, "top_k=0: keep at least 1"),
        ({"scan": "ramdom"}, "scan='ramdom': give one of random, systematic, subset. Did you mean 'random'?"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told.replace("(", r"\(").replace("?", r"\?")):
        kernel("gibbs", **options)
