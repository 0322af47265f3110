"""Passes over all cells of a pair: each reads log A and log B once, a block of rows at a time.

Nothing of size m × k is made, so what fits in memory is decided by log A and log B alone. This is the plain form, in
torch's threads on a CPU and on any other device, in the precision of the law's vectors if that is above the tables'; on
CUDA the same passes are Triton kernels (`kernels.py`), in float32, tested to give the same numbers. Sums over cells are
kept in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import torch
from torch import Tensor

from besag.errors import BesagError
from besag.joints.law import JointLaw
from besag.joints.unaries import Unaries

BLOCK_CELLS = {"cpu": 2**17, "cuda": 2**24, "mps": 2**22}  # a block and its temporaries stay in the cache of a core
LEAST = 1e-37  # a sum of float32 probabilities below this is noise
DEPTH = 300.0  # nats: a marginal that lies further than twice this below the largest is taken for one that does not

Precision: TypeAlias = Literal["double", "mixed", "single"]
F = TypeVar("F", bound=Callable[..., Any])


def _blocks(unaries: Unaries) -> Iterator[slice]:
    m, k = unaries.shape
    step = max(1, BLOCK_CELLS[unaries.log_a.device.type] // max(k, 1))
    return (slice(start, min(start + step, m)) for start in range(0, m, step))


def precision(unaries: Unaries) -> Precision:
    """What an iteration is solved in: float64; tables in float32 and all else in float64; or float32, by kernels."""
    from besag.joints import kernels

    if unaries.log_a.dtype == torch.float64:
        return "double"
    return "single" if unaries.log_a.is_cuda and kernels.AVAILABLE else "mixed"


def on_device(plain: F) -> F:
    """Use the Triton kernel of the same name where the numbers are float32 on CUDA."""

    def chosen(unaries: Unaries, *args: Any, **kwargs: Any) -> Any:
        if precision(unaries) == "single":
            from besag.joints import kernels

            return getattr(kernels, plain.__name__)(unaries, *args, **kwargs)
        return plain(unaries, *args, **kwargs)

    chosen.__doc__, chosen.__name__, chosen.plain = plain.__doc__, plain.__name__, plain  # type: ignore[attr-defined]
    return chosen  # type: ignore[return-value]


@on_device
def marginals(unaries: Unaries, law: JointLaw) -> tuple[Tensor, Tensor]:
    """log Σ_y q(x, y), (m,), and log Σ_x q(x, y), (k,); whatever the total is."""
    rows = torch.empty_like(law.row)
    columns = torch.full_like(law.column, -torch.inf)
    for at in _blocks(unaries):
        cells = law.cells(unaries, at)  # (r, k)
        rows[at] = torch.logsumexp(cells, 1)
        columns = torch.logaddexp(columns, torch.logsumexp(cells, 0))
    return rows, columns


def marginal_a(unaries: Unaries, law: JointLaw) -> Tensor:
    """log Σ_y q(x, y) alone, (m,), which costs half of both."""
    if precision(unaries) == "single":  # where both cost one reading
        return marginals(unaries, law)[0]
    return torch.cat([torch.logsumexp(law.cells(unaries, at), 1) for at in _blocks(unaries)])


def marginal_b(unaries: Unaries, law: JointLaw) -> Tensor:
    """log Σ_x q(x, y) alone, (k,)."""
    if precision(unaries) == "single":  # where both cost one reading
        return marginals(unaries, law)[1]
    columns = torch.full_like(law.column, -torch.inf)
    for at in _blocks(unaries):
        columns = torch.logaddexp(columns, torch.logsumexp(law.cells(unaries, at), 0))
    return columns


class Sweep(NamedTuple):
    rows: Tensor  # (m,) log Σ_y r·σ(right − left)
    columns: Tensor  # (k,) log Σ_x r·σ(left − right)
    potential: float  # −Σ r·h(left, right)


@on_device
def sweep(unaries: Unaries, law: JointLaw) -> Sweep:
    """One reading for Arnold-Gokhale: both marginals of r·e^h and the objective's share of h, r = A·e^column + B·e^row.

    The marginals are left + rows and right + columns. Written this way the sums are near 1 at the fixed point, so they
    can be taken in probability space though a marginal may be as small as 1e-60. r, which no step changes, is rounded
    as the tables are; what steps change is float64, and e^(left − right) a product of two vectors.
    """
    assert law.left is not None
    assert law.right is not None
    top = torch.maximum(law.left.max(), law.right.max()) - DEPTH  # so that no product leaves what a float64 holds
    left, right = ((end.double() - top).clamp_min(-DEPTH) for end in (law.left, law.right))
    up, down = left.exp(), (-right).exp()
    rows, columns = torch.empty_like(left), torch.zeros_like(right)
    row, column = law.row.to(unaries.log_a.dtype), law.column.to(unaries.log_a.dtype)
    potential, buffers = 0.0, None  # made once: fresh memory for every block would cost as much as the exponentials
    for at in _blocks(unaries):
        size = at.stop - at.start, len(right)
        buffers = (unaries.log_a.new_empty(2, *size), left.new_empty(4, *size)) if buffers is None else buffers
        (a, b), (r, e, whole, part) = (each[:, : size[0]] for each in buffers)
        torch.add(unaries.log_a[at], column, out=a).exp_()
        torch.add(unaries.log_b[at], row[at][:, None], out=b).exp_()
        torch.add(a, b, out=r)
        torch.add(torch.mul(up[at][:, None], down, out=e), 1, out=whole)  # 1 + e^gap, and h = left − log(1 + e^gap)
        rows[at] = torch.div(r, whole, out=part).sum(1)
        columns += part.mul_(e).sum(0)
        potential += float(whole.log_().mul_(r).sum() - (left[at] + top) @ r.sum(1))
    return Sweep(rows.clamp_min(LEAST).log(), columns.clamp_min(LEAST).log(), potential)


@on_device
def total_variation(unaries: Unaries, first: JointLaw, second: JointLaw) -> float:
    """½ Σ |q − q'| of two normalised laws."""
    total = 0.0
    for at in _blocks(unaries):
        difference = first.cells(unaries, at).exp() - second.cells(unaries, at).exp()
        total += float(difference.abs().sum(dtype=torch.float64))
    return total / 2


@on_device
def count_above(unaries: Unaries, law: JointLaw, threshold: float) -> int:
    """How many cells have log q above the threshold."""
    return sum(int((law.cells(unaries, at) > threshold).sum()) for at in _blocks(unaries))


class Divergences(NamedTuple):
    """How far the conditionals of q are from A and B, for every context, in nats; and the entropy of q."""

    forward_a: Tensor  # (k,) KL(A(·|y) ‖ q(·|y))
    reverse_a: Tensor  # (k,) KL(q(·|y) ‖ A(·|y))
    jsd_a: Tensor  # (k,) Jensen-Shannon divergence of the two
    forward_b: Tensor  # (m,) the same of B(·|x) and q(·|x)
    reverse_b: Tensor  # (m,)
    jsd_b: Tensor  # (m,)
    entropy: float  # −Σ q log q


@on_device
def divergences(unaries: Unaries, law: JointLaw, log_u: Tensor, log_v: Tensor) -> Divergences:
    """`law` is normalised and has the marginals log_u, log_v."""
    of_a = torch.zeros(3, len(log_v), dtype=torch.float64, device=log_v.device)
    of_b = torch.zeros(3, len(log_u), dtype=torch.float64, device=log_u.device)
    entropy = 0.0
    for at in _blocks(unaries):
        q = law.cells(unaries, at)  # (r, k)
        entropy -= float(_times(q.exp(), q).sum(dtype=torch.float64))
        for into, axis, p, given in (
            (of_a, 0, unaries.log_a[at], q - log_v),
            (of_b[:, at], 1, unaries.log_b[at], q - log_u[at][:, None]),
        ):
            into += torch.stack(_compare(p, given, axis))
    given_b, given_a = of_a.clamp_min(0).to(log_v.dtype), of_b.clamp_min(0).to(log_u.dtype)
    return Divergences(given_b[0], given_b[1], given_b[2], given_a[0], given_a[1], given_a[2], entropy)


def _compare(p: Tensor, q: Tensor, axis: int) -> tuple[Tensor, Tensor, Tensor]:
    """Forward and reverse KL and Jensen-Shannon divergence of e^p and e^q, summed over an axis.

    With d = p − q, log(2·e^p / (e^p + e^q)) = log 2 − log(1 + e⁻ᵈ): finite on the side that has the mass.
    """
    exp_p, exp_q, d = p.exp(), q.exp(), p - q
    forward, reverse = _times(exp_p, d).sum(axis), -_times(exp_q, d).sum(axis)
    shared = torch.log1p(d.abs().neg_().exp_()).neg_().add_(math.log(2))
    mine, theirs = _times(exp_p, shared + d.clamp_max(0)), _times(exp_q, shared - d.clamp_min(0))
    return forward, reverse, mine.add_(theirs).sum(axis) / 2


def _times(probability: Tensor, log: Tensor) -> Tensor:
    """probability · log, which is 0 where the probability is (even when the log is infinite)."""
    return torch.where(probability > 0, probability * log, 0.0)


@on_device
def incompatibility(unaries: Unaries) -> float:
    """Arnold and Press: the mean over cells of (log C + log C.. − log C_x. − log C_.y)², C = A/B; 0 iff compatible."""
    rows = torch.empty_like(unaries.hidden_a)
    columns = torch.full_like(unaries.hidden_b, -torch.inf)
    for at in _blocks(unaries):
        ratio = _ratio(unaries, at)
        rows[at] = torch.logsumexp(ratio, 1)
        columns = torch.logaddexp(columns, torch.logsumexp(ratio, 0))
    whole, total = torch.logsumexp(rows, 0), 0.0
    for at in _blocks(unaries):
        deviation = _ratio(unaries, at) + whole - rows[at][:, None] - columns
        total += float(deviation.square().sum(dtype=torch.float64))
    return total / (unaries.shape[0] * unaries.shape[1])


def _ratio(unaries: Unaries, at: slice) -> Tensor:
    ratio = unaries.log_a[at] - unaries.log_b[at]
    if not bool(ratio.isfinite().all()):
        raise BesagError("compatibility is measured on positive conditionals, and one here is 0")
    return ratio


def ratio_means(unaries: Unaries, row: Tensor, column: Tensor) -> tuple[Tensor, Tensor]:
    """The additive fit of D = log A − log B by weights row(x)·column(y): Σ_y column·D, (m,), and Σ_x row·D, (k,).

    Both sum to 1; the mean of all cells is left with the first. Not finite where a conditional is 0.
    """
    rows, columns = torch.empty_like(row), torch.zeros_like(column)
    for at in _blocks(unaries):
        ratio = (unaries.log_a[at] - unaries.log_b[at]).double()
        rows[at] = ratio @ column
        columns += row[at] @ ratio
    return rows, columns - row @ rows


def ratio_rest(unaries: Unaries, of_a: Tensor, of_b: Tensor, row: Tensor, column: Tensor) -> float:
    """Σ row·column·(D − of_a(x) − of_b(y))² over cells where D is finite, per weight of those."""
    squares, weight = 0.0, 0.0
    for at in _blocks(unaries):
        rest = (unaries.log_a[at] - unaries.log_b[at]).double() - of_a[at][:, None] - of_b
        share = torch.where(rest.isfinite(), row[at][:, None] * column, 0.0)
        squares += float((share * rest.nan_to_num(0.0, 0.0, 0.0).square()).sum())
        weight += float(share.sum())
    return squares / weight


def top(unaries: Unaries, law: JointLaw, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The `count` likeliest cells, likeliest first: log q, row, column."""
    m, k = unaries.shape
    count = min(count, m * k)
    best = torch.empty(0, dtype=law.row.dtype, device=law.row.device)
    where = torch.empty(0, dtype=torch.long, device=law.row.device)
    for at in _blocks(unaries):
        cells = law.cells(unaries, at).flatten()
        values, places = cells.topk(min(count, len(cells)))
        best, where = torch.cat([best, values]), torch.cat([where, places + at.start * k])
        best, order = best.sort(descending=True, stable=True)
        best, where = best[:count], where[order][:count]
    return best, where // k, where % k
