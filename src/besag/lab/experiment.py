"""What an experiment of the lab is: a claim of the theory, measured on systems small enough for exact answers.

One file in `experiments/` is one experiment, and nothing else knows it. It says

    name, title        how it is called, and what it is about, in a line
    claim              what is to be shown, in a sentence
    simulated          False: everything is enumerated, and its claims hold for every seed; True: numbers are sampled
    cite               whose claim it is
    headline           does it stand at the beginning of the report?
    measure(full)      → a Finding: tables, arrays, figures, a sentence, and claims that its own numbers decide

The fields of the dataclass are its options. All randomness comes from `seed`. Without `full` it takes less than two
minutes on two cores; with it sizes and repetitions grow, and the sentence stays the same.
"""

from __future__ import annotations

import dataclasses
import shlex
from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar

from besag.checks import checked, whole_number
from besag.lab.finding import Drawing, Finding
from besag.registry import Named, Registry, written


@dataclasses.dataclass(frozen=True)
class Experiment(Named, ABC):
    """Subclass, decorate with `@register`, and it is in the Python API, the command line and the report."""

    claim: ClassVar[str]
    simulated: ClassVar[bool]  # are its numbers sampled, and not enumerated?
    headline: ClassVar[bool] = False  # does it stand at the beginning of the report?

    seed: Annotated[int, "of random draws"] = 0

    def __post_init__(self) -> None:
        whole_number(self.seed, "seed", least=0)

    @abstractmethod
    def measure(self, full: bool) -> Finding:
        """The work itself."""

    @checked
    def run(self, full: bool = False) -> Finding:
        """What is found; with `full`, on larger systems or with more repetitions."""
        found = self.measure(full)
        return dataclasses.replace(found, name=self.name, title=self.title, command=self.command(full))

    def command(self, full: bool = False) -> str:
        """What a user would type to get this again."""
        said = [f"{name}={written(value)}" for name, value in self.unusual.items() if name != "seed"]
        chosen = [f"--set {shlex.quote(one)}" for one in said]
        seed = [f"--seed {self.seed}"] if self.seed else []
        return " ".join(["besag lab run", self.name, *chosen, *seed, *(["--full"] if full else [])])


EXPERIMENTS: Registry[type[Experiment]] = Registry("experiment")
register = EXPERIMENTS.register


@checked
def experiment(name: str, **options: Any) -> Experiment:
    """The experiment of that name, with its options set; a wrong one is answered with the nearest right one."""
    import besag.lab.experiments  # noqa: F401 (whose files register themselves)

    return EXPERIMENTS.find(name)(**options)


__all__ = ["EXPERIMENTS", "Drawing", "Experiment", "Finding", "experiment", "register"]
