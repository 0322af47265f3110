"""What a sampler is: how all chains move by one step.

    State(ids, canvas, step, …)          where the chains are, and whatever the kernel must remember
    Info(changed, passes, more)          what one step did
    init(engine, noise, canvas) → State
    step(engine, noise, state)  → (State, Info)

A kernel is a frozen dataclass whose fields are its options; it holds no state, and a step is a function of its
arguments: the same noise, the same answer. All chains of a canvas move together, one pass of the network for all of
them. Two families: a *chain* (`ends` False) moves for as long as it is asked to, a *decoder* (`ends` True) is done when
nothing is hidden any more.

Knows no text and no loop: `sheet.py` makes what is written on, `run.py` makes the steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from besag import noise as counters
from besag.checks import checked
from besag.conditionals.contract import Given
from besag.engine import Engine
from besag.errors import BesagError
from besag.registry import Named, Registry

NOTHING: Mapping[str, Tensor] = MappingProxyType({})


class Canvas(NamedTuple):
    """What chains write on: C sequences of one length L, special tokens included, where some places are free."""

    ids: Tensor  # (C, L) on the model's device; the mask id where a place is hidden at first
    free: Tensor  # (C, L) bool, on the same device; every other place is clamped and never moves
    mask_id: int
    # (V,) or (L, V) bool: the tokens that may stand at a free place; None: all of them. An answer is cut to the tokens
    # of its own place: given hidden places, it does not know that tokens are forbidden there.
    allowed: Tensor | None = None
    given: Given | None = None  # the source of each chain; None: the engine's, if there is one

    def rows(self, which: Tensor) -> Canvas:
        """Some of its chains, or copies of them."""
        return self._replace(ids=self.ids[which], free=self.free[which], given=self.given_to(which))

    def given_to(self, which: Tensor) -> Given | None:
        """The sources of some of its chains, to ask about sequences made of them: (N,) numbers, or (C,) bool."""
        return None if self.given is None else self.given.rows(which)


class State(NamedTuple):
    """Where all chains are. A kernel that remembers more has a NamedTuple of its own that begins with these three."""

    ids: Tensor  # (C, L)
    canvas: Canvas
    step: int  # steps made


class AnyState(Protocol):
    @property
    def ids(self) -> Tensor: ...
    @property
    def canvas(self) -> Canvas: ...
    @property
    def step(self) -> int: ...


class Info(NamedTuple):
    """What one step did to each chain."""

    changed: Tensor  # (C,) places whose token is another one now
    passes: Tensor  # (C,) forward passes spent on the chain, those that only measure included
    more: Mapping[str, Tensor] = NOTHING  # (C,) each, by name: accepted, log_ratio, energy …


class Noise(NamedTuple):
    """The key of all randomness: numbers in (0, 1), a function of (seed, stream, chain, step, place) and nothing else.

    So the noise of a chain is the same however chains are split into batches. It lives on the host.
    """

    seed: int
    chain: Tensor  # (C,) the numbers of the chains

    def rows(self, which: Tensor) -> Noise:
        return self._replace(chain=self.chain[which.cpu()])

    def chains(self, stream: int, step: int) -> Tensor:
        """(C,) one number a chain."""
        return self._at(stream, self.chain, step, 0)

    def grid(self, stream: int, step: int, length: int) -> Tensor:
        """(C, length) one number for each place of each chain."""
        return self._at(stream, self.chain[:, None], step, torch.arange(length))

    def asks(self, stream: int, step: int, row: Tensor, place: Tensor) -> Tensor:
        """(M,) one number for each (chain at row, place)."""
        return self._at(stream, self.chain[row.cpu()], step, place.cpu())

    def _at(self, stream: int, chain: Tensor, step: int, place: Tensor | int) -> Tensor:
        at = place.numpy() if isinstance(place, Tensor) else place
        return torch.from_numpy(counters.uniform(self.seed, stream, chain.numpy(), step, at))


@dataclass(frozen=True)
class Kernel(Named, ABC):
    """Subclass, decorate with `@register`, and it is in the Python API, the command line and the documentation."""

    formula: ClassVar[str]
    law: ClassVar[str]  # what it samples from, and when exactly so
    passes: ClassVar[str]  # forward passes: a step, or for n places
    ends: ClassVar[bool] = False  # a decoder: done when nothing is hidden any more
    long: ClassVar[bool] = False  # can it write text that is longer than the model sees?

    @abstractmethod
    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        """Return the most tokens that one chain runs through the network.

        n positions can be written, all of them masked at first, in a sequence of `length` tokens. `steps` is the limit
        given to `run.walk`; `source` counts the tokens of a source, which are read in every pass.
        """

    def check(self, canvas: Canvas) -> None:
        """Refuse, before anything runs, options that do not go with this canvas."""
        refuse_no_places(canvas)

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> Any:
        """The state before the first step."""
        return State(canvas.ids.clone(), canvas, 0)

    @abstractmethod
    def step(self, engine: Engine, noise: Noise, state: Any) -> tuple[Any, Info]:
        """All chains, one step on. Never writes into the tensors of `state`."""

    @property
    def effective_law(self) -> str:
        """The law, as far as the options leave it."""
        return self.law

    def steps(self, canvas: Canvas) -> int | None:
        """How many steps it makes at most; None for a chain, which never ends."""
        return None

    def done(self, state: AnyState) -> bool:
        """Is there nothing left to do for any chain?"""
        return self.ends and not bool(hidden(state).any())


KERNELS: Registry[type[Kernel]] = Registry("kernel")
register = KERNELS.register


@checked
def kernel(name: str, **options: object) -> Kernel:
    """The kernel of that name or alias, with its options set; a wrong one is answered with the nearest right one."""
    return KERNELS.find(name)(**options)


# ---- what many kernels need

SWEEPS = 10  # of a chain, where no number of steps is given


def made(most: int, steps: int | None) -> int:
    """Return how many steps are made of the `most` that a decoder needs, where `steps` may limit them."""
    return most if steps is None else min(most, steps)


def hidden(state: AnyState) -> Tensor:
    """(C, L) the free places that still hold the mask."""
    return (state.ids == state.canvas.mask_id) & state.canvas.free


def changes(before: Tensor, after: Tensor) -> Tensor:
    """(C,) how many places differ."""
    return (before != after).sum(1)


def refuse_no_places(canvas: Canvas) -> None:
    if not bool(canvas.free.any(1).all()):
        raise BesagError("there is no free place: nothing can be sampled. Give a text with a mask, or a length.")
