"""Many small joints at once, against the constructions themselves and against what they are the solution of."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.joints.tables import compatible, incompatible

from besag.joints import construction
from besag.joints.small_tables import arnold_gokhale, stationary


def batch(tables):
    return torch.stack([table.log_a for table in tables]), torch.stack([table.log_b for table in tables])


def uniform(m, k, count):
    return torch.full((count, m), -np.log(m)).double(), torch.full((count, k), -np.log(k)).double()


@pytest.mark.parametrize("weights", ["uniform", "marginal"])
@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 1000))
def test_ag_of_many_boxes_is_ag_of_each(weights, m, k, seed):
    tables = [incompatible(m, k, seed + i, scale=1.0) for i in range(3)]
    hidden = torch.stack([table.hidden_a for table in tables]), torch.stack([table.hidden_b for table in tables])
    start = hidden if weights == "marginal" else uniform(m, k, 3)
    found = arnold_gokhale(*batch(tables), *start, hidden if weights == "marginal" else None)
    for table, log_q in zip(tables, found, strict=True):
        built = construction("ag", weights=weights, tolerance=1e-13, limit=5000).build(table)
        assert built.status == "ok"
        torch.testing.assert_close(log_q.exp(), built.law.cells(table).exp(), atol=1e-9, rtol=0)


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 1000))
def test_stationary_of_many_boxes_is_that_of_each(m, k, seed):
    tables = [incompatible(m, k, seed + i, scale=1.0) for i in range(3)]
    for table, log_q in zip(tables, stationary(*batch(tables)), strict=True):
        built = construction("stationary", tolerance=1e-13, limit=5000).build(table)
        assert built.status == "ok"
        torch.testing.assert_close(log_q.exp(), built.law.cells(table).exp(), atol=1e-9, rtol=0)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 1000))
def test_the_joint_of_compatible_boxes_is_found(m, k, seed):
    pairs = [compatible(m, k, seed + i) for i in range(2)]
    tables, joints = zip(*pairs, strict=True)
    for found in (arnold_gokhale(*batch(tables), *uniform(m, k, 2)), stationary(*batch(tables))):
        torch.testing.assert_close(found.exp(), torch.stack(joints), atol=1e-10, rtol=0)


@pytest.mark.parametrize("scale", [1.0, 8.0, 30.0])
def test_ag_is_its_own_update_however_wild_the_conditionals_are(scale):
    tables = [incompatible(9, 7, seed, scale=scale) for seed in range(20)]
    log_a, log_b = batch(tables)
    log_q = arnold_gokhale(log_a, log_b, *uniform(9, 7, 20))
    inverse = torch.logaddexp(-log_q.logsumexp(2)[:, :, None], -log_q.logsumexp(1)[:, None])
    update = torch.logaddexp(log_a, log_b) - inverse
    update = update - update.logsumexp((1, 2), keepdim=True)
    assert ((log_q.exp() - update.exp()).abs().sum((1, 2)) / 2).max() < 1e-11


def test_nothing_near_it_fits_the_conditionals_better():
    tables = [incompatible(4, 5, seed) for seed in range(5)]
    log_a, log_b = batch(tables)
    best = arnold_gokhale(log_a, log_b, *uniform(4, 5, 5))

    def objective(log_q):
        given_b, given_a = log_q - log_q.logsumexp(1)[:, None], log_q - log_q.logsumexp(2)[:, :, None]
        return (log_a.exp() * (log_a - given_b) + log_b.exp() * (log_b - given_a)).sum((1, 2))

    generator = torch.Generator().manual_seed(0)
    for size in (1.0, 0.1, 1e-3):
        moved = best + size * torch.randn(best.shape, generator=generator, dtype=torch.float64)
        assert (objective(moved) > objective(best)).all()


def test_a_box_that_nearly_falls_apart_keeps_its_stationary_law():
    leave, back = 1e-15, 3e-15
    a = torch.tensor([[[1 - leave, back], [leave, 1 - back]]], dtype=torch.float64)
    q = stationary(a.log(), torch.eye(2, dtype=torch.float64)[None].log())
    torch.testing.assert_close(q.logsumexp(2).exp()[0], torch.tensor([0.75, 0.25]).double(), atol=1e-6, rtol=0)


def test_what_zeros_leave_open_is_said_or_kept_from_the_start():
    log = torch.eye(2, dtype=torch.float64)[None].log()
    start = torch.tensor([[0.9, 0.1]]).double().log()
    assert stationary(log, log).isnan().any()
    torch.testing.assert_close(arnold_gokhale(log, log, start, start).exp()[0], torch.diag(start.exp()[0]))


def test_boxes_do_not_depend_on_their_neighbours_and_go_in_pieces(monkeypatch):
    import besag.joints.small_tables as boxes

    tables = [incompatible(4, 4, seed, scale=1.0 + seed) for seed in range(6)]
    together = arnold_gokhale(*batch(tables), *uniform(4, 4, 6))
    alone = torch.cat([arnold_gokhale(*batch([table]), *uniform(4, 4, 1)) for table in tables])
    torch.testing.assert_close(together, alone, atol=1e-13, rtol=0)
    monkeypatch.setattr(boxes, "CELLS", 2 * 8**2)
    torch.testing.assert_close(arnold_gokhale(*batch(tables), *uniform(4, 4, 6)), together, atol=1e-13, rtol=0)
