"""Budget of forward passes for one target: options that spread it over the target, and the passes of each step.

    fitted(kernel, T, columns)    the same sampler with options for at most T passes, and whether one of them is kept
                                  back to fill what is still masked after the others
    step_passes(kernel, state)    upper bound on the passes that the next step spends on each chain

`fitted` only spreads the passes; `refinement` keeps count of those that were made and stops a chain in time.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from besag.arrays import Ints
from besag.engine import Engine
from besag.samplers.kernel import AnyState, Canvas, Kernel, hidden, refuse_no_places
from besag.samplers.kernels.adaptive import AGAIN, Adaptive
from besag.samplers.kernels.ancestral import Ancestral
from besag.samplers.kernels.block_diffusion import BlockDiffusion
from besag.samplers.kernels.block_gibbs import BlockGibbs
from besag.samplers.kernels.energy import text_places
from besag.samplers.kernels.g_ipd import GIpd
from besag.samplers.kernels.grouped import Grouped
from besag.samplers.kernels.mask_predict import USUAL, MaskPredict
from besag.samplers.kernels.metropolis import Metropolis
from besag.samplers.kernels.refine import Refine
from besag.samplers.kernels.remask import Remask
from besag.samplers.kernels.semi_ar import SemiAr
from besag.samplers.kernels.speculative import Speculative
from besag.samplers.kernels.spindle import Spindle
from besag.samplers.kernels.tempering import Tempering

OPTION = ("iterations", "rounds", "grid")  # names that a sampler may have for its number of passes


class Fitted(NamedTuple):
    """A sampler whose options suit a budget."""

    kernel: Kernel
    keeps_last: bool = False  # one pass is kept back, to fill what is still masked after the others


@dataclass(frozen=True)
class MaskPredictAtMost(MaskPredict):
    """Mask-predict with at most `iterations` passes, and at most one for each position of the chain itself."""

    def check(self, canvas: Canvas) -> None:
        refuse_no_places(canvas)

    def done(self, state: AnyState) -> bool:
        return False  # the caller limits the steps, so that no step waits for the device

    def _totals(self, canvas: Canvas) -> Tensor:
        return canvas.free.sum(1).clamp(max=self.iterations or USUAL)


def fitted(engine: Engine, kernel: Kernel, passes: int | None, columns: Ints) -> Fitted:
    """Return the sampler for a target with editable positions in `columns` (n,), and at most `passes` for it."""
    if isinstance(kernel, MaskPredict):
        own = {field.name: getattr(kernel, field.name) for field in fields(kernel)}
        return Fitted(MaskPredictAtMost(**{**own, "iterations": passes or kernel.iterations}))
    kernel = _in_smaller_blocks(kernel, len(columns))
    if passes is None or not kernel.ends:
        return Fitted(kernel)
    match kernel:
        case Refine():
            return Fitted(replace(kernel, iterations=max(1, passes - kernel.remask_stutter)))
        case Adaptive(budget=None):
            rounds = max(1, passes - AGAIN * kernel.refine)
            return Fitted(replace(kernel, rounds=rounds), kernel.refine > 0 or _measures(kernel))
        case Adaptive():
            return Fitted(kernel, True)
        case BlockDiffusion(least=None):
            blocks = len(np.unique(columns // kernel.block_size(engine)))
            return Fitted(replace(kernel, grid=max(1, passes // blocks)), blocks > passes)
        case GIpd():
            groups = min(kernel.groups, len(columns))
            return Fitted(replace(kernel, rounds=max(1, passes // groups)), groups > passes)
        case SemiAr(inner="left_to_right"):
            windows = _windows(kernel, int(columns[-1] - columns[0]) + 1)
            return Fitted(replace(kernel, grid=max(1, passes // windows)), windows > passes)
        case BlockDiffusion() | SemiAr():  # which reveal by confidence, or one by one
            return Fitted(kernel, True)
        case Grouped():
            return Fitted(replace(kernel, size=-(-len(columns) // passes)))
        case Speculative():
            return Fitted(replace(kernel, ahead=min(kernel.ahead or passes, max(1, passes - 1))), True)
        case Ancestral() | Remask() | Spindle():
            return Fitted(replace(kernel, grid=passes))
    named: dict[str, Any] = {field.name: passes for field in fields(kernel) if field.name in OPTION}
    return Fitted(replace(kernel, **named), True)


def _in_smaller_blocks(kernel: Kernel, places: int) -> Kernel:
    """Return a sampler that moves no more positions together than there are: a restart may leave few."""
    match kernel:
        case BlockGibbs() if places < kernel.size:
            return replace(kernel, size=places, inner="sequential", metropolis=False)
        case Metropolis() | Tempering() if kernel.move != "single" and places < (kernel.size or 2):
            return replace(kernel, move="single", size=None)
    return kernel


def _windows(kernel: SemiAr, length: int) -> int:
    """Return the number of windows that a text of this length is filled in, at most."""
    stride = kernel.stride or max(1, kernel.window // 2)
    return 1 + -(-max(0, length - kernel.window) // stride)


def _measures(kernel: Adaptive) -> bool:
    """Return whether a step of `adaptive` spends more than one pass."""
    return kernel.signal != "distance" or kernel.pairs == "ag"


def step_passes(engine: Engine, kernel: Kernel, state: AnyState) -> int | Tensor:
    """Return an upper bound on the passes of the next step, `init` included in the first: one number, or (C,)."""
    match kernel:
        case Speculative():
            masked = _masked(state)
            return masked if kernel.ahead is None else masked.clamp(max=kernel.ahead)
        case Refine(hide=True):
            return state.canvas.free.sum(1).cpu()
        case Adaptive() if _measures(kernel):
            return 1 + _measuring(kernel, _masked(state))
        case BlockGibbs(inner="ag"):
            return 2 * kernel.candidates + 1
        case BlockGibbs(inner="sequential"):
            return kernel.size
        case Metropolis() | Tempering():
            text = text_places(engine, state.canvas).sum(1)  # (C,) an energy is a pass for each
            first = text + _masked(state) if state.step == 0 else 0
            return (1 + text + first) * (kernel.rungs if isinstance(kernel, Tempering) else 1)
    return 1


def _masked(state: AnyState) -> Tensor:
    """(C,) how many positions are masked, on the host."""
    return hidden(state).sum(1).cpu()


def _measuring(kernel: Adaptive, masked: Tensor) -> Tensor:
    """(C,) the passes of a step of `adaptive` in addition to the one that predicts."""
    table = 2 * kernel.candidates + 1  # passes of a pair joint
    joint = table if kernel.pairs == "ag" else 0
    match kernel.signal:
        case "change":
            return joint + masked + 1
        case "information":
            return joint + table * masked * (masked - 1) // 2
        case "attention":
            return joint + torch.ones_like(masked)
    return joint + torch.zeros_like(masked)
