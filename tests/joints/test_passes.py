"""Every pass against dense float64 tables, whatever the block size."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.joints.tables import compatible, incompatible, single

from besag.errors import BesagError
from besag.joints import construction, passes
from besag.joints.law import JointLaw, harmonic
from besag.joints.metrics import measure, own_unary_nll
from besag.joints.unaries import Unaries

sizes = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 10_000))


def law(kind: str, m: int, k: int, seed: int) -> JointLaw:
    generator = np.random.default_rng(seed)
    row, left, column, right = (torch.from_numpy(generator.normal(size=size)) for size in (m, m, k, k))
    return JointLaw(kind, row, column, left, right)


@pytest.fixture(params=[1, 7, 2**18], ids="blocks of {}".format)
def _blocks(request, monkeypatch):
    monkeypatch.setitem(passes.BLOCK_CELLS, "cpu", request.param)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("kind", ["independent", "a", "b", "product", "sum"])
def test_marginals_top_and_counts_are_those_of_the_dense_joint(kind):
    unaries, one = incompatible(8, 5, 1), law(kind, 8, 5, 2)
    cells = one.cells(unaries)
    rows, columns = passes.marginals(unaries, one)
    torch.testing.assert_close(rows, cells.exp().sum(1).log())
    torch.testing.assert_close(columns, cells.exp().sum(0).log())
    torch.testing.assert_close(passes.marginal_a(unaries, one), rows)
    torch.testing.assert_close(passes.marginal_b(unaries, one), columns)
    values, x, y = passes.top(unaries, one, 6)
    torch.testing.assert_close(values, cells.flatten().sort(descending=True).values[:6])
    torch.testing.assert_close(cells[x, y], values)
    assert passes.count_above(unaries, one, float(values[3])) == 3
    other = law(kind, 8, 5, 3)
    assert passes.total_variation(unaries, one, other) == pytest.approx(
        float((cells.exp() - other.cells(unaries).exp()).abs().sum()) / 2
    )


@pytest.mark.usefixtures("_blocks")
def test_a_sweep_gives_both_marginals_and_the_potential():
    unaries, one = incompatible(8, 5, 1), law("sum", 8, 5, 4)
    swept = passes.sweep(unaries, one)
    cells = one.cells(unaries).exp()
    torch.testing.assert_close(one.left + swept.rows, cells.sum(1).log())
    torch.testing.assert_close(one.right + swept.columns, cells.sum(0).log())
    r = (unaries.log_a + one.column).exp() + (unaries.log_b + one.row[:, None]).exp()
    assert swept.potential == pytest.approx(-float((r * harmonic(one.left[:, None], one.right)).sum()))


@given(size=sizes)
def test_the_harmonic_sum_is_what_it_is_called(size):
    one = law("sum", *size)
    expected = -((-one.left[:, None]).exp() + (-one.right).exp()).log()
    torch.testing.assert_close(harmonic(one.left[:, None], one.right), expected)


@pytest.mark.usefixtures("_blocks")
def test_divergences_are_those_of_every_conditional():
    unaries = incompatible(8, 5, 1)
    built = construction("order").build(unaries)
    found = passes.divergences(unaries, built.law, built.log_u, built.log_v)
    q = built.law.cells(unaries).exp().numpy()

    def divergence(p, q):
        return (p * np.log(p / q)).sum()

    def jensen_shannon(p, q):
        return (divergence(p, (p + q) / 2) + divergence(q, (p + q) / 2)) / 2

    a, b = unaries.log_a.exp().numpy(), unaries.log_b.exp().numpy()
    given_b, given_a = q / q.sum(0), q / q.sum(1, keepdims=True)
    for y in range(5):
        assert float(found.forward_a[y]) == pytest.approx(divergence(a[:, y], given_b[:, y]))
        assert float(found.reverse_a[y]) == pytest.approx(divergence(given_b[:, y], a[:, y]))
        assert float(found.jsd_a[y]) == pytest.approx(jensen_shannon(a[:, y], given_b[:, y]))
    for x in range(8):
        assert float(found.forward_b[x]) == pytest.approx(divergence(b[x], given_a[x]))
        assert float(found.reverse_b[x]) == pytest.approx(divergence(given_a[x], b[x]))
        assert float(found.jsd_b[x]) == pytest.approx(jensen_shannon(b[x], given_a[x]))
    assert found.entropy == pytest.approx(-(q * np.log(q)).sum())


@pytest.mark.usefixtures("_blocks")
def test_incompatibility_is_the_published_score_and_nothing_for_a_joint():
    unaries = incompatible(8, 5, 1)
    c = (unaries.log_a - unaries.log_b).exp().numpy()
    deviation = np.log(c) + np.log(c.sum()) - np.log(c.sum(1, keepdims=True)) - np.log(c.sum(0))
    assert passes.incompatibility(unaries) == pytest.approx((deviation**2).mean())
    assert passes.incompatibility(compatible(8, 5, 0)[0]) < 1e-20


def test_incompatibility_needs_positive_conditionals():
    with pytest.raises(BesagError, match="positive conditionals"):
        passes.incompatibility(Unaries.of(torch.eye(3), torch.eye(3) + 1))


def test_a_probability_of_zero_gives_no_nan():
    table = torch.tensor([[0.5, 0.0], [0.25, 0.25]], dtype=torch.float64)
    unaries = Unaries.of(table, table, table.sum(1), table.sum(0), gold=(0, 0))
    for name in ("mlm", "order", "ag", "stationary", "mrf_local", "loglinear"):
        metrics = measure(unaries, construction(name).build(unaries))
        assert not any(math.isnan(value) for value in metrics), name
    assert measure(unaries, construction("mlm").build(unaries)).all_reverse == math.inf  # mass where the model has none


def test_metrics_are_their_formulas_on_the_dense_joint():
    unaries = incompatible(7, 6, 2)
    x, y = unaries.gold
    built = construction("ag").build(unaries)
    q = built.law.cells(unaries).exp().numpy()
    metrics = measure(unaries, built)
    given_b, given_a = q / q.sum(0), q / q.sum(1, keepdims=True)
    assert metrics.pair_nll == pytest.approx(-np.log(q[x, y]) / 2)
    assert metrics.unary_nll == pytest.approx(-(np.log(given_b[x, y]) + np.log(given_a[x, y])) / 2, abs=1e-7)
    assert metrics.rank == 1 + (q > q[x, y]).sum()
    a, b = unaries.log_a.exp().numpy(), unaries.log_b.exp().numpy()
    of_a, of_b = (a * np.log(a / given_b)).sum(0), (b * np.log(b / given_a)).sum(1)
    assert metrics.gold_forward == pytest.approx((of_a[y] + of_b[x]) / 2, abs=1e-7)
    assert metrics.all_forward == pytest.approx((of_a.sum() + of_b.sum()) / 13, abs=1e-7)
    information = (q * np.log(q / q.sum(1, keepdims=True) / q.sum(0))).sum()
    assert metrics.mutual_information == pytest.approx(information, abs=1e-7)
    assert own_unary_nll(unaries) == pytest.approx(-(np.log(a[x, y]) + np.log(b[x, y])) / 2)


def test_without_tokens_of_its_own_a_text_has_no_perplexity():
    unaries = incompatible(4, 4, 0, gold=False)
    metrics = measure(unaries, construction("mlm").build(unaries))
    assert math.isnan(metrics.pair_nll)
    assert metrics.rank == 0
    assert metrics.all_forward > 0
    assert math.isnan(own_unary_nll(unaries))


@pytest.mark.parametrize("kind", ["a", "product", "sum"])
def test_single_precision_stays_near_double(kind):
    unaries, one = incompatible(300, 200, 1, scale=4.0), law(kind, 300, 200, 2)
    halves = JointLaw(kind, *(part.float() for part in (one.row, one.column, one.left, one.right)))
    for double, float_ in zip(passes.marginals(unaries, one), passes.marginals(single(unaries), halves), strict=True):
        torch.testing.assert_close(float_.double(), double, atol=2e-5, rtol=0)


def test_what_a_step_changes_is_not_rounded_to_the_precision_of_the_tables():
    """So a step may be a hundredth of what float32 could tell from none, and still be seen."""
    unaries, one = incompatible(300, 200, 1, scale=4.0), law("sum", 300, 200, 2)
    step = torch.zeros_like(one.left)
    step[::2] = 1e-9
    moved = JointLaw("sum", one.row, one.column, one.left + step, one.right)
    changes = []
    for tables in (unaries, single(unaries)):
        before, after = (passes.sweep(tables, each) for each in (one, moved))
        changes.append(torch.cat([after.rows - before.rows, after.columns - before.columns]))
    torch.testing.assert_close(changes[1], changes[0], atol=1e-14, rtol=1e-4)
    assert float(changes[0].abs().max()) > 1e-10


def test_marginals_that_are_next_to_nothing_leave_the_others_as_they_are():
    unaries, one = incompatible(8, 5, 1), law("sum", 8, 5, 4)
    unaries.log_a[3], unaries.log_b[3] = -torch.inf, -torch.inf  # a token that can stand nowhere
    swept = passes.sweep(unaries, one)
    one.left[3] = -1e5  # as iterating leads it to
    found = passes.sweep(unaries, one)
    others = torch.arange(8) != 3
    torch.testing.assert_close(found.rows[others], swept.rows[others])
    torch.testing.assert_close(found.columns, swept.columns)
    assert found.potential == pytest.approx(swept.potential)
