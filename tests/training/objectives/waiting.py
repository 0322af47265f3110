"""Tensors as if on a GPU: reading one on the host, or asking how many of it are true, raises `Waits`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from besag.training.network.batch import Batch, Layout

READS = {
    Tensor.item, Tensor.tolist, Tensor.cpu, Tensor.numpy, Tensor.__int__, Tensor.__float__, Tensor.__bool__,
    Tensor.__index__, Tensor.nonzero, torch.nonzero, torch.bincount, Tensor.bincount, torch.repeat_interleave,
    Tensor.repeat_interleave, Tensor.masked_select, torch.masked_select, torch.unique,
}  # fmt: skip


class Waits(AssertionError):
    """The host reads what a device has not computed yet."""


class OnDevice(Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        indices = args[1] if func is Tensor.__getitem__ and isinstance(args[1], tuple) else args[1:2]
        by_mask = func is Tensor.__getitem__ and any(
            isinstance(one, Tensor) and one.dtype == torch.bool for one in indices
        )
        if func in READS or by_mask:
            raise Waits(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


def on_device(batch: Batch) -> Batch:
    """The same batch, as after `to`: the draws are on the host, too."""

    def moved(part: Any) -> Any:
        if isinstance(part, Tensor):
            return part.as_subclass(OnDevice)
        return Layout(*map(moved, part)) if isinstance(part, Layout) else part

    return Batch(*map(moved, batch))._replace(host_draw=batch.draw.numpy().tobytes())
