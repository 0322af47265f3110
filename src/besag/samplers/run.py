"""Steps made one after the other, and what is kept of them.

    walk(engine, kernel, canvas, noise, …)      state after state
    Trace                                       what the steps told, (C, S) each, and the sequences kept on the way

A state is saved and read back as plain arrays, so that a chain goes on where it stopped as if it never had: noise is a
function of the step's number. Knows no text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from besag.checks import MOST_STEPS, whole_number
from besag.conditionals.contract import Given
from besag.engine import Engine
from besag.errors import BesagError, TooLong
from besag.files.whole import write_arrays
from besag.samplers.kernel import SWEEPS, AnyState, Canvas, Info, Kernel, Noise

TOGETHER = 1024  # steps whose numbers are stacked: a tensor takes a hundred times the memory of its few numbers
LOOK = 64  # steps between two looks for NaN, each of which waits for the device


def walk(
    engine: Engine,
    kernel: Kernel,
    canvas: Canvas,
    noise: Noise,
    steps: int | None = None,
    state: Any = None,
) -> Iterator[tuple[Any, Info | None]]:
    """The state at the start (with no info), then after each step, until `steps` are made or a decoder is done.

    `state` goes on from an earlier one. A chain makes SWEEPS steps for each free place if it is not told how many.
    """
    if steps is not None:
        whole_number(steps, "steps", right="make at least 1 step.", most=MOST_STEPS)
    kernel.check(canvas)
    limit = engine.conditionals.max_length
    if limit is not None and canvas.ids.shape[1] > limit and not kernel.long:
        raise TooLong(
            f"{canvas.ids.shape[1]} tokens are to be sampled together, and {engine.conditionals.name!r} sees {limit}: "
            "take fewer, or the kernel 'semi_ar', which moves a window over long text."
        )
    if steps is None and not kernel.ends:
        steps = SWEEPS * int(canvas.free.sum(1).max())
    if state is None:
        state = kernel.init(engine, noise, canvas)
    yield state, None
    while (steps is None or state.step < steps) and not kernel.done(state):
        engine.check_wanted()  # here too: a step may need no pass
        state, info = kernel.step(engine, noise, state)
        if state.step % LOOK == 0:
            engine.check()
        yield state, info
    engine.check()


def rows_of(state: Any, which: Tensor) -> Any:
    """The state of some of its chains, (C,) bool: they go on as they would have beside the others."""

    def kept(part: Any) -> Any:
        if isinstance(part, Canvas):
            return part.rows(which.to(part.ids.device))
        if isinstance(part, Tensor) and part.ndim and len(part) == len(state.ids):
            return part[which.to(part.device)]
        return part

    return type(state)(*map(kept, state))


@dataclass
class Trace:
    """What is kept of a run: numbers of every step, sequences of every `every`-th."""

    every: int | None
    told: dict[str, list[Tensor]] = field(default_factory=dict)  # (C,) a step, of the last steps
    blocks: dict[str, list[NDArray[Any]]] = field(default_factory=dict)  # (C, TOGETHER) each, of the steps before them
    steps: list[int] = field(default_factory=list)  # the steps whose sequences are kept
    ids: list[Tensor] = field(default_factory=list)  # (C, L) each

    def add(self, state: AnyState, info: Info | None) -> None:
        if info is not None:
            for name, value in {"changed": info.changed, "passes": info.passes, **info.more}.items():
                told = self.told.setdefault(name, [])
                told.append(value)
                if len(told) == TOGETHER:
                    self.blocks.setdefault(name, []).append(_stacked(told))
                    told.clear()
        if self.every is not None and state.step % self.every == 0:
            self.steps.append(state.step)
            self.ids.append(state.ids)

    def numbers(self) -> dict[str, NDArray[Any]]:
        """(C, S) each, by name."""
        blocks = {
            name: [*self.blocks.get(name, ()), *([_stacked(last)] if last else [])] for name, last in self.told.items()
        }
        return {name: np.concatenate(own, 1) for name, own in blocks.items()}

    def sequences(self) -> NDArray[np.int64]:
        """(C, K, L) at the steps that were kept."""
        return torch.stack(self.ids, 1).numpy(force=True)


def _stacked(values: list[Tensor]) -> NDArray[Any]:
    return torch.stack(values, 1).numpy(force=True)


# ---- a state on disk


def save(state: Any, path: str | Path, about: dict[str, Any]) -> None:
    """Write a state as arrays, with what it is the state of; whole, or not at all. None: no step is made yet."""
    write_arrays(path, about, dict(_arrays(state, "")))


def read(path: str | Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays of a state that was saved, and what it is the state of."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as found:  # which leaves a damaged one open
            arrays = dict(found)
        if arrays.keys() != {"about"} and (missing := {"about", ".step", ".ids"} - arrays.keys()):
            raise ValueError(f"it has no {', '.join(sorted(missing))}")
        return arrays, dict(json.loads(str(arrays["about"])))
    except Exception as problem:  # a damaged file fails as a zip, an array or JSON, in many ways
        raise BesagError(
            f"{str(path)!r} cannot be read as the state of a run: it is damaged, or something else. Put a whole copy "
            "in its place, or record to another file."
        ) from problem


def has_step(path: str | Path) -> bool:
    """Is it the state of a run that has begun?"""
    return ".step" in read(path)[0]


def restore(like: Any, path: str | Path) -> tuple[Any, dict[str, Any]]:
    """The state that was saved, and what of; `like` is a state of the same kernel on the same canvas, as of `init`."""
    arrays, about = read(path)
    try:
        return _filled(like, "", arrays), about
    except (ValueError, TypeError) as problem:
        raise BesagError(f"{str(path)!r} holds no state of this kernel on this canvas: {problem}") from problem


def _arrays(value: Any, name: str) -> Iterator[tuple[str, NDArray[Any]]]:
    if isinstance(value, Given):
        return  # who goes on says again what is given
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        for part in value._fields:
            yield from _arrays(getattr(value, part), f"{name}.{part}")
    elif isinstance(value, Tensor):
        yield name, value.numpy(force=True)
    elif value is not None:
        yield name, np.asarray(value)


def _filled(like: Any, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """The same structure with what was saved; a part that was not saved was None."""
    if isinstance(like, Given):
        return like
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        parts = [_filled(getattr(like, part), f"{name}.{part}", arrays) for part in like._fields]
        return type(like)(*parts)
    if name not in arrays:
        return None
    found = arrays[name]
    if isinstance(like, Tensor):
        if like.shape[1:] != found.shape[1:] and like.ndim == found.ndim:
            raise ValueError(f"{name[1:]} has the shape {found.shape}, not {tuple(like.shape)}")
        return torch.from_numpy(found).to(like.device)
    return found.item() if found.ndim == 0 else torch.from_numpy(found)
