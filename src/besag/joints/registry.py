"""What a construction of a joint is: its fields are its options, `build` its mathematics."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from torch import Tensor

from besag.checks import checked
from besag.joints import block_asking
from besag.joints.candidates import THROUGH
from besag.joints.law import JointLaw
from besag.joints.unaries import Unaries
from besag.registry import Named, Registry
from besag.results.status import Status


class Built(NamedTuple):
    law: JointLaw  # normalised
    log_u: Tensor  # (m,) the log marginal of a
    log_v: Tensor  # (k,) of b
    status: Status = Status.OK  # or "not converged"
    details: Mapping[str, float | int | str] = {}  # iterations, residual, pivot, spread …; nobody writes to the default


@dataclasses.dataclass(frozen=True)
class Construction(Named, ABC):
    """Subclass, decorate with `@CONSTRUCTIONS.register`: it is in the Python API, the command line and the study."""

    formula: ClassVar[str]
    exact: ClassVar[bool]  # does it give back the joint when the conditionals are those of one?
    cite: ClassVar[tuple[str, ...]] = ("torroba2023",)

    def cost(self, n: int, length: int, candidates: int, width: int) -> int:
        """Return the most tokens that the joint of n positions runs through the network, in sequences of `length`.

        Every construction reads the same conditionals: each position in every context of the others, over `candidates`
        tokens of at most `width`; and the positions with all of them masked, from which the candidates are chosen.
        """
        if n == 2:
            return (1 + 2 * min(width, candidates + THROUGH)) * length
        contexts = block_asking.cost([min(candidates, width)] * n).sequences if n > 2 else 0
        return (1 + contexts) * length

    @abstractmethod
    def build(self, unaries: Unaries) -> Built:
        """The joint of two places from their conditionals."""


CONSTRUCTIONS: Registry[type[Construction]] = Registry("joint construction")


@checked
def construction(name: str, **options: object) -> Construction:
    """The construction of that name, with its options set; a wrong one is answered with the nearest right one."""
    return CONSTRUCTIONS.find(name)(**options)
