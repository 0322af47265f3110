"""Diagnostics in words: facts, grids for a terminal and a notebook, dictionaries for JSON.

Refuses to leave out over what the numbers are averages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from besag.results.data import json_ready
from besag.results.grid import Grid, Line, lines
from besag.results.tables import raw
from besag.results.words import counted, number, percent, unseen

if TYPE_CHECKING:
    from besag.diagnostics.compatibility import Compatibility
    from besag.diagnostics.dependence import DependenceMap
    from besag.diagnostics.rectangle import Rectangles

STRONGEST = 10  # pairs in a table
FAITHFULNESS = {"gold_forward": "G-KL", "gold_reverse": "G-KL reverse", "gold_jsd": "G-JSD", "all_forward": "A-KL",
                "all_reverse": "A-KL reverse", "all_jsd": "A-JSD"}  # fmt: skip


def _with_error(value: float, error: float) -> str:
    return number(value, 3) if error != error else f"{number(value, 3)} ± {number(error, 3)}"


# ---- rectangles


def rectangles_dict(found: Rectangles) -> dict[str, Any]:
    names = ("mean", "standard_error", "rms", "dependence", "dependence_error", "correlation", "quantiles", "unit",
             "seed", "model", "dtype")  # fmt: skip
    whole = {
        "text": found.text,
        "status": found.status,
        "facts": found.facts,
        "positions": found.pairs,
        "tokens": [[found.names[at] for at in pair] for pair in found.pairs],
        "minors": len(found.deviations),
        **{name: getattr(found, name) for name in names},
    }
    return dict(json_ready(whole))


def rectangles_where(found: Rectangles) -> str:
    if len(found.pairs) > 1:
        return f"averaged over {len(found.pairs)} pairs of neighbours"
    [(a, b)] = found.pairs
    return f"a = place {a}, {raw(found.names[a])} · b = place {b}, {raw(found.names[b])}"


def rectangles_grid(found: Rectangles) -> Grid:
    quantiles = " ".join(f"{number(value)}" for value in found.quantiles.values())
    rows = [
        ["mean |D|", _with_error(found.mean, found.standard_error), "0 where the conditionals belong to one joint"],
        ["rms D", number(found.rms, 3), ""],
        ["|D| at 5 25 50 75 95 %", quantiles, ""],
        ["mean |log odds ratio|", _with_error(found.dependence, found.dependence_error), "how strongly a and b depend"],
        ["correlation of the sides", number(found.correlation, 3), "1 where they do"],
    ]
    return Grid((), lines(rows), left=(0, 2))


# ---- dependence


def dependence_dict(found: DependenceMap) -> dict[str, Any]:
    names = ("text", "tokens", "positions", "matrix", "unit", "method", "candidates", "max_distance", "lost", "status",
             "facts", "details", "model", "dtype")  # fmt: skip
    return dict(json_ready({name: getattr(found, name) for name in names}))


def dependence_facts(found: DependenceMap) -> list[str]:
    some = "" if found.among is None else f" among {len(found.tokens)} of {found.among} tokens"
    near = "" if found.max_distance is None else f" at most {found.max_distance} apart"
    unfinished = found.details["unfinished"]
    return [
        *([f"{unfinished:,} of {counted(found.pairs, 'joint')} {found.status.upper()}"] if unfinished else []),
        *unseen(found.unknown),
        f"mutual information in nats given the rest of the text, {counted(found.pairs, 'pair')}{some}{near}",
        f"{found.method} on {found.candidates} candidates a place, which leave out {found.lost:.1%} of the mass",
        found.model,
        found.dtype,
    ]


def dependence_grid(found: DependenceMap) -> Grid:
    """The pairs that depend most on each other, with a bar each."""
    strongest = found.top(STRONGEST)
    most, rows = max((pair.mutual_information for pair in strongest), default=0.0) or 1.0, []
    for rank, pair in enumerate(strongest, 1):
        a, b = f"{raw(pair.token_a)} ({pair.a})", f"{raw(pair.token_b)} ({pair.b})"
        size = max(0.0, pair.mutual_information)
        rows.append(Line((str(rank), a, b, number(pair.mutual_information, 4)), share=size / most))
    return Grid(("", "a", "b", "MI"), rows, left=(1, 2), bar=3)


# ---- compatibility


def compatibility_dict(found: Compatibility) -> dict[str, Any]:
    whole = {
        "status": found.status,
        "facts": found.facts,
        "incompatibility": found.incompatibility,
        "own_unary_nll": found.own_unary_nll,
        "outcomes": found.shape,
        "lost": found.lost,
        "unit": found.unit,
        "joints": found.joints,
        "details": found.details,
    }
    return dict(json_ready(whole))


def compatibility_facts(found: Compatibility) -> list[str]:
    m, k = found.shape
    lost = f", which leave out {percent(found.lost.hidden_a)} / {percent(found.lost.hidden_b)} of the mass"
    return [
        *found.unfinished,
        *unseen(found.unknown),
        f"incompatibility (Arnold-Press) {found.incompatibility:.3g}, 0 iff the conditionals belong to one joint",
        f"{m:,} × {k:,} tokens{lost if max(found.lost.hidden_a, found.lost.hidden_b) >= 5e-4 else ''}",
        "distances of the joints' conditionals from the model's, in nats",
    ]


def compatibility_grid(found: Compatibility) -> Grid:
    columns = [name for name in FAITHFULNESS if found.has_gold or not name.startswith("gold")]
    rows = [
        [label, *(number(getattr(measured, name), 3) for name in columns)] for label, measured in found.joints.items()
    ]
    return Grid(["", *(FAITHFULNESS[name] for name in columns)], lines(rows), left=(0,))
