"""The processes of one run, as the host sees them: how many there are, and what they agree on.

Small numbers are exchanged between hosts (gloo), never through a device: nothing here waits for a GPU. With one process
everything is the identity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from besag.errors import BesagError

T = TypeVar("T")


class Ranks:
    def __init__(self) -> None:
        several = dist.is_available() and dist.is_initialized()
        self.world = dist.get_world_size() if several else 1
        self.rank = dist.get_rank() if several else 0
        self._group = dist.new_group(backend="gloo") if self.world > 1 else None

    @property
    def first(self) -> bool:
        return self.rank == 0

    def sum(self, *numbers: float) -> list[float]:
        """Each number summed over the processes, in float64."""
        if self.world == 1:
            return [float(number) for number in numbers]
        total = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(total, group=self._group)
        return [float(number) for number in total]

    def gather(self, thing: Any) -> list[Any]:
        """What each process holds, in the order of ranks, on all of them."""
        if self.world == 1:
            return [thing]
        things: list[Any] = [None] * self.world
        dist.all_gather_object(things, thing, group=self._group)
        return things

    def of_first(self, thing: Any) -> Any:
        """What the first process holds, on all of them."""
        if self.world == 1:
            return thing
        box = [thing]
        dist.broadcast_object_list(box, src=0, group=self._group)
        return box[0]

    def made_once(self, make: Callable[[], T]) -> T:
        """What `make` makes, called by the first process alone; where it refuses, all of them refuse."""
        made: Any = None
        problem: str | None = None
        if self.first:
            try:
                made = make()
            except BesagError as error:
                if self.world == 1:
                    raise
                problem = str(error)
        made, problem = self.of_first((made, problem))
        if problem is not None:
            raise BesagError(problem)
        result: T = made
        return result
