"""`besag diagnose`: do a model's conditionals fit together, and which places of a text depend on each other?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from besag.checks import MOST_MINORS
from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import GivenModelOptions, PlotOptions, RunOptions, grouped
from besag.cli.joint import Outcomes
from besag.cli.positions import Positions, positions
from besag.files.encoding import Row
from besag.files.whole import whole

if TYPE_CHECKING:
    from besag.diagnostics import Compatibility, DependenceMap, Rectangles
    from besag.language_model import LanguageModel

_AT = "Without --position (and masks), all neighbours are tested."

Diagnosed = Annotated[str, typer.Argument(metavar="TEXT", help=f"A sentence. {_AT}", show_default=False)]
Minors = Annotated[
    int, o.of_method("--minors", min=1, max=MOST_MINORS, help="2 × 2 minors drawn for each pair of places.")
]
Candidates = Annotated[int, o.of_method("--candidates", min=2, help="Tokens of each place, for all but the minors.")]
MaxDistance = Annotated[
    int | None,
    o.of_method("--max-distance", min=1, help="Of the map: only places so near to each other.", show_default=False),
]
Map = Annotated[bool, o.of_method("--map/--no-map", help="The mutual information of every two places.")]
Seed = Annotated[int, o.of_method("--seed", help="Of the minors drawn.")]
Top = Annotated[int, o.of_result("--top", min=1, help="How many of the pairs that depend most on each other.")]


@dataclass(frozen=True)
class DiagnoseOptions:
    """What is measured, and on how much."""

    minors: Minors = 100
    candidates: Candidates = 20
    outcomes: Outcomes = "text"
    max_distance: MaxDistance = None
    map: Map = True
    seed: Seed = 0


@guarded
@grouped
def diagnose(
    text: Diagnosed,
    model: GivenModelOptions,
    method: DiagnoseOptions,
    output: PlotOptions,
    run: RunOptions,
    position: Positions = None,
    top: Top = 10,
) -> int:
    """Measure compatibility and token dependence.

    Reports the 2 × 2 odds-ratio test, the Arnold–Press compatibility of the conditional tables, and the mutual
    information of all pairs of positions. Exit code 3: a joint did not converge.

    Example:
        besag diagnose "The man is here." --position man --position is
    """
    out = output.open()

    from besag.diagnostics.dependence import cost, dependence
    from besag.diagnostics.rectangle import rectangles

    lm = model.load(run.progress)
    where, found = positions(position), None
    spread: Any = {"candidates": method.candidates, "max_distance": method.max_distance}
    if method.map:
        takes = cost(lm.conditionals, text, **spread)
        say(f"the map: {takes.pairs:,} pairs of places, at most {takes.sequences:,} sequences")
    tested = rectangles(lm.engine, text, where, minors=method.minors, seed=method.seed, outcomes=method.outcomes)
    scored = _compatibilities(lm, text, where, method)
    if method.map:
        found = dependence(lm.engine, text, **spread, outcomes=method.outcomes)
    for row in _whole(tested, scored, found) if output.shape == "jsonl" else _rows(tested, scored, found, top):
        out.write(row, {})
    out.close()
    if output.plot is not None:
        from besag.diagnostics.plots import together

        with whole(output.plot) as draft:
            together(tested, found).savefig(draft, bbox_inches="tight")
    unfinished = [one for one in (*scored, *([found] if found else [])) if not one.status.fine]
    for one in unfinished:
        say(one.facts[0])
    return UNSCORED if unfinished else 0


def _compatibilities(lm: LanguageModel, text: str, where: Any, method: DiagnoseOptions) -> list[Compatibility]:
    """Of the pair that was named, by every construction; of neighbours, the score alone."""
    from besag.diagnostics import Compatibility
    from besag.diagnostics.reading import pairs
    from besag.joints import asking

    asked = pairs(lm.conditionals, text, where)
    plans = (asking.plan(lm.conditionals, one, outcomes=method.outcomes, candidates=method.candidates) for one in asked)
    return [Compatibility.of(unaries, None if len(asked) == 1 else ()) for unaries in lm.engine.run(plans)]


def _whole(tested: Rectangles, scored: list[Compatibility], found: DependenceMap | None) -> Iterator[Row]:
    """Everything, one object a diagnostic."""
    yield {"diagnostic": "rectangles", **tested.to_dict()}
    for pair, one in zip(tested.pairs, scored, strict=True):
        yield {"diagnostic": "compatibility", "positions": list(pair), **one.to_dict()}
    if found is not None:
        yield {"diagnostic": "dependence", **found.to_dict()}


def _rows(tested: Rectangles, scored: list[Compatibility], found: DependenceMap | None, top: int) -> Iterator[Row]:
    """One number a row, and of which two places it is."""
    several = len(tested.pairs) > 1
    here = ("neighbours", "") if several else tuple(tested.names[at] for at in tested.pairs[0])
    yield _row("rectangles", here, "mean |D|", tested.mean, tested.standard_error)
    yield _row("rectangles", here, "rms D", tested.rms)
    yield _row("rectangles", here, "mean |log odds ratio|", tested.dependence, tested.dependence_error)
    yield _row("rectangles", here, "correlation", tested.correlation)
    yield _row("compatibility", here, "Arnold-Press", sum(one.incompatibility for one in scored) / len(scored))
    for label, measured in scored[0].joints.items():  # of neighbours there are none
        yield _row("compatibility", here, f"A-KL of {label}", measured.all_forward)
        if scored[0].has_gold:
            yield _row("compatibility", here, f"G-KL of {label}", measured.gold_forward)
    for pair in found.top(top) if found is not None else ():
        there = f"{pair.token_a} ({pair.a})", f"{pair.token_b} ({pair.b})"
        yield _row("dependence", there, "mutual information", pair.mutual_information)


def _row(diagnostic: str, pair: tuple[str, ...], measure: str, value: float, error: float | None = None) -> Row:
    a, b = pair
    return {"diagnostic": diagnostic, "a": a, "b": b, "measure": measure, "value": value, "standard_error": error}
