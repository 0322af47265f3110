"""mdlm against enumeration: on a law given as a table, the bound is −log p itself."""

from __future__ import annotations

from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest
import torch
from tests.training.objectives import examples

from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.objectives import mdlm
from besag.training.objectives.mdlm import MDLM, Bound, nelbo

TABLE = Table.random(3, 4, seed=5)


def of_table(ids: torch.Tensor, layout: Layout, start: int = 0) -> Batch:
    """A batch that asks about every token."""
    everything = torch.arange(len(ids))
    return Batch(
        ids, ids, torch.ones(len(ids), dtype=torch.bool), layout, everything, torch.ones(len(ids)),
        torch.zeros(layout.rows), torch.arange(layout.rows) + start, 0, 0.0,
    )  # fmt: skip


def copies(sequence: list[int], count: int, start: int = 0) -> Batch:
    return of_table(torch.tensor(sequence).repeat(count), Layout.of_lengths(torch.full((count,), len(sequence))), start)


@pytest.mark.parametrize("hide", ["independent", "counted"])
def test_on_an_exact_law_the_bound_is_minus_log_p(hide: Any) -> None:
    """16 batches of 2,000 copies of one sequence, each with a time and a mask of its own."""
    sequence = [2, 0, 1, 1]
    network: Encoder = examples.Exact(TABLE)
    objective = MDLM(network, hide=hide)
    drawn = [float(objective(copies(sequence, 2000, start)).total) / 8000 for start in range(0, 32_000, 2000)]
    exact = -float(TABLE.log_probs[tuple(sequence)]) / 4
    error = np.std(drawn, ddof=1) / 4
    assert error < 0.015 * exact
    assert abs(np.mean(drawn) - exact) < 3.5 * error


def test_expectation_over_times_and_masks_is_the_average_over_orders() -> None:
    """The weights in the objective, integrated over all times and masks, on an encoder that is *no* law's."""
    network = examples.encoder()
    batch = examples.batch((5,))
    objective = MDLM(network, floor=0.0)
    log_probs = {}
    free = [1, 2, 3]
    for pattern in product([False, True], repeat=3):
        hidden = torch.tensor([False, *pattern, False])
        logits = network.model(batch.ids.masked_fill(hidden, network.mask_id)[None]).logits[0].detach()
        logits[:, network.mask_id] = -torch.inf
        picked = logits.log_softmax(-1)[torch.arange(5), batch.ids]
        log_probs[pattern] = [float(picked[i]) if hidden[i] else 0.0 for i in free]
    by_orders = -sum(
        sum(log_probs[pattern]) / sum(pattern) / comb(3, sum(pattern)) for pattern in log_probs if any(pattern)
    )
    nodes, weights = np.polynomial.legendre.leggauss(12)
    integral = 0.0
    for node, share in zip(nodes / 2 + 0.5, weights / 2, strict=True):
        for pattern, values in log_probs.items():
            chance = node ** sum(pattern) * (1 - node) ** (3 - sum(pattern))
            integral -= share * chance * sum(values) / node
    assert integral == pytest.approx(by_orders, rel=1e-6)
    many = 6000
    ids = batch.ids.repeat(many)
    layout = Layout.of_lengths(torch.full((many,), 5))
    free_many = batch.free.repeat(many)
    for hide in ("independent", "counted"):
        objective.hide = hide
        hidden, weight = objective.corrupt(free_many, layout, torch.arange(many))
        patterns = hidden.view(many, 5)[:, free].tolist()
        rows = weight.view(many, 5)[:, 1].tolist()
        drawn = [-w * sum(log_probs[tuple(pattern)]) for w, pattern in zip(rows, patterns, strict=True)]
        error = np.std(drawn) / np.sqrt(many)
        assert abs(np.mean(drawn) - by_orders) < 4 * error
        assert error < 0.1 * by_orders
        assert not hidden.view(many, 5)[:, [0, 4]].any()
    assert len(ids) == len(layout.row)


def test_the_loss_by_hand() -> None:
    network, batch = examples.encoder(), examples.batch()
    network.watched = True
    objective = MDLM(network, seed=3)
    loss = objective(batch)
    hidden, weight = objective.corrupt(batch.free, batch.layout, batch.draw)
    log_probs = examples.plain(network, batch.ids.masked_fill(hidden, network.mask_id), batch.layout)
    log_probs[:, network.mask_id] = -torch.inf
    log_probs = log_probs.log_softmax(-1)
    time = objective.floor + (1 - objective.floor) * mdlm.draws.spread(3, Training.MDLM_TIME, batch.draw)
    by_hand = -sum(
        float(log_probs[i, batch.ids[i]]) / float(time[batch.layout.row[i]]) for i in hidden.nonzero()[:, 0].tolist()
    )
    assert 0 < int(hidden.sum()) < int(batch.free.sum())
    nats_a_token = float(loss.total.detach()) / float(batch.weight.sum())
    assert nats_a_token == pytest.approx(by_hand / int(batch.free.sum()), rel=1e-4)
    assert loss.predicted is not None
    torch.testing.assert_close(loss.predicted.ids, batch.ids[hidden])
    assert float(weight.min()) >= 1


def test_the_mask_is_no_answer_and_gets_no_gradient() -> None:
    batch = examples.batch()
    gradients = {}
    for subs in (True, False):
        network = examples.encoder("bert")
        batch = examples.batch(family="bert")
        MDLM(network, subs=subs)(batch).total.backward()
        gradients[subs] = network.model.cls.predictions.bias.grad
    mask = network.mask_id
    assert float(gradients[True][mask]) == 0
    assert float(gradients[False][mask]) > 0
    assert float(gradients[True].abs().sum()) > 0


def test_counted_masks_have_every_size_equally_often() -> None:
    batch = copies([0, 1, 2, 0], 4000)
    hidden, weight = MDLM(examples.Exact(TABLE), hide="counted").corrupt(batch.free, batch.layout, batch.draw)
    count = hidden.view(-1, 4).sum(1)
    np.testing.assert_allclose(np.bincount(count, minlength=5)[1:], 1000, atol=3)  # times lie evenly
    assert (weight.view(-1, 4)[:, 0] == 4 / count).all()
    places = hidden.view(-1, 4)[count == 1].sum(0).numpy()
    assert ((places - 250) ** 2 / 250).sum() < 16.3  # chi-square, 3 degrees of freedom, p = 0.001


def test_masks_do_not_depend_on_the_batch() -> None:
    batch = examples.batch()
    objective = MDLM(examples.encoder())
    together, _ = objective.corrupt(batch.free, batch.layout, batch.draw)
    start, end = batch.layout.bounds[1:3].tolist()
    alone, _ = objective.corrupt(batch.free[start:end], Layout.of_lengths(torch.tensor([end - start])), batch.draw[1:2])
    torch.testing.assert_close(together[start:end], alone)


def test_ragged_and_padded_batches_have_one_loss() -> None:
    batch = examples.batch()
    padded, ragged = (MDLM(examples.encoder(ragged=ragged))(batch).total for ragged in (False, True))
    torch.testing.assert_close(padded, ragged, rtol=1e-4, atol=1e-4)


def test_a_batch_in_which_nothing_is_hidden_has_loss_zero() -> None:
    network, batch = examples.encoder(), examples.batch((3,))
    for draw in range(200):
        objective = MDLM(network)
        alone = batch._replace(draw=torch.tensor([draw]))
        if not objective.corrupt(alone.free, alone.layout, alone.draw)[0].any():
            loss = objective(alone)
            assert float(loss.total.detach()) == 0
            assert float(examples.gradient(loss.total, network).abs().max()) == 0
            return
    raise AssertionError("every draw hid something")


def test_nelbo_of_an_exact_law_is_minus_log_p() -> None:
    table = Table.random(2, 4, seed=5)
    network: Encoder = examples.Exact(table)
    ids, layout = examples.sequences(table)  # all 16
    bound = nelbo(network, ids, layout, samples=80, seed=1)
    exact = -float(table.log_probs.mean()) / 4
    assert bound.tokens == 4 * 16
    assert 0 < bound.error < 0.05 * exact
    assert abs(bound.nats - exact) < 4 * bound.error
    errors = [abs(nelbo(network, ids, layout, samples=4, seed=s).nats - exact) for s in range(30)]
    stated = [nelbo(network, ids, layout, samples=16, seed=s).error for s in range(6)]
    assert np.sqrt(np.mean(np.square(errors))) / 2 == pytest.approx(np.mean(stated), rel=0.35)  # 4 times fewer: twice


def test_nelbo_leaves_the_encoder_as_it_was_and_skips_special_tokens() -> None:
    network, batch = examples.encoder(attention_dropout=0.5), examples.batch()
    network.train()
    bounds = [nelbo(network, batch.ids, batch.layout, samples=4) for _ in range(2)]
    assert bounds[0] == bounds[1]  # no dropout in it
    assert network.training
    assert bounds[0].tokens == int(batch.free.sum())
    assert all(weight.grad is None for weight in network.parameters())


def test_bounds_add_up() -> None:
    bound = Bound.together([Bound(2.0, 0.3, 10), Bound(1.0, 0.1, 30)])
    assert bound == Bound(1.25, pytest.approx(np.hypot(3, 3) / 40), 40)


@pytest.mark.parametrize("wrong", [{"hide": "all"}, {"floor": 1.0}, {"floor": -0.1}])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    [(option, value)] = wrong.items()
    with pytest.raises(BesagError, match=f"{option}={value!r}"):
        MDLM(examples.encoder(), **wrong)
    with pytest.raises(BesagError, match="samples=1"):
        nelbo(examples.encoder(), torch.tensor([3]), Layout.of_lengths(torch.tensor([1])), samples=1)
