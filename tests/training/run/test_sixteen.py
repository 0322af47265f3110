"""What is kept in 16 bits comes back within its bound, and what must be exact is."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from besag.errors import BesagError
from besag.training.run.sixteen import pack, restored, rounded, unpack

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
SHAPES = arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6)


@given(SHAPES.flatmap(lambda shape: arrays.arrays("float32", shape, elements=FLOATS)))
def test_every_number_comes_back_within_the_bound(values: Any) -> None:
    """Largest, smallest, subnormal ones and zeros in one row."""
    x = torch.from_numpy(values)
    packed = rounded(x, "x")
    assert packed["halves"].dtype == torch.float16
    back = restored(packed)
    assert back.dtype == torch.float32
    assert back.shape == x.shape
    if not x.numel():
        return
    error, largest = (back.double() - x.double()).abs(), x.double().abs().amax(-1, keepdim=True)
    bound = torch.maximum(x.double().abs() * 2.0**-11, largest * 2.0**-38) + 2.0**-149  # the last: float32's own grain
    assert bool((error <= bound).all())
    assert bool((back[x == 0] == 0).all())
    assert bool((back * x.sign() >= 0).all())
    kept = packed["halves"][x != 0]
    assert bool((kept != 0).all())
    again = restored(rounded(back, "x"))
    assert torch.equal(again, back)  # what was rounded once stays


@pytest.mark.parametrize("wrong", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_is_refused(wrong: float) -> None:
    with pytest.raises(BesagError, match=r"'momentum of weight 3' holds a number that is not finite"):
        pack(snapshot({3: {"momentum": torch.tensor([[1.0, wrong]])}}))


def snapshot(moments: dict[int, Any], averages: Any = None, weights: Any = None) -> dict[str, Any]:
    optimizer = {"state": moments, "param_groups": [1]}
    return {"objective": weights or {}, "optimizer": optimizer, "averaging": averages or {}, "progress": 5}


def test_second_moments_keep_their_roots_and_stay_above_zero() -> None:
    """Over 60 decades of a row: what a step divides by is right, and never becomes 0."""
    square = (10.0 ** -torch.arange(0, 45, dtype=torch.float64)).float()[None]
    back = unpack(pack(snapshot({0: {"square": square, "mean": -square}})))["optimizer"]["state"][0]
    near = square[0] > 1e-15
    torch.testing.assert_close(back["square"].sqrt()[0, near], square.sqrt()[0, near], rtol=2**-11, atol=0)
    assert bool((back["square"].sqrt() - square.sqrt()).abs().max() <= 2**-11)
    assert bool((back["mean"] < 0).all())


def test_averages_are_kept_as_what_they_differ_by() -> None:
    draw = torch.Generator().manual_seed(1)
    weight = torch.randn(40, 30, generator=draw)
    average = weight + 1e-3 * torch.randn(40, 30, generator=draw)
    state = snapshot(
        {}, {"layer.weight": average}, {"encoder.model.other": weight[:2], "encoder.model.layer.weight": weight}
    )
    packed = pack(state)
    assert packed["averaging"]["layer.weight"]["base"] == "encoder.model.layer.weight"
    back = unpack(packed)
    assert (
        float((back["averaging"]["layer.weight"] - average).abs().max()) < 4e-3 * 2**-11 + 2**-23
    )  # not 2⁻¹¹ of a weight
    assert torch.equal(back["objective"]["encoder.model.layer.weight"], weight)
    alone = unpack(pack(snapshot({}, {"gone.weight": average})))["averaging"]["gone.weight"]
    torch.testing.assert_close(alone, average, rtol=2**-11, atol=0)


def test_vectors_and_everything_else_are_exact() -> None:
    bias, count = torch.randn(7), torch.arange(6).view(2, 3)
    state = snapshot({2: {"mean": bias, "count": count}}, {"norm": bias}, {"norm": bias, "w": torch.randn(2, 2)})
    back = unpack(pack(state))
    assert back["optimizer"]["state"][2]["mean"] is bias
    assert back["optimizer"]["state"][2]["count"] is count
    assert back["averaging"]["norm"] is bias
    assert back["objective"] is state["objective"]
    assert (back["progress"], back["optimizer"]["param_groups"]) == (5, [1])
    assert unpack(state) == state  # one that was never packed
