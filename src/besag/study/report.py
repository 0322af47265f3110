"""What a study found: means with intervals, paired differences with p-values, and every number as a table.

| column | what it is |
|---|---|
| P-PPL, U-PPL | exp of the mean P-NLL and U-NLL: of the text's own two tokens together, and of each given the other |
| G-KL, A-KL, … | how far the joint's conditionals are from the model's: at the text's own contexts, and over all |
| MRR, R@k | mean reciprocal rank of the text's own pair, and how often it is among the k likeliest |
| harsh | the same, counting 0 where one of its tokens had to be put into the candidate set |

Texts are what was drawn, so intervals and tests go by text (`statistics.py`). "model's own" is the masked model itself,
which has conditionals and no joint. Knows no model and computes no joint.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Floats
from besag.checks import checked
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.joints.comparison import OWN
from besag.joints.unaries import Lost
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, lines
from besag.results.result import Presented
from besag.results.status import Status, together
from besag.results.words import amount, dtype_name, number
from besag.statistics import Interval, holm, intervals, sign_flips
from besag.study import plot
from besag.study.pairs import PairRow, study

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

RECALL = (1, 5, 10)
SAID = ("model", "dtype", "outcomes", "candidates", "seed")  # settings that a reader must know
BASELINE = "mlm"
PERPLEXITIES = {"pair_nll": "pair_ppl", "unary_nll": "unary_ppl"}  # exp of the mean
RANKS = ("reciprocal_rank", *(f"recall_at_{k}" for k in RECALL))
MEANS = (
    "gold_forward", "gold_reverse", "gold_jsd", "all_forward", "all_reverse", "all_jsd", "entropy",
    "mutual_information", *RANKS, *(f"harsh_{name}" for name in RANKS), "incompatibility",
)  # fmt: skip
SHOWN = {
    "pair_ppl": "P-PPL", "unary_ppl": "U-PPL", "gold_forward": "G-KL", "all_forward": "A-KL", "all_jsd": "A-JSD",
    "mutual_information": "MI", "reciprocal_rank": "MRR", "recall_at_10": "R@10",
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Report(Presented):
    """The rows of a study and what they say together; `settings` are carried along for the caption."""

    rows: tuple[PairRow, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not any(row.status == "ok" for row in self.rows):
            reasons = ", ".join(f"{count} '{status}'" for status, count in self.skipped.items())
            raise BesagError(
                f"none of the {len(self.rows)} pairs of the study was measured: {reasons or 'it is empty'}"
            )

    @property
    def measured(self) -> tuple[PairRow, ...]:
        return tuple(row for row in self.rows if row.status == "ok")

    @property
    def skipped(self) -> dict[Status, int]:
        """Status → how many pairs were not measured because of it."""
        return dict(Counter(row.status for row in self.rows if row.status != "ok"))

    @property
    def kinds(self) -> list[str]:
        """How pairs were drawn: "random", "contiguous", "distance 4"."""
        return list(dict.fromkeys(row.pairs for row in self.measured))

    @property
    def constructions(self) -> list[str]:
        return list(self.measured[0].joints)

    @checked
    def values(self, metric: str, construction: str, rows: Sequence[PairRow]) -> Floats:
        """One number a row; nan where a construction has none (the model's own conditionals are no joint)."""
        if strange := [row for row in rows if not isinstance(row, PairRow)]:
            raise BesagError(f"rows: {quoted(strange[0])} is no row of a report; take them from `report.measured`")
        return np.array([_value(row, construction, metric) for row in rows], np.float64)

    @classmethod
    @checked
    def of(cls, engine: Engine, texts: Iterable[str], **options: Any) -> Report:
        """Run a study (`pairs.study` has the options) and keep its rows; with a progress bar as the engine has one."""
        from tqdm.auto import tqdm

        quiet = copy(engine)
        quiet.progress = False  # one bar for all pairs, not one for each
        hidden = None if engine.progress is None else not engine.progress
        rows = tqdm(study(quiet, texts, **options), unit="pair", file=sys.stderr, leave=False, disable=hidden)
        name, dtype = engine.conditionals.name, dtype_name(engine.conditionals.dtype)
        usual = {"seed": 0, "outcomes": "text", "candidates": "all"}
        return cls(tuple(rows), {"model": name, "dtype": dtype, **usual, **options})

    # ---- tables

    @checked
    def table(self, level: float = 0.95, seed: int = 0) -> list[dict[str, Any]]:
        """One row for each kind of pairs and construction: means and perplexities with their intervals."""
        table = []
        for kind in self.kinds:
            rows = [row for row in self.measured if row.pairs == kind]
            groups = [row.text for row in rows]
            found: dict[tuple[str, str], Interval] = {}
            for names, exponential in ((tuple(PERPLEXITIES), True), (MEANS, False)):
                cells = [(name, metric) for name in [*self.constructions, OWN] for metric in names]
                columns = {cell: self.values(cell[1], cell[0], rows) for cell in cells}
                columns = {cell: values for cell, values in columns.items() if not np.isnan(values).any()}
                stacked = np.stack([*columns.values()], 1)  # (n, c)
                ends = intervals(stacked, groups, exponential=exponential, level=level, seed=seed)
                found.update(zip(columns, ends, strict=True))
            for name in [*self.constructions, OWN]:
                line: dict[str, Any] = {"pairs": kind, "construction": name, "n": len(rows)}
                for metric in (*PERPLEXITIES, *MEANS):
                    column, nothing = PERPLEXITIES.get(metric, metric), Interval(math.nan, math.nan, math.nan)
                    value, low, high = found.get((name, metric), nothing)
                    line |= {column: value, f"{column}_low": low, f"{column}_high": high}
                line["iterations"] = self._mean_fact(name, "iterations", rows)
                line["unfinished"] = sum(row.joints[name]["status"] != "ok" for row in rows) if name != OWN else 0
                table.append(line)
        return table

    @checked
    def differences(self, level: float = 0.95, seed: int = 0, against: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Paired differences, one construction less another, over the same pairs: negative is better.

        In P-NLL against the independent MLM and against the best of these pairs; in U-NLL against the model's own
        conditionals; and in both against those named in `against`. `p` is a two-sided sign-flip test by text, `p_holm`
        corrected for all that is compared with the same reference. (The best is chosen on the same pairs, so a small p
        against it is a little too small.)
        """
        lines = []
        for kind in self.kinds:
            rows = [row for row in self.measured if row.pairs == kind]
            groups = [row.text for row in rows]
            means = {name: self.values("pair_nll", name, rows).mean() for name in self.constructions}
            best = min(means, key=means.__getitem__)
            references = [("P-NLL", "pair_nll", BASELINE), ("P-NLL", "pair_nll", best), ("U-NLL", "unary_nll", OWN)]
            for name in against:
                references += [("P-NLL", "pair_nll", name), ("U-NLL", "unary_nll", name)]
            for title, metric, reference in dict.fromkeys(references):
                others = [name for name in self.constructions if name != reference]
                if not others or reference not in [*self.constructions, OWN]:
                    continue
                theirs = self.values(metric, reference, rows)[:, None]
                change = np.stack([self.values(metric, name, rows) for name in others], 1) - theirs  # (n, c)
                p = sign_flips(change, groups, seed=seed)
                ends = intervals(change, groups, level=level, seed=seed)
                for name, (mean, low, high), raw_p, holm_p in zip(others, ends, p, holm(p), strict=True):
                    lines.append(
                        {
                            "pairs": kind, "metric": title, "construction": name, "against": reference,
                            "difference": mean, "low": low, "high": high, "p": float(raw_p), "p_holm": float(holm_p),
                            "n": len(rows),
                        }
                    )  # fmt: skip
        return lines

    def _mean_fact(self, construction: str, fact: str, rows: Sequence[PairRow]) -> float:
        known = [row.joints[construction].get(fact) for row in rows] if construction != OWN else []
        numbers = [value for value in known if isinstance(value, int | float)]
        return float(np.mean(numbers)) if numbers else math.nan

    # ---- out of here

    def records(self) -> Iterator[dict[str, Any]]:
        """One for each pair and construction, flat; a pair that was not measured has one, with its status."""
        for row in self.rows:
            about = {"text": row.text, "pairs": row.pairs, "length": row.length}
            if row.status != "ok":
                yield {**about, "status": row.status}
                continue
            about |= {
                "a": row.a,
                "b": row.b,
                "distance": row.distance,
                "token_a": row.tokens[0],
                "token_b": row.tokens[1],
            }
            about |= {f"lost_{name}": value for name, value in zip(Lost._fields, row.lost, strict=True)}
            about |= {"forced_a": row.forced[0], "forced_b": row.forced[1], "incompatibility": row.incompatibility}
            for name, found in row.joints.items():
                derived = {metric: _value(row, name, metric) for metric in (*RANKS, *(f"harsh_{one}" for one in RANKS))}
                yield {**about, "construction": name, **found, **derived}
            yield {**about, "construction": OWN, "unary_nll": row.own_unary_nll, "status": Status.OK}

    def to_pandas(self) -> DataFrame:
        """One row for each pair and construction; `frame.attrs` are the settings."""
        return data.frame(self, list(self.records()), **self.settings)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pairs themselves (`records()`), for JSON."""
        about = {"settings": self.settings, "pairs": len(self.rows), "skipped": self.skipped, "unit": self.unit}
        return dict(json_ready({**self._answers(), **about, "means": self.table(), "differences": self.differences()}))

    def plot(self) -> Figure:
        """Mean P-NLL against the distance of the two places, and the gain over the independent MLM, with 95 % bands."""
        return plot.draw(self)

    @property
    def status(self) -> Status:
        """ "ok", "not converged" where a joint is not, or "partly" where a pair was not measured."""
        return Status.NOT_CONVERGED if self.unfinished else together(row.status for row in self.rows)

    @property
    def unit(self) -> str:
        return "nats"

    @property
    def unfinished(self) -> dict[str, int]:
        """How many joints of each construction did not converge, where any did not."""
        counts = {
            name: sum(row.joints[name]["status"] != "ok" for row in self.measured)
            for name in self.constructions
            if name != OWN
        }
        return {name: count for name, count in counts.items() if count}

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        skipped = [f"{count:,} {status} ({status.sentence})" for status, count in self.skipped.items()]
        settings = [f"{name} {self.settings[name]}" for name in SAID if name in self.settings]
        texts = len({row.text for row in self.measured})
        return [
            f"{len(self.measured):,} pairs of {texts:,} texts",
            *([f"not measured: {', '.join(skipped)}"] if skipped else []),
            *(f"{name} not converged in {count:,}" for name, count in self.unfinished.items()),
            "95 % bootstrap intervals by text",
            *settings,
        ]

    def _grids(self) -> list[Grid]:
        means, changes = self.table(), self.differences()
        grids = [_means([line for line in means if line["pairs"] == kind]) for kind in self.kinds]
        for kind in self.kinds if changes else ():
            grids.append(_changes([line for line in changes if line["pairs"] == kind], self.constructions))
        return grids


def _value(row: PairRow, construction: str, metric: str) -> float:
    if construction == OWN or metric == "incompatibility":
        own = {"unary_nll": row.own_unary_nll, "incompatibility": row.incompatibility} if construction == OWN else {}
        return own.get(metric, math.nan)
    found = row.joints[construction]
    if metric in found:
        return float(found[metric])
    if metric.startswith("harsh_"):
        return 0.0 if any(row.forced) else _value(row, construction, metric.removeprefix("harsh_"))
    rank = float(found["rank"])
    return 1 / rank if metric == "reciprocal_rank" else float(rank <= int(metric.rpartition("_")[2]))


def _means(means: Sequence[Mapping[str, Any]]) -> Grid:
    """The columns that matter most of one kind of pairs; perplexities with their intervals."""
    rows = list[list[str]]()
    for line in means:
        cells = []
        for column in SHOWN:
            value, low, high = line[column], line[f"{column}_low"], line[f"{column}_high"]
            if math.isnan(value):
                cells.append("")
            elif column in PERPLEXITIES.values():
                cells.append(amount(value) if math.isnan(low) else f"{amount(value)} [{amount(low)}, {amount(high)}]")
            else:
                cells.append(number(value, 3))
        rows.append([line["construction"], *cells])
    own = means[-1]
    value, low, high = (own[f"incompatibility{end}"] for end in ("", "_low", "_high"))
    measured = "not measured, for a conditional is 0" if math.isnan(value) else f"{value:.3g}"
    ends = "" if math.isnan(low) else f" [{low:.3g}, {high:.3g}]"
    head = [f"{own['pairs']} ({own['n']:,} pairs)", *SHOWN.values()]
    note = f"incompatibility of the conditionals (Arnold-Press): {measured}{ends}"
    return Grid(head, lines(rows), left=(0,), note=note)


def _changes(changes: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Grid:
    """The differences of one kind of pairs: a row a construction, what it is compared with side by side."""
    references = list(dict.fromkeys((line["metric"], line["against"]) for line in changes))
    cells = {(line["construction"], line["metric"], line["against"]): _change(line) for line in changes}
    head = [f"{changes[0]['pairs']}: difference in"]
    for metric, against in references:
        head += [f"{metric} from {against}", "p (Holm)"]
    rows = [[name, *(cell for one in references for cell in cells.get((name, *one), ("", "")))] for name in names]
    return Grid(head, lines(rows), left=(0,))


def _change(line: Mapping[str, Any]) -> tuple[str, str]:
    mean, low, high = (number(line[name], 3) for name in ("difference", "low", "high"))
    p = line["p_holm"]
    shown = "–" if math.isnan(p) else f"{p:.4f}"
    return (mean if math.isnan(line["low"]) else f"{mean} [{low}, {high}]"), shown
