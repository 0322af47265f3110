# mypy: ignore-errors
"""The passes of `passes.py` in Triton's language: what one program on a CUDA device does with its share of the cells.

Knows the forms of a law, cell by cell, and how tiles are summed; knows no tensor, no allocation and no Python value:
`kernels.py` does. Imported only where Triton is installed, and not typed: inside `@jit` it is another language.

A program owns WIDTH columns and STRIP rows, which it reads HEIGHT rows at a time. Sums over x stay in its registers
until the strip ends, sums over y are written after each tile; so both come from one reading. Every program writes to a
place of its own, in `rows` (blocks of columns, m) and `columns` (strips, k), and nothing is added atomically: the same
input gives the same bits. Outside the tables log A and log B are −∞, a probability of 0, and all vectors are 0.

The number of columns comes as quads · QUAD, so that the compiler knows when rows begin at multiples of 16 bytes. Cells
are counted in int64: a vocabulary of 50,000 has more than 2³¹ of them. What a kind of law does not use, such as
log B of kind "a", is not read: the compiler drops the load.
"""

from __future__ import annotations

import os

import triton
import triton.language as tl
from triton.language.extra import libdevice

NOTHING = tl.constexpr(float("-inf"))
LOG_2 = tl.constexpr(0.6931471805599453)
LOG2_E = tl.constexpr(1.4426950408889634)
LEAST = tl.constexpr(1.2e-38)  # below it a float32 loses its digits, and its logarithm may come out as −∞
STEEP = tl.constexpr(80.0)  # e⁻⁸⁰ is still a full float32

# One compiled kernel serves tables of any size.
jit = triton.jit(do_not_specialize=["m", "quads"])


@jit
def marginals(
    A, B, ROW, COLUMN, LEFT, RIGHT, rows, columns, m, quads,
    QUAD: tl.constexpr, KIND: tl.constexpr, STRIP: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    k = quads * QUAD
    y = own_columns(WIDTH)
    column, right = vector(COLUMN, y, k), vector(RIGHT, y, k)
    over_x = tl.full((WIDTH,), NOTHING, tl.float32)
    for start in range(0, STRIP, HEIGHT):
        x = own_rows(start, STRIP, HEIGHT)
        a, b = table(A, x, y, m, k), table(B, x, y, m, k)
        q = cell(a, b, vector(ROW, x, m), column, vector(LEFT, x, m), right, KIND)
        q = tl.where(inside(x, y, m, k), q, NOTHING)  # (HEIGHT, WIDTH)
        tl.store(line(rows, 0, m) + x, log_sum(q, 1), mask=x < m)
        over_x = log_add(over_x, log_sum(q, 0))
    tl.store(line(columns, 1, k) + y, over_x, mask=y < k)


@jit
def sweep(
    A, B, ROW, COLUMN, LEFT, RIGHT, LEFT_REST, RIGHT_REST, rows, columns, potentials, m, quads,
    QUAD: tl.constexpr, STRIP: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Left and right come in two floats each, what one can hold and the rest: only their difference enters a cell."""
    k = quads * QUAD
    y = own_columns(WIDTH)
    column, right = vector(COLUMN, y, k)[None, :], vector(RIGHT, y, k)[None, :]
    right_rest = vector(RIGHT_REST, y, k)[None, :]
    over_x = tl.zeros((WIDTH,), tl.float32)
    potential = tl.zeros((WIDTH,), tl.float64)
    for start in range(0, STRIP, HEIGHT):
        x = own_rows(start, STRIP, HEIGHT)
        row, left = vector(ROW, x, m)[:, None], vector(LEFT, x, m)[:, None]
        r = exp(table(A, x, y, m, k) + column) + exp(table(B, x, y, m, k) + row)  # (HEIGHT, WIDTH)
        gap = (left - right) + (vector(LEFT_REST, x, m)[:, None] - right_rest)
        ratio = exp(-tl.minimum(tl.abs(gap), STEEP))
        large = 1 / (1 + ratio)  # r is cut into the shares σ(left − right) and σ(right − left): a large and a small one
        small = ratio * large
        potential -= tl.sum(r * (left - tl.maximum(gap, 0.0) + log(large)), 0).to(tl.float64)
        tl.store(line(rows, 0, m) + x, tl.sum(r * tl.where(gap > 0, small, large), 1), mask=x < m)
        over_x += tl.sum(r * tl.where(gap > 0, large, small), 0)
    tl.store(line(columns, 1, k) + y, over_x, mask=y < k)
    tl.store(potentials + own_number(), tl.sum(potential, 0))


@jit
def total_variation(
    A, B, ROW, COLUMN, LEFT, RIGHT, ROW_2, COLUMN_2, LEFT_2, RIGHT_2, totals, m, quads,
    QUAD: tl.constexpr, KIND: tl.constexpr, KIND_2: tl.constexpr,
    STRIP: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    k = quads * QUAD
    y = own_columns(WIDTH)
    column, right = vector(COLUMN, y, k), vector(RIGHT, y, k)
    column_2, right_2 = vector(COLUMN_2, y, k), vector(RIGHT_2, y, k)
    total = tl.zeros((WIDTH,), tl.float64)
    for start in range(0, STRIP, HEIGHT):
        x = own_rows(start, STRIP, HEIGHT)
        a, b = table(A, x, y, m, k), table(B, x, y, m, k)
        p = exp(cell(a, b, vector(ROW, x, m), column, vector(LEFT, x, m), right, KIND))
        q = exp(cell(a, b, vector(ROW_2, x, m), column_2, vector(LEFT_2, x, m), right_2, KIND_2))
        total += tl.sum(tl.where(inside(x, y, m, k), tl.abs(p - q), 0.0), 0).to(tl.float64)
    tl.store(totals + own_number(), tl.sum(total, 0))


@jit
def count_above(
    A, B, ROW, COLUMN, LEFT, RIGHT, threshold, counts, m, quads,
    QUAD: tl.constexpr, KIND: tl.constexpr, STRIP: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    k = quads * QUAD
    y = own_columns(WIDTH)
    column, right = vector(COLUMN, y, k), vector(RIGHT, y, k)
    count = tl.zeros((WIDTH,), tl.int32)
    for start in range(0, STRIP, HEIGHT):
        x = own_rows(start, STRIP, HEIGHT)
        a, b = table(A, x, y, m, k), table(B, x, y, m, k)
        q = cell(a, b, vector(ROW, x, m), column, vector(LEFT, x, m), right, KIND)
        count += tl.sum(((q > threshold) & inside(x, y, m, k)).to(tl.int32), 0)
    tl.store(counts + own_number(), tl.sum(count, 0))


@jit
def divergences(
    A, B, ROW, COLUMN, LEFT, RIGHT, U, V, rows, columns, entropies, m, quads,
    QUAD: tl.constexpr, KIND: tl.constexpr, STRIP: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    k = quads * QUAD
    y = own_columns(WIDTH)
    column, right, log_v = vector(COLUMN, y, k), vector(RIGHT, y, k), vector(V, y, k)[None, :]
    forward = tl.zeros((WIDTH,), tl.float32)
    reverse = tl.zeros((WIDTH,), tl.float32)
    jsd = tl.zeros((WIDTH,), tl.float32)
    entropy = tl.zeros((WIDTH,), tl.float64)
    all_rows, all_columns = tl.num_programs(0).to(tl.int64) * m, tl.num_programs(1).to(tl.int64) * k
    for start in range(0, STRIP, HEIGHT):
        x = own_rows(start, STRIP, HEIGHT)
        a, b = table(A, x, y, m, k), table(B, x, y, m, k)
        q = cell(a, b, vector(ROW, x, m), column, vector(LEFT, x, m), right, KIND)
        q = tl.where(inside(x, y, m, k), q, NOTHING)  # (HEIGHT, WIDTH)
        entropy -= tl.sum(times(exp(q), q), 0).to(tl.float64)
        of_a, of_b = compare(a, q - log_v), compare(b, q - vector(U, x, m)[:, None])
        forward += tl.sum(of_a[0], 0)
        reverse += tl.sum(of_a[1], 0)
        jsd += tl.sum(of_a[2], 0)
        into = line(rows, 0, m) + x  # of (3, blocks of columns, m)
        tl.store(into, tl.sum(of_b[0], 1), mask=x < m)
        tl.store(into + all_rows, tl.sum(of_b[1], 1), mask=x < m)
        tl.store(into + 2 * all_rows, tl.sum(of_b[2], 1), mask=x < m)
    into = line(columns, 1, k) + y  # of (3, strips, k)
    tl.store(into, forward, mask=y < k)
    tl.store(into + all_columns, reverse, mask=y < k)
    tl.store(into + 2 * all_columns, jsd, mask=y < k)
    tl.store(entropies + own_number(), tl.sum(entropy, 0))


@jit
def deviations(
    A, B, ROW, COLUMN, totals, m, quads,
    QUAD: tl.constexpr, STRIP: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Σ (log A − log B − row − column)², the second reading of the Arnold-Press measure."""
    k = quads * QUAD
    y = own_columns(WIDTH)
    column = vector(COLUMN, y, k)[None, :]
    total = tl.zeros((WIDTH,), tl.float64)
    for start in range(0, STRIP, HEIGHT):
        x = own_rows(start, STRIP, HEIGHT)
        deviation = table(A, x, y, m, k) - table(B, x, y, m, k) - vector(ROW, x, m)[:, None] - column
        total += tl.sum(tl.where(inside(x, y, m, k), deviation * deviation, 0.0), 0).to(tl.float64)
    tl.store(totals + own_number(), tl.sum(total, 0))


@jit
def cell(a, b, row, column, left, right, KIND: tl.constexpr):
    """`JointLaw.cells` of one tile, (HEIGHT, WIDTH). "mixture": "sum" of no left and right, "ratio" log A − log B."""
    row, column = row[:, None], column[None, :]
    if KIND == "independent":
        q = row + column
    elif KIND == "a":
        q = a + column
    elif KIND == "b":
        q = b + row
    elif KIND == "product":
        q = (a + column) + (b + row)
    elif KIND == "mean":
        q = 0.5 * (a + b) + row + column
    elif KIND == "mixture":
        q = log_add(a + column, b + row) - LOG_2
    elif KIND == "sum":
        q = log_add(a + column, b + row) + harmonic(left[:, None], right[None, :])
    else:
        tl.static_assert(KIND == "ratio")
        q = a - b
    return q


@jit
def compare(p, q):
    """Cell by cell: what is summed to the forward and reverse KL and the Jensen-Shannon divergence of e^p and e^q."""
    exp_p, exp_q = exp(p), exp(q)
    mean = log(exp_p + exp_q) - LOG_2
    jsd = (times(exp_p, p - mean) + times(exp_q, q - mean)) / 2
    return times(exp_p, p - q), times(exp_q, q - p), jsd


@jit
def times(probability, log):
    """probability · log, which is 0 where the probability is (even when the log is infinite)."""
    return tl.where(probability > LEAST, probability * log, 0.0)


@jit
def log_sum(q, AXIS: tl.constexpr):
    """log Σ e^q over an axis of a tile; −∞ where all are."""
    top = tl.max(q, AXIS)
    top = tl.where(top == NOTHING, 0.0, top)
    return top + log(tl.sum(exp(q - tl.expand_dims(top, AXIS)), AXIS))


@jit
def log_add(s, t):
    return tl.maximum(s, t) + softness(s, t)


@jit
def harmonic(s, t):
    return tl.minimum(s, t) - softness(s, t)


@jit
def softness(s, t):
    """log(1 + e^−|s − t|), of two −∞ too."""
    return log(1 + exp(-tl.where(s == t, 0.0, tl.abs(s - t))))


@jit
def exp(x):
    return tl.exp2(x * LOG2_E)


# Exponentials and logarithms of the special function units, one instruction each where tl.log takes twenty. Triton's
# interpreter does not have that logarithm.
if os.environ.get("TRITON_INTERPRET") == "1":

    @jit
    def log(x):
        return tl.log(x)
else:

    @jit
    def log(x):
        return libdevice.fast_logf(x)


@jit
def table(pointer, x, y, m, k):
    cells = x.to(tl.int64)[:, None] * k + y[None, :]
    return tl.load(pointer + cells, mask=inside(x, y, m, k), other=NOTHING)


@jit
def vector(pointer, at, end):
    return tl.load(pointer + at, mask=at < end, other=0.0)


@jit
def inside(x, y, m, k):
    return (x[:, None] < m) & (y[None, :] < k)


@jit
def line(pointer, AXIS: tl.constexpr, length):
    """Where this program's line of a (programs along the axis, length) buffer begins."""
    return pointer + tl.program_id(AXIS).to(tl.int64) * length


@jit
def own_columns(WIDTH: tl.constexpr):
    return tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)


@jit
def own_rows(start, STRIP: tl.constexpr, HEIGHT: tl.constexpr):
    return tl.program_id(1) * STRIP + start + tl.arange(0, HEIGHT)


@jit
def own_number():
    return tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
