"""spindle against the exact law: whatever the schedules, the bound is −log p, and only with both of its parts."""

from __future__ import annotations

from itertools import product
from math import pi
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.training.objectives import examples
from tests.training.objectives.test_mdlm import copies
from torch import Tensor

from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.masks import token_schedules
from besag.masks.law import Statistics
from besag.noise import Training
from besag.training.network.batch import Layout
from besag.training.objectives import draws, mdlm, spindle
from besag.training.objectives.spindle import Spindle, leaving, masked_by

TABLE = Table.random(3, 3, seed=2)
COUNTS = [700, 250, 50, 0]  # the last is the mask


def exact_at(time: float, bend: Tensor) -> examples.Exact:
    """What stands at a hidden place, knowing that everything hidden was hidden by this time."""
    return examples.Exact(TABLE, masked_by(torch.tensor(time), bend[:-1].double()))


@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0])
def test_the_bound_of_an_exact_law_is_minus_log_p_under_every_schedule(strength: float) -> None:
    """Integrated over time, summed over all masks, for every sequence of the table."""
    objective = Spindle(examples.Exact(TABLE), strength=strength, counts=COUNTS)
    nodes, shares = np.polynomial.legendre.leggauss(16)
    pairs = list(product(product(range(3), repeat=3), list(product([False, True], repeat=3))[1:]))
    ids, hidden = (torch.tensor(part) for part in zip(*pairs, strict=True))  # (27 · 7, 3)
    layout = Layout.of_lengths(torch.full((len(ids),), 3))
    bound, first_part = torch.zeros(2, len(ids), dtype=torch.float64)
    for time, share in zip(nodes / 2 + 0.5, shares / 2, strict=True):
        network = exact_at(time, objective.bend)
        gone = masked_by(torch.tensor(time), objective.bend.double())
        chance = torch.where(hidden, gone[ids], 1 - gone[ids]).prod(1)
        rows = network.states(ids.masked_fill(hidden, network.mask_id).flatten(), layout)[hidden.flatten()]
        target, at = ids[hidden], torch.full((int(hidden.sum()),), time)
        losses, plain = objective.losses(mdlm.without(rows, network.mask_id), target, at)
        rate = leaving(at, objective.bend[target]) / gone[target]
        for total, parts in ((bound, losses), (first_part, rate * plain)):
            placed = torch.zeros(ids.shape, dtype=torch.float64)
            placed[hidden] = parts.double()
            total += share * chance * placed.sum(1)
    bound, first_part = bound.view(27, 7).sum(1), first_part.view(27, 7).sum(1)
    exact = -TABLE.log_probs.flatten()
    torch.testing.assert_close(bound, exact, rtol=2e-4, atol=2e-4)
    if strength:  # the weighted cross-entropy alone is no bound: for some sequence it lies below −log p
        assert float((first_part - exact).min()) < -0.01
    else:
        torch.testing.assert_close(first_part, exact, rtol=2e-4, atol=2e-4)


def test_drawn_masks_follow_the_schedules() -> None:
    objective = Spindle(examples.Exact(TABLE), counts=COUNTS)
    shown: list[Tensor] = []
    objective.encoder.states = lambda ids, layout: (
        shown.append(ids)
        or examples.Exact.states(
            objective.encoder,
            ids,
            layout,
        )
    )
    batch = copies([0, 1, 2], 4000)
    objective.encoder.answers = lambda table, row, place: torch.zeros(len(row), 3).double()
    objective(batch)
    hidden = (shown[0] == 3).view(-1, 3).double()
    time = 1e-3 + (1 - 1e-3) * draws.spread(0, Training.SPINDLE_TIME, batch.draw)
    late = time > 0.5
    for side in (late, ~late):
        wanted = masked_by(time[side][:, None], objective.bend[:3].double())
        error = (wanted * (1 - wanted)).mean(0).div(int(side.sum())).sqrt()
        assert ((hidden[side].mean(0) - wanted.mean(0)).abs() < 4 * error).all()
    early = hidden[~late].mean(0)
    assert early[2] > early[1] > early[0]  # what is rare goes first


def test_without_strength_it_is_mdlm() -> None:
    network, batch = examples.encoder(), examples.batch()
    plain = Spindle(network, strength=0.0, counts=torch.ones(network.width, dtype=torch.long))
    other = mdlm.MDLM(network)
    time = 1e-3 + (1 - 1e-3) * draws.spread(0, Training.SPINDLE_TIME, batch.draw)
    noise = draws.uniform(0, Training.SPINDLE_HIDE, batch.draw[batch.layout.row], batch.layout.column)
    hidden = batch.free & (noise < time[batch.layout.row])
    other.corrupt = lambda *_: (hidden, (1 / time[batch.layout.row]).float())
    torch.testing.assert_close(plain(batch).total, other(batch).total)


def test_every_schedule_falls_from_one_to_zero() -> None:
    counts = torch.tensor([10**6, 10**4, 100, 1, 0], dtype=torch.float64)
    time = torch.linspace(0, 1, 400, dtype=torch.float64)[:, None]
    for strength in (0.1, 0.3, 3.0):
        bend = spindle.curvatures(counts, strength)
        gone = masked_by(time, bend)
        assert (gone.diff(dim=0) > 0).all()
        torch.testing.assert_close(gone[0], torch.zeros(5, dtype=torch.float64))
        torch.testing.assert_close(gone[-1], torch.ones(5, dtype=torch.float64))
        slope = gone.diff(dim=0) / time.diff(dim=0)
        torch.testing.assert_close(slope, leaving((time[1:] + time[:-1]) / 2, bend), rtol=1e-4, atol=1e-4)
        assert (leaving(time, bend) >= 0.1 - 1e-9).all()
    information = -(counts[:4] / counts.sum()).log()
    mean = float((counts[:4] / counts.sum() * information).sum())
    by_hand = [max(-0.9 / pi, min(0.9 / pi, 0.1 * (1 - mean / float(value)))) for value in information]
    assert spindle.curvatures(counts, 0.1)[:4].tolist() == pytest.approx(by_hand)


def test_prepare_takes_the_counts_of_the_corpus() -> None:
    network, batch = examples.encoder(), examples.batch()
    counts = np.arange(network.width - 3)
    statistics = Statistics(counts, [], frozenset(), tuple(map(str, counts)))
    objective, other = Spindle(network), Spindle(network, counts=counts.tolist())
    with pytest.raises(BesagError, match="how often"):
        objective(batch)
    objective.prepare(statistics)
    torch.testing.assert_close(objective(batch).total, other(batch).total)
    assert "bend" in objective.state_dict()
    with pytest.raises(BesagError, match="counts of"):
        Spindle(network, counts=list(range(network.width + 1)))
    with pytest.raises(BesagError, match="all zero"):
        Spindle(network, counts=[0, 0])
    with pytest.raises(BesagError, match="strength"):
        Spindle(network, strength=-1.0)


def test_ragged_and_padded_batches_have_one_loss_and_the_network_learns() -> None:
    batch = examples.batch()
    networks = [examples.encoder(ragged=ragged) for ragged in (False, True)]
    counts = list(range(networks[0].width))
    padded, ragged = (Spindle(network, counts=counts)(batch).total for network in networks)
    torch.testing.assert_close(padded, ragged, rtol=1e-4, atol=1e-4)
    assert float(examples.gradient(padded, networks[0]).abs().max()) > 1e-3


def test_counts_are_kept_beside_the_model(tmp_path: Path) -> None:
    objective = Spindle(examples.Exact(TABLE), strength=0.2, counts=COUNTS)
    objective.save_extras(tmp_path)
    found = token_schedules.kept(tmp_path)
    assert found is not None
    assert found.counts[: len(COUNTS)].tolist() == [float(count) for count in COUNTS]
    assert found.strength == 0.2
    assert token_schedules.kept(tmp_path / "elsewhere") is None
