"""What an optimiser and an average remember, in half the bytes: 16 bits a number, and weights as they are.

A row of a matrix is stored as float16 times a power of two of its own, chosen so that its largest entry lies in
[2¹⁴, 2¹⁵). An entry x comes back as x' with |x' − x| ≤ max(2⁻¹¹ |x|, 2⁻³⁸ max|row|): eight times as near as bfloat16,
over eight decades of each row. 0 stays 0, and what is not 0 does not become it.

    momentum, first moment      as they are
    second moment v             √v, which is what a step divides by
    average a of a weight w     a − w, which is small where a is not

Vectors (norms, biases) and everything else stay exact. Knows how a snapshot of a run is laid out, and no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from besag.errors import BesagError, quoted

HALVES, EXPONENTS, OF, BASE = "halves", "exponents", "of", "base"
TOP = 15  # a row's largest entry lies below two to this
SMALLEST = 2.0**-24  # above 0 in float16
LARGEST = torch.finfo(torch.float32).max


def rounded(values: Tensor, name: str) -> dict[str, Tensor]:  # (…, C) -> (…, C), (…)
    """A float32 tensor in 16 bits; `name` is what an error calls it."""
    values = values.detach().cpu()
    if not bool(torch.isfinite(values).all()):
        raise BesagError(f"{quoted(name)} holds a number that is not finite, which 16 bits cannot keep")
    exponents = torch.frexp(values.abs().amax(-1) if values.numel() else values.sum(-1))[1]
    scaled = values.double() * torch.pow(2.0, (TOP - exponents).double()).unsqueeze(-1)  # exact
    halves = scaled.half()
    lost = (halves == 0) & (values != 0)
    halves = torch.where(lost, torch.sign(values).half() * SMALLEST, halves)
    return {HALVES: halves, EXPONENTS: exponents.to(torch.int16)}


def restored(packed: Mapping[str, Any]) -> Tensor:
    scale = torch.pow(2.0, packed[EXPONENTS].double() - TOP).unsqueeze(-1)
    values: Tensor = packed[HALVES].double() * scale
    return values.clamp(-LARGEST, LARGEST).float()


def pack(state: Mapping[str, Any]) -> dict[str, Any]:
    """A snapshot of a run in which what may be rounded is."""
    moments = {
        number: {name: _moment(value, name, number) for name, value in held.items()}
        for number, held in state["optimizer"]["state"].items()
    }
    weights = state["objective"]
    averages = {name: _average(value, name, weights) for name, value in state["averaging"].items()}
    return {**state, "optimizer": {**state["optimizer"], "state": moments}, "averaging": averages}


def unpack(state: Mapping[str, Any]) -> dict[str, Any]:
    """The snapshot again; one that was never packed is returned as it is."""
    moments = {
        number: {name: _unpacked(value, {}) for name, value in held.items()}
        for number, held in state["optimizer"]["state"].items()
    }
    averages = {name: _unpacked(value, state["objective"]) for name, value in state["averaging"].items()}
    return {**state, "optimizer": {**state["optimizer"], "state": moments}, "averaging": averages}


def _moment(value: Any, name: str, number: object) -> Any:
    if not _is_rounded(value):
        return value
    if name == "square":
        return {OF: "root", **rounded(value.sqrt(), f"{name} of weight {number}")}
    return {OF: "value", **rounded(value, f"{name} of weight {number}")}


def _average(value: Any, name: str, weights: Mapping[str, Tensor]) -> Any:
    if not _is_rounded(value):
        return value
    base = next((key for key in weights if f".{key}".endswith(f".{name}") and weights[key].shape == value.shape), None)
    if base is None:
        return {OF: "value", **rounded(value, f"average of {name}")}
    return {OF: "difference", BASE: base, **rounded(value.cpu() - weights[base].cpu().float(), f"average of {name}")}


def _is_rounded(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.float32 and value.ndim >= 2


def _unpacked(value: Any, weights: Mapping[str, Tensor]) -> Any:
    if not isinstance(value, Mapping):
        return value
    found = restored(value)
    if value[OF] == "root":
        return found.square()
    return found if value[OF] == "value" else found + weights[value[BASE]].float()
