"""The passes of `passes.py` on CUDA: same names, same arguments, same numbers, one Triton kernel each.

Knows how the cells are cut among programs, and how what each program found is put together; the mathematics of a cell
stands in `tiles.py`. Tables are float32 and of any size. Beyond them a pass takes two buffers for what its programs
find, rows (k / WIDTH, m) and columns (m / STRIP, k): a hundredth of a table, or three hundredths for `divergences`.
Torch sums them in float64 and in one order, so that a pass repeats to the bit.

Triton is optional: where it is missing (or the device is not NVIDIA's, whose logarithm `tiles.py` uses) `AVAILABLE` is
False, and `passes.py` does the work with torch alone.
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from besag.errors import BesagError
from besag.joints.law import JointLaw
from besag.joints.passes import LEAST, Divergences, Sweep
from besag.joints.unaries import Unaries

AVAILABLE = find_spec("triton") is not None and torch.version.hip is None


class Cut(NamedTuple):
    """How much of the cells a program owns (STRIP × WIDTH), and reads at a time (HEIGHT × WIDTH)."""

    STRIP: int
    HEIGHT: int
    WIDTH: int
    num_warps: int


# Wide and flat: a warp reads 512 bytes of a row, and a thread holds all rows of its columns, so that a sum over x needs
# no other thread. 16 cells a thread take 64 to 115 registers, so that four to eight programs share a multiprocessor:
# some calculate while others wait for memory. `divergences` remembers more of each cell, so it takes half as many.
CUT = Cut(STRIP=128, HEIGHT=4, WIDTH=512, num_warps=4)
CUT_DIVERGENCES = Cut(STRIP=128, HEIGHT=2, WIDTH=512, num_warps=4)

ROUNDING = 4 * 2.0**-23  # how far two ways to round log(A·e^column + B·e^row) may lie apart, relatively


def marginals(unaries: Unaries, law: JointLaw) -> tuple[Tensor, Tensor]:
    return _marginals(unaries, law, _kind(law))


def sweep(unaries: Unaries, law: JointLaw) -> Sweep:
    """The potential stays on the device, a tensor of one float64: to ask for its value would stop the queue."""
    launch = Launch(unaries, CUT)
    rows, columns = launch.buffers()
    potentials = launch.each(torch.float64)
    rests = [_vector(end - _vector(end)) for end in (law.left, law.right) if end is not None]
    launch("sweep", *_vectors(law), *rests, rows, columns, potentials)
    over_y, over_x = (each.sum(0, dtype=torch.float64).clamp_min(LEAST).log().float() for each in (rows, columns))
    return Sweep(over_y, over_x, cast(float, potentials.sum()))


def total_variation(unaries: Unaries, first: JointLaw, second: JointLaw) -> float:
    launch = Launch(unaries, CUT)
    totals = launch.each(torch.float64)
    launch("total_variation", *_vectors(first), *_vectors(second), totals, KIND=_kind(first), KIND_2=_kind(second))
    return float(totals.sum()) / 2


def count_above(unaries: Unaries, law: JointLaw, threshold: float) -> int:
    """A threshold is mostly log q of one cell, as torch rounds it; as rounded here that cell must not be above it."""
    if law.kind == "sum":
        threshold += ROUNDING * max(1.0, abs(threshold))
    launch = Launch(unaries, CUT)
    counts = launch.each(torch.int32)
    launch("count_above", *_vectors(law), float(threshold), counts, KIND=_kind(law))
    return int(counts.sum())


def divergences(unaries: Unaries, law: JointLaw, log_u: Tensor, log_v: Tensor) -> Divergences:
    launch = Launch(unaries, CUT_DIVERGENCES)
    rows, columns = launch.buffers(3)
    entropies = launch.each(torch.float64)
    launch("divergences", *_vectors(law), _vector(log_u), _vector(log_v), rows, columns, entropies, KIND=_kind(law))
    of_a, of_b = (each.sum(1, dtype=torch.float64).clamp_min(0).float() for each in (columns, rows))  # (3, k), (3, m)
    return Divergences._make([*of_a, *of_b, float(entropies.sum())])


def incompatibility(unaries: Unaries) -> float:
    anything = JointLaw("independent", unaries.hidden_a, unaries.hidden_b)  # a ratio needs no vectors
    rows, columns = _marginals(unaries, anything, "ratio")
    launch = Launch(unaries, CUT)
    totals = launch.each(torch.float64)
    launch("deviations", rows - torch.logsumexp(rows, 0), columns, totals)
    mean = float(totals.sum()) / (unaries.shape[0] * unaries.shape[1])
    if not math.isfinite(mean):
        raise BesagError("compatibility is measured on positive conditionals, and one here is 0")
    return mean


def _marginals(unaries: Unaries, law: JointLaw, kind: str) -> tuple[Tensor, Tensor]:
    launch = Launch(unaries, CUT)
    rows, columns = launch.buffers()
    launch("marginals", *_vectors(law), rows, columns, KIND=kind)
    return torch.logsumexp(rows, 0), torch.logsumexp(columns, 0)


class Launch:
    """One run of a kernel over all cells, and the buffers that its programs write to."""

    def __init__(self, unaries: Unaries, cut: Cut) -> None:
        self.tables = (unaries.log_a.contiguous(), unaries.log_b.contiguous())
        (self.m, self.k), self.cut = unaries.shape, cut
        self.grid = (-(-self.k // cut.WIDTH), -(-self.m // cut.STRIP))
        self.device = unaries.log_a.device

    def buffers(self, *several: int) -> tuple[Tensor, Tensor]:
        """For sums over y and over x: (…, blocks of columns, m) and (…, strips, k)."""
        blocks, strips = self.grid
        return tuple(  # type: ignore[return-value]
            torch.empty(*several, *shape, device=self.device) for shape in ((blocks, self.m), (strips, self.k))
        )

    def each(self, dtype: torch.dtype) -> Tensor:
        """One number for every program."""
        return torch.empty(self.grid[0] * self.grid[1], dtype=dtype, device=self.device)

    def __call__(self, kernel: str, *arguments: Tensor | float, **constants: Any) -> None:
        from besag.joints import tiles

        quad = 4 if self.k % 4 == 0 else 1
        with torch.cuda.device_of(self.tables[0]):  # type: ignore[no-untyped-call]
            getattr(tiles, kernel)[self.grid](
                *self.tables, *arguments, self.m, self.k // quad, QUAD=quad, **constants, **self.cut._asdict()
            )


def _kind(law: JointLaw) -> str:
    return "mixture" if law.kind == "sum" and law.left is None and law.right is None else law.kind


def _vectors(law: JointLaw) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Row, column, left, right. Where only one of the last two is given the other is 0."""
    left = torch.zeros_like(law.row) if law.left is None else law.left
    right = torch.zeros_like(law.column) if law.right is None else law.right
    return _vector(law.row), _vector(law.column), _vector(left), _vector(right)


def _vector(numbers: Tensor) -> Tensor:
    return numbers.float().contiguous()
