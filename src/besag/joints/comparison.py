"""Every construction on one pair of places, by every metric: which predicts the text, which keeps the model's word.

| column | what it is, in nats unless it is a perplexity |
|---|---|
| P-NLL, P-PPL | of the text's own two tokens together, each counted half |
| U-NLL, U-PPL | of each given the other; "model's own" is the masked model itself, which has no joint |
| G-KL, A-KL | KL from the model's conditionals to the joint's: at the text's own contexts, and the mean over all |
| MI | mutual information of the two places |

Knows which constructions there are and their variants. Refuses to know how any of them works.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from besag.checks import checked
from besag.errors import BesagError, nearest, require
from besag.joints import metrics, pair_plot, pair_show, passes
from besag.joints.registry import CONSTRUCTIONS, Construction, construction
from besag.results.data import describe, json_ready
from besag.results.grid import Grid, lines
from besag.results.result import Presented
from besag.results.status import Status, together
from besag.results.tables import visible
from besag.results.words import amount, exponential, number, percent, unseen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from besag.joints.pair import PairJoint

OWN = "model's own"
BEST = "* the best of its column"
VARIANTS: Mapping[str, tuple[Mapping[str, Any], ...]] = {  # what is compared beside the usual options
    "order": ({"direction": "ab"}, {"direction": "ba"}),
    "ag": ({"weights": "marginal"},),
}
GOLD = {"pair_nll", "pair_ppl", "unary_nll", "unary_ppl", "gold_forward", "gold_reverse", "gold_jsd", "rank",
        "log_prob"}  # fmt: skip
SHOWN_GOLD = {"pair_ppl": "P-PPL", "unary_ppl": "U-PPL", "gold_forward": "G-KL", "all_forward": "A-KL",
              "all_jsd": "A-JSD", "mutual_information": "MI", "rank": "rank"}  # fmt: skip
SHOWN = {"top": "likeliest", "top_prob": "prob", "all_forward": "A-KL", "all_jsd": "A-JSD", "entropy": "entropy",
         "mutual_information": "MI"}  # fmt: skip
LOWER_IS_BETTER = {"pair_ppl", "unary_ppl", "gold_forward", "all_forward", "all_jsd", "rank"}


def usual() -> Iterator[Construction]:
    """All constructions in the order of the registry, and the variants that are worth a row of their own."""
    for name in CONSTRUCTIONS:
        yield construction(name)
        for options in VARIANTS.get(name, ()):
            yield construction(name, **options)


def each(joint: PairJoint, constructions: Iterable[str | Construction] | None = None) -> Iterator[PairJoint]:
    """The joints by every construction, one at a time, from the same conditionals."""
    for one in usual() if constructions is None else constructions:
        yield joint.by(construction(one) if isinstance(one, str) else one)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Presented):
    """Joints of the same two places by different constructions; `comparison["ag"]` is one of them."""

    joints: tuple[PairJoint, ...]

    @classmethod
    @checked
    def of(cls, joint: PairJoint, constructions: Iterable[str | Construction] | None = None) -> Comparison:
        joints = tuple(each(joint, constructions))
        if not joints:
            raise BesagError(f"a comparison needs a construction: {', '.join(CONSTRUCTIONS)}")
        return cls(joints)

    @checked
    def __getitem__(self, name: str) -> PairJoint:
        found = {joint.construction.label: joint for joint in self.joints}
        if name not in found:
            raise BesagError(f"{name!r} was not compared: {', '.join(found)} were.{nearest(name, found)}")
        return found[name]

    @property
    def status(self) -> Status:
        """ "ok", or that a construction did not converge; which ones, the facts say."""
        return together(joint.status for joint in self.joints)

    @property
    def text(self) -> str:
        return self.joints[0].places.encoded.text

    @property
    def normalised(self) -> str:
        """Of what every joint is a probability."""
        return self.joints[0].normalised

    @property
    def unit(self) -> str:
        return "nats"

    @property
    def model(self) -> str:
        return self.joints[0].model

    @property
    def dtype(self) -> str:
        return self.joints[0].dtype

    @cached_property
    def incompatibility(self) -> float:
        """Arnold and Press: 0 iff the model's conditionals belong to one joint; nan where one of them is 0."""
        try:
            return passes.incompatibility(self.joints[0].unaries)
        except BesagError:
            return math.nan

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One row a construction, and the model's own conditionals; what is not there is missing, never 0."""
        rows = [_row(joint) for joint in self.joints]
        unaries = self.joints[0].unaries
        if unaries.gold is None:
            return [{name: value for name, value in row.items() if name not in GOLD} for row in rows]
        own = metrics.own_unary_nll(unaries)
        nothing = dict.fromkeys(rows[0])
        return [
            *rows,
            {**nothing, "construction": OWN, "unary_nll": own, "unary_ppl": exponential(own), "status": Status.OK},
        ]

    @property
    def brief(self) -> dict[str, str]:
        """The columns that matter most, and what a reader sees above them."""
        return SHOWN if self.joints[0].gold is None else SHOWN_GOLD

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the rows, and what they are about."""
        return dict(json_ready({**self._answers(), **self._about(), "rows": self.rows}))

    def _about(self) -> dict[str, Any]:
        first = self.joints[0]
        return {
            **{name: getattr(self, name) for name in ("text", "normalised", "unit", "model", "dtype")},
            "positions": first.places.positions,
            "gold": None if first.gold is None else first.gold.tokens,
            "lost": first.lost,
            "incompatibility": self.incompatibility,
        }

    def to_pandas(self) -> DataFrame:
        """One row a construction; `frame.attrs` says what the numbers are."""
        frame = require("pandas", extra="eval").DataFrame(self.rows).set_index("construction")
        whole = ("rank", "iterations") if self.joints[0].gold else ("iterations",)
        frame = frame.astype(dict.fromkeys(whole, "Int64"))
        return describe(frame, self, **json_ready(self._about()))

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """Bars: P-NLL and U-NLL of every construction, or, without a text of its own, A-KL and mutual information."""
        return pair_plot.bars(self, ax)

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the rows, most important first."""
        first, measured = self.joints[0], f"{self.incompatibility:.3g}"
        return [
            *(fact for joint in self.joints for fact in pair_show.warnings(joint)),
            *unseen(first.places.unknown),
            f"probabilities of {first.normalised}",
            *pair_show.left_out(first),
            "incompatibility of the model's conditionals (Arnold-Press) "
            + ("not measured: one of them is 0" if measured == "nan" else measured),
            *dict.fromkeys(fact for joint in self.joints for fact in _precision(joint)),
            first.model,
            first.dtype,
            BEST,
        ]

    def _title(self) -> list[str]:
        return pair_show.title(self.joints[0])

    def _grids(self) -> list[Grid]:
        head, *rows = self._cells()
        return [Grid(head, lines(rows), left=(0,) if self.joints[0].gold else (0, 1))]

    def _cells(self) -> list[list[str]]:
        """What a reader is shown: the columns that matter most, the best of each marked."""
        columns = self.brief
        best = {
            name: min(row[name] for row in self.rows if row[name] is not None) for name in LOWER_IS_BETTER & {*columns}
        }
        lines = [
            [row["construction"], *(_shown(name, row[name], best.get(name)) for name in (*columns, "iterations"))]
            for row in self.rows
        ]
        return [["", *columns.values(), "iterations"], *lines]


def _precision(joint: PairJoint) -> list[str]:
    kind = "iterated" if "residual" in joint.details else "others"
    return [f"{kind} {fact}" for fact in pair_show.precision(joint)]


def _row(joint: PairJoint) -> dict[str, Any]:
    measured, [top] = joint.metrics()._asdict(), joint.top(1)
    pair, unary = measured.pop("pair_nll"), measured.pop("unary_nll")
    return {
        "construction": joint.construction.label,
        "pair_nll": pair,
        "pair_ppl": exponential(pair),
        "unary_nll": unary,
        "unary_ppl": exponential(unary),
        **measured,
        "log_prob": joint.gold.log_prob if joint.gold else None,
        "top": f"{visible(top.a)} {visible(top.b)}",
        "top_prob": top.prob,
        "iterations": joint.details.get("iterations"),
        "residual": joint.details.get("residual"),
        "status": joint.status,
    }


def _shown(name: str, value: float | int | str | None, best: float | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    mark = "" if best is None else "*" if value == best else " "
    if name == "top_prob":
        return percent(value)
    if isinstance(value, int):
        return f"{value:,}{mark}"
    return (amount(value) if name.endswith("ppl") else number(value, 3)) + mark
