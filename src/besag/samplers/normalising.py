"""Sentences under an energy as a law: log p(x) = −E(x)/T − log Z, with log Z estimated by `annealed.py`.

Z is over all token sequences of the text's length, or over the fillings of a template; texts share one estimate where
they have one length and the same tokens at places that are not free (special tokens that are written in a text stay).
A probability of token sequences, given the length, as that of the score `chain`, but of another law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from besag.checks import checked
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, lines
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import dtype_name, meaning, number
from besag.samplers.annealed import LogZ, log_partition, log_probability
from besag.samplers.kernel import Canvas
from besag.samplers.sheet import allowed_tokens, template

if TYPE_CHECKING:
    from pandas import DataFrame

_Fixed: TypeAlias = tuple[int, ...]  # (L,) a token, or −1 where a place is free


@dataclass(frozen=True, repr=False)
class Normalised(Presented):
    """log p(x) of one text, with the interval that comes of log Z."""

    text: str
    log_prob: float  # nats
    low: float  # of the interval, which is log Z's
    high: float
    log_z: LogZ
    within: str | None  # the template whose fillings Z is over; None: all sequences of the text's length
    model: str
    dtype: str

    @property
    def status(self) -> Status:
        return self.log_z.status

    @property
    def normalised(self) -> str:
        """Of what it is a probability."""
        return "token sequences of this length" if self.within is None else f"the fillings of {quoted(self.within)}"

    @property
    def unit(self) -> str:
        return "nats"

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the number, most important first."""
        return [meaning(self.normalised), *self.log_z.facts, self.model, self.dtype]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        names = ("text", "log_prob", "low", "high", "unit", "normalised", "within", "model", "dtype")
        about = {name: getattr(self, name) for name in names}
        return dict(json_ready({**self._answers(), **about, "log_z": self.log_z.to_dict()}))

    def to_pandas(self) -> DataFrame:
        """One row: the text, its log-probability and the interval."""
        row = {"text": self.text, "log_prob": self.log_prob, "low": self.low, "high": self.high}
        return data.frame(self, [{**row, "log_z": self.log_z.estimate, "se": self.log_z.se, "ess": self.log_z.ess}])

    def _title(self) -> list[str]:
        return [quoted(self.text)]

    def _grids(self) -> list[Grid]:
        rows = [("log p", f"{number(self.log_prob)} nats"), ("interval", f"{number(self.low)} to {number(self.high)}")]
        return [Grid((), lines([*rows, ("log Z", number(self.log_z.estimate))]), left=(0, 1))]


@checked
def normalise(engine: Engine, texts: Sequence[str], within: str | None = None, **options: Any) -> list[Normalised]:
    """The log-probability of each text under exp(−E/T), among texts of its length or among the fillings of `within`."""
    if isinstance(texts, str):
        raise BesagError(f"expected a list of texts, got the text {quoted(texts)}: write [{quoted(texts)}].")
    model = engine.conditionals
    allowed = allowed_tokens(model)
    partitions: dict[_Fixed, LogZ] = {}
    found = []
    for text in texts:
        sheet = template(model, text, free="all") if within is None else template(model, within)
        canvas = sheet.canvas(model, 1, allowed)
        [encoded] = model.vocabulary.encode([text])
        if model.vocabulary.mask_id in encoded.ids:
            raise BesagError(f"{quoted(text)} holds a mask, and has no probability: give it as `within`.")
        ids = torch.from_numpy(encoded.ids)[None].to(canvas.ids.device)
        if ids.shape != canvas.ids.shape or bool((ids != canvas.ids)[~canvas.free].any()):
            raise BesagError(f"{quoted(text)} is no filling of {quoted(within or text)}, token by token.")
        fixed = _fixed(canvas)
        if fixed not in partitions:
            partitions[fixed] = log_partition(engine, canvas, **options)
        log_z = partitions[fixed]
        estimate, low, high = (float(part[0]) for part in log_probability(engine, canvas, ids, log_z))
        found.append(Normalised(text, estimate, low, high, log_z, within, model.name, dtype_name(model.dtype)))
    return found


def _fixed(canvas: Canvas) -> _Fixed:
    """All that log Z depends on within one call: how long the text is, and what stands where nothing is free."""
    return tuple(canvas.ids[0].masked_fill(canvas.free[0], -1).tolist())
