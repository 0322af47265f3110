"""Do the conditionals at two places belong to one joint, and how far is each constructed joint from them?

    Arnold and Press:  C = A/B has rank one iff A and B are compatible; the score is the mean over cells of
    (log C + log C.. − log C_x. − log C_.y)², dots standing for sums
    Faithfulness:      KL(model ‖ joint), its reverse and the Jensen-Shannon divergence between the conditionals of the
    model and those of a joint, at the text's own contexts (G) and averaged over all contexts (A)

The first looks at the model alone; the second says how much of what the model says a joint can keep. Both need the
tables A and B, whole or on candidate sets; `rectangle.py` needs neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from besag.checks import checked
from besag.diagnostics import show
from besag.engine import Engine
from besag.errors import BesagError, nearest, quoted, require
from besag.joints import asking, metrics, passes
from besag.joints.acceleration import warning
from besag.joints.candidates import Candidates, Kind
from besag.joints.comparison import usual
from besag.joints.registry import Construction, construction
from besag.joints.unaries import Lost, Unaries
from besag.places.places import find
from besag.places.positions import Position
from besag.results.data import describe
from besag.results.grid import Grid
from besag.results.result import Presented
from besag.results.status import Status, together

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class Compatibility(Presented):
    incompatibility: float  # Arnold and Press
    own_unary_nll: float  # the model's own, at the text's own tokens; nan where there are none
    joints: Mapping[str, metrics.Metrics]  # label of a construction → its distances, and the rest of its metrics
    shape: tuple[int, int]  # how many tokens at a and at b
    lost: Lost
    details: Mapping[str, Mapping[str, float | int | str]]  # label → iterations, residual, … of its construction
    statuses: Mapping[str, Status]  # label → did it finish?
    unknown: int = 0  # tokens around the places that the tokenizer does not know

    @classmethod
    def of(cls, unaries: Unaries, constructions: Iterable[str | Construction] | None = None) -> Compatibility:
        """By these constructions, or by all of them."""
        measured: dict[str, metrics.Metrics] = {}
        details: dict[str, Mapping[str, float | int | str]] = {}
        statuses: dict[str, Status] = {}
        for one in usual() if constructions is None else constructions:
            chosen = construction(one) if isinstance(one, str) else one
            built = chosen.build(unaries)
            measured[chosen.label] = metrics.measure(unaries, built)
            details[chosen.label], statuses[chosen.label] = built.details, built.status
        return cls(
            incompatibility=passes.incompatibility(unaries),
            own_unary_nll=metrics.own_unary_nll(unaries),
            joints=measured,
            shape=unaries.shape,
            lost=unaries.lost,
            details=details,
            statuses=statuses,
        )

    @property
    def has_gold(self) -> bool:
        """Does the text have tokens of its own at both places?"""
        return not math.isnan(self.own_unary_nll)

    @checked
    def nearest(self, metric: str = "all_forward") -> str:
        """The construction whose conditionals are nearest to the model's."""
        if metric not in metrics.Metrics._fields:
            known = metrics.Metrics._fields
            raise BesagError(f"metric={quoted(metric)}: give one of {', '.join(known)}.{nearest(metric, known)}")
        return min(self.joints, key=lambda label: float(getattr(self.joints[label], metric)))

    # ---- what it is

    @property
    def status(self) -> Status:
        """ "ok", or that a construction did not converge; which ones, the facts say."""
        return together(self.statuses.values())

    @property
    def unfinished(self) -> list[str]:
        """A sentence for each construction that did not converge."""
        return [fact for name, one in self.statuses.items() for fact in warning(one, self.details[name], name)]

    @property
    def unit(self) -> str:
        return "nats"

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        return show.compatibility_facts(self)

    # ---- out of here

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        return show.compatibility_dict(self)

    def to_pandas(self) -> DataFrame:
        """One row a construction."""
        pandas = require("pandas", extra="eval")
        frame: DataFrame = pandas.DataFrame({label: one._asdict() for label, one in self.joints.items()}).T
        frame = frame.rename_axis("construction")
        return describe(frame, self, incompatibility=self.incompatibility)

    def _grids(self) -> list[Grid]:
        return [show.compatibility_grid(self)]


@checked
def compatibility(
    engine: Engine,
    text: str,
    positions: Sequence[Position] | None = None,
    *,
    candidates: Candidates = 20,
    outcomes: Kind = "text",
    constructions: Iterable[str | Construction] | None = None,
) -> Compatibility:
    """Of two places of a text: those given, or its two masks."""
    where = find(engine.conditionals.vocabulary, text, positions, engine.conditionals.max_length)
    tables = asking.unaries(engine, where, outcomes=outcomes, candidates=candidates)
    return replace(Compatibility.of(tables, constructions), unknown=where.unknown)
