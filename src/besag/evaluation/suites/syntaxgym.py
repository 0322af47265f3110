"""SyntaxGym: do a model's surprisals in regions of a sentence stand in the predicted relations (Hu et al. 2020)?

    surprisal of a region    s(r) = −Σ_{t in r} log₂ p(t),  over the tokens of the region, read in the whole sentence

An item has a sentence for each condition, cut into the same regions, and the suite has predictions: formulas over the
s(r) of an item (`formulas.py`). An item counts where all predictions of its suite hold; the figure of a suite is the
share of its items, and the overall figure the mean over suites, as published. With `chain` or `causal` p(t) is given
what stands before; with pseudo-log-likelihoods it is given both sides, and s(r) is no longer what a reader meets.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from besag.errors import BesagError, nearest, quoted
from besag.evaluation.formulas import Formula, formula
from besag.evaluation.metrics import Mean, Metric, groups, per_group
from besag.evaluation.suite import Ask, Item, Row, Score, Source, Suite, register
from besag.files.lines import small_file
from besag.files.regions import Regions, cut

CLOSE = ",.;:!?"  # no space is made before a region that begins with one of these
_SIGN = "\x1f"  # a character that no text has: "unit separator"


@register
@dataclass(frozen=True)
class SyntaxGym(Suite):
    name = "syntaxgym"
    title = "do surprisals of regions stand in the predicted relations?"
    cite = ("hu2020", "gauthier2020")
    folder = "syntaxgym"
    files = "one JSON file a suite (meta, predictions, items with conditions and regions)"
    origin = "https://github.com/cpllab/syntactic-generalization"
    licence = "MIT"
    methods = ("chain",)
    ties = "a tie fails: predictions are strict inequalities, as published"

    def read(self, source: Source) -> Iterator[Item]:
        for file in source.files("*.json"):
            yield from items_of(file)

    def judge(self, item: Item, given: Sequence[Score]) -> Row:
        regions: Mapping[str, tuple[Sequence[int], Regions]] = item.about["regions"]
        found = {
            condition: dict(zip(numbers, surprisals(score, where), strict=True))
            for (condition, (numbers, where)), score in zip(regions.items(), given, strict=True)
        }
        predictions: Sequence[Formula] = item.about["predictions"]
        held = [float(one.holds(found)) for one in predictions]
        return {
            "item": item.about["item"], "holds": held, "credit": float(all(held)),
            "ties": sum(one.ties(found) for one in predictions),
            **{f"surprisal:{condition}": list(values.values()) for condition, values in found.items()},
        }  # fmt: skip

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        won = "of the items, the share in which all predictions of the suite hold"
        macro = Metric("accuracy", Mean(over=("group",)), f"mean over suites {won}", ties=lambda row: bool(row["ties"]))
        return [
            macro,
            *per_group(rows, "group", replace(macro, estimator=Mean(), meaning=won)),
            *(_prediction(macro, name, place) for name, own in groups(rows).items()
              for place in range(len(own[0]["holds"])) if len(own[0]["holds"]) > 1),
        ]  # fmt: skip


def surprisals(score: Score, regions: Regions) -> list[float]:
    """In bits; 0 of a region without tokens: a sum of nothing, as published."""
    pieces = score.in_base(2).by_span(regions.spans, tiling=True)
    return [0.0 if math.isnan(piece.value) else -piece.value for piece in pieces]


def _prediction(macro: Metric, suite: str, place: int) -> Metric:
    """Of one prediction of a suite that has several."""
    return replace(
        macro,
        name="prediction",
        estimator=Mean(lambda row: row["holds"][place]),
        meaning="of the items, the share in which this prediction holds",
        group=f"{suite} #{place + 1}",
        within=("group", suite),
    )


# ---- files


def items_of(file: Path) -> Iterator[Item]:
    """The items of one suite, every part of it checked before anything is asked."""
    whole = _parsed(file)
    name = str(_part(whole, "meta", dict, file).get("name") or file.stem)
    written = [_part(one, "formula", str, file) for one in _list(whole, "predictions", file)]
    if not written:
        raise BesagError(f"{file} has no predictions: there is nothing to judge its items by")
    try:
        predictions = [formula(text) for text in written]
    except BesagError as failure:
        raise BesagError(f"{file}: {failure}") from None
    for place, item in enumerate(_list(whole, "items", file), 1):
        number = item.get("item_number", place)
        where = f"{file}, item {number}"
        conditions = {
            _part(one, "condition_name", str, where): _sentence(_list(one, "regions", where), where)
            for one in _list(item, "conditions", where)
        }
        _check(predictions, {one: numbers for one, (_, numbers, _) in conditions.items()}, where)
        about = {
            "item": number,
            "regions": {one: (numbers, regions) for one, (_, numbers, regions) in conditions.items()},
            "predictions": predictions,
        }
        yield Item(f"{name}/{number}", name, tuple(Ask(text) for text, _, _ in conditions.values()), about, where)


def _sentence(regions: Sequence[Mapping[str, Any]], where: str) -> tuple[str, list[int], Regions]:
    """The sentence that regions make, their numbers, and where they stand in it."""
    parts = [str(_part(one, "content", str, where)).strip() for one in regions]
    numbers = [_part(one, "region_number", int, where) for one in regions]
    between = ["" if part[:1] in CLOSE else " " for part in parts]
    text, found = cut(_SIGN.join(space + part for space, part in zip(between, parts, strict=True)), _SIGN)
    return text, numbers, found


def _check(predictions: Sequence[Formula], regions: Mapping[str, Sequence[int]], where: str) -> None:
    """Do the conditions and regions that the formulas speak of exist?"""
    for one in predictions:
        for condition, region in one.references:
            if condition not in regions:
                raise BesagError(
                    f"{where}: the formula {quoted(one.text)} speaks of the condition {condition!r}, and there are "
                    f"{', '.join(regions)}.{nearest(condition, regions)}"
                )
            if region is not None and region not in regions[condition]:
                raise BesagError(
                    f"{where}: the formula {quoted(one.text)} speaks of region {region} of {condition!r}, which has "
                    f"{', '.join(map(str, regions[condition]))}"
                )


def _parsed(file: Path) -> Mapping[str, Any]:
    try:
        whole = json.loads(small_file(str(file)))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as failure:
        raise BesagError(f"{file} is no JSON: {failure}") from None
    if not isinstance(whole, dict):
        raise BesagError(f"{file} is no suite: it should be an object with meta, predictions and items")
    return whole


def _part(of: Mapping[str, Any], name: str, kind: type, where: object) -> Any:
    if name not in of:
        raise BesagError(f"{where} has no {name!r}; it has {', '.join(of)}.{nearest(name, of)}")
    if not isinstance(of[name], kind) or isinstance(of[name], bool):
        raise BesagError(f"{where}: {name!r} is {quoted(of[name])}, and should be of type {kind.__name__}")
    return of[name]


def _list(of: Mapping[str, Any], name: str, where: object) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = _part(of, name, list, where)
    for one in found:
        if not isinstance(one, dict):
            raise BesagError(f"{where}: {quoted(one)} among the {name} is no object")
    return found
