"""The Triton kernels against the plain passes: on CUDA where there is one, else in Triton's interpreter on the CPU."""

from __future__ import annotations

import inspect
import os
import sys

import pytest
import torch
from torch import Tensor

from besag.errors import BesagError
from besag.joints import kernels, passes
from besag.joints.law import JointLaw
from besag.joints.registry import construction
from besag.joints.unaries import Unaries

PASSES = ("marginals", "sweep", "total_variation", "count_above", "divergences", "incompatibility")
KINDS = ("independent", "a", "b", "product", "mean", "mixture", "sum")

# Triton decides at its own import whether to interpret.
if kernels.AVAILABLE and not torch.cuda.is_available() and "triton" not in sys.modules:
    os.environ["TRITON_INTERPRET"] = "1"
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"

runs = pytest.mark.skipif(
    not kernels.AVAILABLE or (DEVICE == "cpu" and not INTERPRETED),
    reason="the kernels need Triton, and CUDA or TRITON_INTERPRET=1",
)
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # the interpreter is numpy, which warns of log 0
]


@pytest.fixture(params=[(21, 43), (24, 64)], ids=["ragged", "even"])
def shape(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Small tables, cut so finely that several programs share their rows and their columns."""
    monkeypatch.setattr(kernels, "CUT", kernels.Cut(STRIP=16, HEIGHT=8, WIDTH=32, num_warps=4))
    monkeypatch.setattr(kernels, "CUT_DIVERGENCES", kernels.Cut(STRIP=16, HEIGHT=4, WIDTH=32, num_warps=4))
    return request.param


def _unaries(m: int, k: int, seed: int = 0) -> Unaries:
    """Sharp conditionals, among them tokens that no context allows (1e-60) and a cell that leaves nothing to others."""
    noise = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(m, k, generator=noise) * 4 for _ in range(2))
    a[m // 2], b[:, k // 3] = -140.0, -140.0
    a[m // 3, k // 2] = b[m // 3, k // 2] = 90.0
    hidden_a, hidden_b = torch.randn(m, generator=noise), torch.randn(k, generator=noise)
    tensors = [torch.log_softmax(a, 0), torch.log_softmax(b, 1), torch.logsumexp(a, 0), torch.logsumexp(b, 1)]
    tensors += [torch.log_softmax(hidden_a, 0), torch.log_softmax(hidden_b, 0)]
    plain = Unaries.of(a.exp(), b.exp())
    return Unaries(*(each.to(DEVICE) for each in tensors), plain.ids_a, plain.ids_b)


def _law(kind: str, unaries: Unaries, seed: int = 1) -> JointLaw:
    """A normalised law of this kind with vectors of no meaning; those of "sum" are as wide apart as AG's may be."""
    m, k = unaries.shape
    noise = torch.Generator().manual_seed(seed)
    row, column, left, right = (torch.randn(size, generator=noise).to(DEVICE) for size in (m, k, m, k))
    if kind == "mixture":
        law = JointLaw("sum", row, column)
        log_z = torch.logsumexp(passes.marginals.plain(unaries, law)[0], 0)
        return JointLaw("sum", row - log_z, column - log_z)  # `scaled` would give it a left and a right
    if kind == "sum":
        left, right = 5 * left, 5 * right
        left[0], right[-1] = -140.0, -100.0
        law = JointLaw("sum", row, column, left, right)
    else:
        law = JointLaw(kind, row, column)
    return law.scaled(-torch.logsumexp(passes.marginals.plain(unaries, law)[0], 0))


def _close(found: Tensor | float, expected: Tensor | float, tolerance: float = 2e-5) -> None:
    found, expected = (torch.as_tensor(each, dtype=torch.float64).cpu() for each in (found, expected))
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", PASSES)
def test_every_kernel_is_called_as_its_plain_pass(name: str) -> None:
    kernel, plain = (inspect.signature(each) for each in (getattr(kernels, name), getattr(passes, name).plain))
    assert list(kernel.parameters.values()) == list(plain.parameters.values())


@runs
@pytest.mark.parametrize("kind", KINDS)
def test_marginals(kind: str, shape: tuple[int, int]) -> None:
    unaries = _unaries(*shape)
    law = _law(kind, unaries)
    for found, expected in zip(kernels.marginals(unaries, law), passes.marginals.plain(unaries, law), strict=True):
        _close(found, expected)


@runs
@pytest.mark.parametrize("kind", KINDS)
def test_divergences(kind: str, shape: tuple[int, int]) -> None:
    unaries = _unaries(*shape)
    law = _law(kind, unaries)
    log_u, log_v = passes.marginals.plain(unaries, law)
    expected = passes.divergences.plain(unaries, law, log_u, log_v)
    for name, found in kernels.divergences(unaries, law, log_u, log_v)._asdict().items():
        _close(found, getattr(expected, name))


@runs
@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_is_not_above_itself(kind: str, shape: tuple[int, int]) -> None:
    unaries = _unaries(*shape)
    law = _law(kind, unaries)
    cells = law.cells(unaries).flatten().sort(descending=True).values
    for rank in (0, len(cells) // 10, len(cells) // 2):
        threshold = float(cells[rank])
        assert kernels.count_above(unaries, law, threshold) == passes.count_above.plain(unaries, law, threshold) <= rank


@runs
def test_sweep(shape: tuple[int, int]) -> None:
    unaries = _unaries(*shape)
    law = _law("sum", unaries)
    found, expected = kernels.sweep(unaries, law), passes.sweep.plain(unaries, law)
    for one, other in zip(found, expected, strict=True):
        _close(one, other)
    rows, columns = passes.marginals.plain(unaries, law)  # and both are what they are said to be
    assert law.left is not None
    assert law.right is not None
    _close((law.left + found.rows)[1:], rows[1:])
    _close((law.right + found.columns)[:-1], columns[:-1])


@runs
def test_total_variation(shape: tuple[int, int]) -> None:
    unaries = _unaries(*shape)
    for first, second in (("sum", "sum"), ("product", "a"), ("mixture", "independent")):
        laws = _law(first, unaries), _law(second, unaries, seed=2)
        _close(kernels.total_variation(unaries, *laws), passes.total_variation.plain(unaries, *laws))
    assert kernels.total_variation(unaries, laws[0], laws[0]) == 0


@runs
def test_incompatibility(shape: tuple[int, int]) -> None:
    unaries = _unaries(*shape)
    _close(kernels.incompatibility(unaries), passes.incompatibility.plain(unaries))
    unaries.log_b[3, 4] = -torch.inf
    with pytest.raises(BesagError, match="one here is 0"):
        kernels.incompatibility(unaries)


@runs
@pytest.mark.parametrize("kind", ["a", "product", "mean", "mixture", "sum"])
def test_impossible_cells_stay_impossible(kind: str, shape: tuple[int, int]) -> None:
    """Conditionals of exactly 0, and a row that has nothing else: −∞ where the plain pass has it, nan nowhere."""
    unaries = _unaries(*shape)
    unaries.log_a[5, 6] = unaries.log_b[5, 6] = unaries.log_a[7] = unaries.log_b[7] = -torch.inf
    law = _law(kind, unaries)
    found, expected = kernels.marginals(unaries, law), passes.marginals.plain(unaries, law)
    assert found[0][7] == -torch.inf
    for one, other in zip(found, expected, strict=True):
        _close(one, other)
    log_u, log_v = expected
    divergences = kernels.divergences(unaries, law, log_u.clamp_min(-1e30), log_v)
    _close(divergences.reverse_a, passes.divergences.plain(unaries, law, log_u.clamp_min(-1e30), log_v).reverse_a)
    assert not any(torch.as_tensor(each).isnan().any() for each in divergences)


@runs
@pytest.mark.parametrize(("m", "k"), [(1, 1), (5, 515), (130, 3)])
def test_tiles_of_full_size(m: int, k: int) -> None:
    """Next to nothing, more columns than a tile is wide, more rows than a strip is high."""
    noise = torch.Generator().manual_seed(m)
    a, b = (torch.randn(m, k, generator=noise).exp().to(DEVICE) for _ in range(2))
    unaries = Unaries.of(a, b, a.new_ones(m), a.new_ones(k))
    law = JointLaw("sum", a.new_zeros(m), a.new_zeros(k), a.new_zeros(m), a.new_zeros(k))
    found = kernels.sweep(unaries, law)
    assert [len(part) for part in found[:2]] == [m, k]
    for one, other in zip(found, passes.sweep.plain(unaries, law), strict=True):
        _close(one, other)


@runs
def test_the_same_input_gives_the_same_bits(shape: tuple[int, int]) -> None:
    unaries = _unaries(*shape)
    law = _law("sum", unaries)
    first, second = (kernels.sweep(unaries, law) for _ in range(2))
    assert all(
        torch.equal(torch.as_tensor(one), torch.as_tensor(other)) for one, other in zip(first, second, strict=True)
    )


@runs
@pytest.mark.parametrize("name", ["ag", "stationary"])
def test_pairs_of_blocks_that_hardly_communicate_are_right_to_a_fifth(
    name: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    m, k = shape
    noise = torch.Generator().manual_seed(3)
    a, b = (torch.randn(m, k, generator=noise, dtype=torch.float64).mul(2).exp() for _ in range(2))
    for table in (a, b):
        table[: m // 2, k // 2 :] *= 1e-4
        table[m // 2 :, : k // 2] *= 1e-4
    precise, rough = (Unaries.of(a.to(DEVICE, dtype), b.to(DEVICE, dtype)) for dtype in (torch.float64, torch.float32))
    exact = construction(name).build(precise).law.cells(precise)
    monkeypatch.setattr(passes, "precision", lambda unaries: "single")
    found = construction(name).build(rough)
    assert found.status == "ok"
    off = (found.law.cells(rough).double() - exact)[exact.exp() > 1e-3].expm1().abs()
    assert 1e-5 < float(off.max()) < 0.2
