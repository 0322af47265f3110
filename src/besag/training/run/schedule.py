"""How far a run is, and what that makes of the learning rate.

Progress t runs from 0 to 1 over the steps, the tokens or the minutes that the recipe gives. The learning rate is the
recipe's times `factor(t)`: a warm-up from 0 over the first `warmup` of the run, then a shape that falls to `floor`.
A step uses t in its own middle, so neither the first nor the last one is lost to a rate of 0.

Minutes are monotonic time from the first batch on, compilation counted, evaluation and checkpoints not. But t stands
still while layers are compiled, else a warm-up could be over before the second step: of the first steps, the first one
and whatever others took beyond the usual is time that is lost, and t runs over what is left. When a run goes
on in another process, its workers begin and its layers are compiled anew: that was paid for already, so the first steps
of such a sitting count no more than a step did before. A run with a budget of minutes ends before the step that would
overrun it, with its decay finished.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import torch

from besag.training.data.clock import batches_at
from besag.training.recipe import Recipe, Schedule
from besag.training.recipe import checks as recipe_checks

RECENT = 16  # steps whose lengths tell how long the next one will take
EARLY = 64  # first steps, among which layers may be compiled again, for shapes that were not seen before
LONG = 4.0  # times the usual: among the first steps, one that was compiled
SETTLING = 4  # first steps of a sitting in which layers may be compiled


def factor(schedule: Schedule, progress: float) -> float:
    """The share of the learning rate at this progress."""
    t = min(max(progress, 0.0), 1.0)
    warm = schedule.warmup
    if t < warm:
        return t / warm
    fall = schedule.decay if schedule.shape == "trapezoid" else 1.0 - warm
    x = max(0.0, t - (1.0 - fall)) / fall if fall > 0 else 0.0  # from 0 to 1 while the rate falls
    if schedule.shape == "constant":
        return 1.0
    height = (1.0 + math.cos(math.pi * x)) / 2.0 if schedule.shape == "cosine" else 1.0 - x
    return schedule.floor + (1.0 - schedule.floor) * height


class Progress:
    """Steps, tokens and seconds so far, and the total of the one that the recipe gives. Saved with a checkpoint."""

    def __init__(self, recipe: Recipe) -> None:
        self.kind, length = recipe_checks.total(recipe)
        self.schedule = recipe.schedule
        self.total = float(length) * (60.0 if self.kind == "minutes" else 1.0)
        self._accumulate = recipe.run.accumulate
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.batches = 0  # of each process, in all steps so far
        self.unmasked = 0  # batches of all processes in which no token was masked
        self.coming = 0  # tokens of the step that is being made
        self._lengths: deque[float] = deque(maxlen=RECENT)  # seconds of the last steps
        self._first: list[float] | None = []  # seconds of the first steps, while it is them
        self.lost = 0.0  # seconds of the first steps in which layers were compiled
        self._taken = 0  # batches of the step that is being made
        self._empty = 0  # those of them, over all processes, in which no token is masked
        self._begun = self._over = False

    @property
    def max_steps(self) -> int:
        return int(self.total) if self.kind == "steps" else 2**40

    @property
    def share(self) -> float:
        """Progress at the beginning of the coming step."""
        return self._share()

    def _share(self, ahead: float = 0.0) -> float:
        if self.kind == "minutes":
            done, total = max(self.seconds - self.lost, 0.0), self.total - self.lost
        else:
            done, total = self.step if self.kind == "steps" else self.tokens, self.total
        return min((done + ahead) / total, 1.0) if total > 0 else 1.0

    @property
    def together(self) -> int:
        """Batches of each process in the coming step."""
        return batches_at(self.share, self._accumulate, self.schedule.ramp)

    @property
    def seen(self) -> int | None:
        """Batches of each process so far, where the number of steps does not tell."""
        return self.batches if self.schedule.ramp else None

    def batches_of(self, world: int) -> int:
        """Return the batches of all processes in all steps so far; a step has as many of them, however many run."""
        return (self.step * self._accumulate if self.seen is None else self.seen) * world

    @property
    def step_seconds(self) -> float:
        return median(self._lengths) if self._lengths else 0.0

    def begin(self, tokens: int, seconds: float, unmasked: int = 0) -> float:
        """A step of so many tokens begins, so many seconds into the run: the factor of its learning rate."""
        self._taken, self._empty = self.together, unmasked  # before the clock moves on
        if self._begun:
            self._lengths.append(seconds - self.seconds)
            self._lose(seconds - self.seconds)
        self._begun, self.seconds, self.coming = True, seconds, tokens
        half = {"steps": 0.5, "tokens": tokens / 2, "minutes": self._usual() / 2}[self.kind]
        return factor(self.schedule, self._share(half))

    def _usual(self) -> float:
        """Seconds of a step in which nothing is compiled; 0 before there was one."""
        return self.step_seconds if self._first is None else min(self._first[1:], default=0.0)

    def _lose(self, length: float) -> None:
        """A step took so long: if it is one of the first, how much of them was compilation?"""
        if self._first is None:
            return
        self._first.append(length)
        usual = min(self._first)
        self.lost = self._first[0] + sum(one - usual for one in self._first[1:] if one > LONG * usual)
        if len(self._first) == EARLY:
            self._first = None

    def end(self) -> None:
        self.step += 1
        self.tokens += self.coming
        self.batches += self._taken
        self.unmasked += self._empty
        self.coming = self._taken = self._empty = 0

    @property
    def finished(self) -> bool:
        """Is the run over, after `end`? With minutes: would another step, as long as the last ones, overrun?"""
        if self.kind == "minutes":
            return self._over or self.seconds + 2 * self.step_seconds > self.total
        return self.share >= 1.0

    def left(self) -> float:
        """Seconds until the end, at the speed so far; nan before there is one."""
        if self.kind == "minutes":
            return max(self.total - self.seconds, 0.0)
        return self.seconds * (1 - self.share) / self.share if self.share > 0 else math.nan

    def state(self) -> dict[str, float]:
        over = self.total if self.finished else 0.0  # the length at which the run was over
        usual = self.step_seconds
        return {
            "step": self.step, "tokens": self.tokens, "seconds": self.seconds, "over": over, "step_seconds": usual,
            "batches": self.batches, "lost": self.lost, "unmasked": self.unmasked,
        }  # fmt: skip

    def restore(self, state: dict[str, float]) -> None:
        self.step, self.tokens, self.seconds = int(state["step"]), int(state["tokens"]), float(state["seconds"])
        self.batches = int(state.get("batches", self.step * self._accumulate))  # a run without a ramp needs it not
        self.unmasked = int(state.get("unmasked", 0))
        self.lost, self._first = float(state.get("lost", 0.0)), None  # a sitting's own compilation counts as nothing
        self._over = state["over"] == self.total
        usual = float(state.get("step_seconds", 0.0))  # checkpoints of long ago do not say it
        self._lengths = deque([usual] if usual else [], maxlen=RECENT)


class Timer:
    """Seconds spent training: a clock that can be paused, and goes on where a checkpoint left it."""

    def __init__(self, spent: float = 0.0) -> None:
        self._spent, self._since = spent, time.monotonic()

    @property
    def seconds(self) -> float:
        return self._spent + time.monotonic() - self._since

    def turn_back(self, latest: float) -> None:
        """Let it show no more than that."""
        self._spent -= max(self.seconds - latest, 0.0)

    @contextmanager
    def paused(self) -> Iterator[None]:
        before = self.seconds
        try:
            yield
        finally:
            self._spent, self._since = before, time.monotonic()


class Rates:
    """The learning rates of an optimiser's groups, as transformers' Trainer wants to see them.

    They are set as a step begins (`apply`), so there is nothing left to do after it (`step`).
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.highest = [float(group["lr"]) for group in optimizer.param_groups]

    def apply(self, share: float) -> None:
        for group, highest in zip(self.optimizer.param_groups, self.highest, strict=True):
            group["lr"] = highest * share

    def step(self) -> None:
        """Called by the Trainer after each step."""

    def get_last_lr(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, object]:
        return {}
