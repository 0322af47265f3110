"""Diagnostics in words: the tables of a terminal and dictionaries for JSON.

Knows display widths and what JSON cannot write. Refuses to leave out over what the numbers are averages.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from besag.results.data import json_number
from besag.results.tables import aligned, raw, wrapped
from besag.results.words import counted, number, quoted

if TYPE_CHECKING:
    from besag.diagnostics.compatibility import Compatibility
    from besag.diagnostics.dependence import DependenceMap
    from besag.diagnostics.rectangle import Rectangles

STRONGEST = 10  # pairs in a table
FAITHFULNESS = {"gold_forward": "G-KL", "gold_reverse": "G-KL reverse", "gold_jsd": "G-JSD", "all_forward": "A-KL",
                "all_reverse": "A-KL reverse", "all_jsd": "A-JSD"}  # fmt: skip


def _block(title: Sequence[str], table: str, facts: Sequence[str]) -> str:
    width = shutil.get_terminal_size().columns
    return f"{wrapped(title, width)}\n\n{table}\n\n{wrapped(facts, width)}"


def _with_error(value: float, error: float) -> str:
    return number(value, 3) if error != error else f"{number(value, 3)} ± {number(error, 3)}"


# ---- rectangles


def rectangles_dict(found: Rectangles) -> dict[str, Any]:
    numbers = {
        "mean": found.mean,
        "standard_error": found.standard_error,
        "rms": found.rms,
        "dependence": found.dependence,
        "dependence_error": found.dependence_error,
        "correlation": found.correlation,
    }
    return {
        "text": found.text,
        "positions": [list(pair) for pair in found.pairs],
        "tokens": [[found.names[at] for at in pair] for pair in found.pairs],
        "minors": len(found.deviations),
        **{name: json_number(value) for name, value in numbers.items()},
        "quantiles": {str(share): value for share, value in found.quantiles.items()},
        "unit": "nats",
        "seed": found.seed,
        "model": found.model,
        "dtype": found.dtype,
    }


def rectangles_where(found: Rectangles) -> str:
    if len(found.pairs) > 1:
        return f"averaged over {len(found.pairs)} pairs of neighbours"
    [(a, b)] = found.pairs
    return f"a = place {a}, {raw(found.names[a])} · b = place {b}, {raw(found.names[b])}"


def rectangles_table(found: Rectangles) -> str:
    quantiles = " ".join(f"{number(value)}" for value in found.quantiles.values())
    rows = [
        ["mean |D|", _with_error(found.mean, found.standard_error), "0 where the conditionals belong to one joint"],
        ["rms D", number(found.rms, 3), ""],
        ["|D| at 5 25 50 75 95 %", quantiles, ""],
        ["mean |log odds ratio|", _with_error(found.dependence, found.dependence_error), "how strongly a and b depend"],
        ["correlation of the sides", number(found.correlation, 3), "1 where they do"],
    ]
    facts = [counted(len(found.deviations), "2 × 2 minor"), f"nats, seed {found.seed}", found.model, found.dtype]
    title = [quoted(found.text), rectangles_where(found)]
    return _block(title, aligned(rows, left=(0, 2)), facts)


# ---- dependence


def dependence_dict(found: DependenceMap) -> dict[str, Any]:
    return {
        "text": found.text,
        "tokens": list(found.tokens),
        "positions": list(found.positions),
        "matrix": [[json_number(value) for value in row] for row in found.matrix.tolist()],
        "unit": "nats",
        "method": found.method,
        "candidates": found.candidates,
        "max_distance": found.max_distance,
        "lost": found.lost,
        "status": found.status,
        "model": found.model,
        "dtype": found.dtype,
    }


def dependence_facts(found: DependenceMap) -> list[str]:
    near = "" if found.max_distance is None else f" at most {found.max_distance} apart"
    return [
        *([] if found.status == "ok" else [found.status.upper()]),
        f"mutual information in nats given the rest of the text, {counted(found.pairs, 'pair')}{near}",
        f"{found.method} on {found.candidates} candidates a place, which leave out {found.lost:.1%} of the mass",
        found.model,
        found.dtype,
    ]


def dependence_table(found: DependenceMap) -> str:
    rows = [["", "a", "b", "MI"]]
    for rank, pair in enumerate(found.top(STRONGEST), 1):
        a, b = f"{raw(pair.token_a)} ({pair.a})", f"{raw(pair.token_b)} ({pair.b})"
        rows.append([str(rank), a, b, number(pair.mutual_information, 4)])
    return _block([quoted(found.text)], aligned(rows, left=(1, 2)), dependence_facts(found))


# ---- compatibility


def compatibility_dict(found: Compatibility) -> dict[str, Any]:
    return {
        "incompatibility": json_number(found.incompatibility),
        "own_unary_nll": json_number(found.own_unary_nll),
        "outcomes": list(found.shape),
        "lost": found.lost._asdict(),
        "unit": "nats",
        "joints": {
            label: {name: json_number(value) for name, value in measured._asdict().items()}
            for label, measured in found.joints.items()
        },
        "status": found.status,
    }


def compatibility_table(found: Compatibility) -> str:
    columns = [name for name in FAITHFULNESS if found.has_gold or not name.startswith("gold")]
    rows = [["", *(FAITHFULNESS[name] for name in columns)]]
    for label, measured in found.joints.items():
        rows.append([label, *(number(getattr(measured, name), 3) for name in columns)])
    m, k = found.shape
    facts = [
        *([] if found.status == "ok" else [found.status.upper()]),
        f"incompatibility (Arnold-Press) {found.incompatibility:.3g}, 0 iff the conditionals belong to one joint",
        f"{m:,} × {k:,} tokens",
        "distances of the joints' conditionals from the model's, in nats",
    ]
    return f"{aligned(rows, left=(0,))}\n\n{wrapped(facts, shutil.get_terminal_size().columns)}"
