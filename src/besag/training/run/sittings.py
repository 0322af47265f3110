"""The sittings of a run: when it was trained, on what, and how far it came each time.

A sitting is one process from its first step to its last checkpoint. They are written into every checkpoint, so they go
where it goes, and what was lost after a checkpoint is in none of them. Names of machines are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from besag.checks import is_number, is_whole
from besag.errors import quoted
from besag.training.run.logs import duration
from besag.training.run.schedule import Progress


@dataclass(frozen=True)
class Sitting:
    begun: str  # as ISO 8601 says it, in UTC
    ended: str
    hardware: str
    first: int  # step
    last: int
    tokens: int
    seconds: float  # of training

    def __post_init__(self) -> None:
        """It may come from a file: what is wrong is told before the run, not at its end."""
        for time in (self.begun, self.ended):
            datetime.fromisoformat(time)
        fine = all(is_whole(one, 0) for one in (self.first, self.last, self.tokens)) and is_number(self.seconds)
        if not fine or not isinstance(self.hardware, str):
            raise ValueError(f"{quoted(asdict(self))} is no sitting of a run")

    def __str__(self) -> str:
        begun, ended = (datetime.fromisoformat(time) for time in (self.begun, self.ended))
        until = f"{ended:%H:%M}" if begun.date() == ended.date() else f"{ended:%Y-%m-%d %H:%M}"
        did = f"steps {self.first:,} to {self.last:,}, {self.tokens:,} tokens, {duration(self.seconds)} of training"
        return f"{begun:%Y-%m-%d %H:%M} to {until} UTC on {self.hardware}: {did}"


class Sittings:
    """Those before, as a checkpoint has them, and the one that lasts."""

    def __init__(self, before: Iterable[dict[str, Any]], hardware: str, progress: Progress) -> None:
        self.before = [Sitting(**one) for one in before]
        self._hardware, self._progress, self._begun = hardware, progress, _now()
        self._from = (progress.step, progress.tokens, progress.seconds)

    def all(self) -> list[Sitting]:
        """Up to now; one in which nothing was trained is none."""
        progress, (step, tokens, seconds) = self._progress, self._from
        if progress.step == step:
            return self.before
        return [
            *self.before,
            Sitting(
                self._begun, _now(), self._hardware,
                step + 1, progress.step, progress.tokens - tokens, progress.seconds - seconds,
            ),
        ]  # fmt: skip

    def saved(self) -> list[dict[str, Any]]:
        return [asdict(one) for one in self.all()]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
