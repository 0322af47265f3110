"""Noise on tensors is the noise of `besag.noise`, and spread numbers lie evenly in every batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import networks
from tests.training.objectives import examples
from tests.training.objectives.rows import alone

from besag import noise
from besag.training.network.batch import Batch
from besag.training.network.received import attention_received
from besag.training.objectives import OBJECTIVES, draws
from besag.training.objectives.ernie_gram import ErnieGram
from besag.training.objectives.lert import LERT, Tagged

WORDS = st.integers(0, 2**32 - 1)


@given(st.integers(0, 2**64 - 1), st.lists(WORDS, min_size=1, max_size=5), WORDS, WORDS)
def test_the_same_numbers_as_in_numpy(seed: int, places: list[int], stream: int, draw: int) -> None:
    drawn = draws.uniform(seed, stream, torch.tensor(places), draw)
    np.testing.assert_array_equal(drawn.numpy(), noise.uniform(seed, stream, np.array(places), draw))


def test_counters_broadcast() -> None:
    drawn = draws.uniform(3, 70, torch.arange(4)[:, None], torch.arange(5))
    np.testing.assert_array_equal(drawn.numpy(), noise.uniform(3, 70, np.arange(4)[:, None], np.arange(5)))


@given(st.integers(0, 1000), st.integers(0, 2**32 - 200), st.integers(2, 100))
def test_consecutive_draws_lie_evenly(seed: int, start: int, count: int) -> None:
    points = np.sort(draws.spread(seed, 64, start + torch.arange(count)).numpy())
    assert points[0] > 0 and points[-1] < 1  # noqa: PT018
    gaps = np.diff(np.append(points, points[0] + 1))
    assert gaps.max() < 2.7 / count  # independent draws: about log(count) / count


def test_one_passage_has_a_uniform_number_over_seeds() -> None:
    points = np.array([float(draws.spread(seed, 64, torch.tensor([7]))) for seed in range(2000)])
    counts = np.bincount((points * 10).astype(int), minlength=10)
    assert ((counts - 200) ** 2 / 200).sum() < 27.9  # chi-square, 9 degrees of freedom, p = 0.001


def test_tokens_are_drawn_as_likely_as_they_are_and_never_where_they_cannot_be() -> None:
    logits = torch.tensor([-torch.inf, 1.0, -torch.inf, 2.0, 0.0, -torch.inf]).repeat(4096, 1)
    drawn = draws.tokens(logits, (torch.arange(4096).double() + 0.5) / 4096)
    shares = torch.bincount(drawn, minlength=6) / 4096
    torch.testing.assert_close(shares, logits[0].softmax(0), atol=1e-3, rtol=0)
    ends = draws.tokens(logits[:2], torch.tensor([2.0**-53, 1 - 2.0**-53], dtype=torch.float64))
    assert ends.tolist() == [1, 4]  # what rounds to 0 or to the whole


SCALED = (  # their targets are all free tokens, …
    "mdlm", "spindle", "unroll", "alternate", "causal", "glance", "attention_guided", "group_mask", "ernie_gram",
    "self_evolution", "block_diffusion",
)  # fmt: skip
COUNTED = {  # … or others
    "attention_guided": lambda guided, part: guided.hidden(part, attention_received(guided.encoder, part)).sum(),
    "group_mask": lambda objective, part: objective.masked(part)[1].sum(),
    "ernie_gram": lambda objective, part: names(objective, part).sum(),
    "self_evolution": lambda objective, part: objective.hidden(part, objective.question(part).losses).sum(),
    "causal": lambda _, part: len(part.ids) - part.layout.rows,
    "glance": lambda objective, part: objective.hidden(part, objective.wrong(part)).sum(),
}
OPTIONS = {
    "spindle": lambda network: {"counts": torch.arange(network.width) + 1.0},
    "distil": lambda network: {"teacher": examples.encoder(seed=1)},
    "compatible": lambda network: {"share": 1.0, "weight": 1.0},
    "mae": lambda network: {"mlm_share": 0.5},
    "late_mask": lambda network: {"mlm_share": 0.5},
    "maskless": lambda network: {"one_at_a_time": False},
    "ernie_gram": lambda network: {"fine": 0.0},
    "exlm": lambda network: {"mlm_share": 0.5, "states": 2},
    "lert": lambda network: {"tags": TAGS},
}


TAGS = Tagged(
    ("the cats sleep", "dogs bark"),
    (((0, 3), (4, 8), (9, 14)), ((0, 4), (5, 9))),
    {"pos": (("D", "N", "V"), ("N", "V"))},
)


def names(objective: ErnieGram, part: Batch) -> torch.Tensor:
    """The units of which the name is asked."""
    units = objective.units(part)
    return objective.hidden(part, units) & units.first


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_no_objective_draws_by_its_batch(name: str) -> None:
    """What a passage adds to the loss is the same alone and among others: its draws are a function of its number."""
    network = examples.encoder()
    objective = OBJECTIVES.find(name)(network, seed=3, **OPTIONS.get(name, lambda network: {})(network)).eval()
    batch = examples.batch((7, 4, 9, 8, 12, 6))
    if isinstance(objective, ErnieGram):
        objective.learn(np.unique(batch.ids.numpy())[:8].reshape(4, 2))
    if isinstance(objective, LERT):
        objective.meet(networks.vocabulary(examples.FAMILY))
    inputs = batch.inputs.index_fill(0, batch.asked, network.mask_id)
    batch = batch._replace(inputs=inputs, draw=torch.arange(6) + 20, step=1, progress=0.4)

    def sums(part: object) -> float:
        total = objective(part).total.detach()
        count = COUNTED.get(name, lambda _, part: part.free.sum())(objective, part)
        return float(total * count / part.weight.sum() if name in SCALED else total)

    parts = [alone(batch, row) for row in range(6)]
    parts = [part for part in parts if float(part.weight.sum()) > 0]
    assert len(parts) == 6 or name not in SCALED
    assert sums(batch) == pytest.approx(sum(map(sums, parts)), rel=1e-4)
