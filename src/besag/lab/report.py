"""Findings as one HTML page: what was claimed, what was found, figures, tables, and the command for each.

Figures stand in the page as SVG, on white, as they are on paper. Knows findings and experiments, and runs none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from besag.lab.experiment import EXPERIMENTS
from besag.lab.finding import Finding, grid
from besag.results.grid import written
from besag.results.page import document

STYLE = """
figure{background:#fff;color:#1c1c1c;margin:1rem 0;padding:.6rem;max-width:44rem;border-radius:4px}
figure svg{max-width:100%;height:auto}figcaption{font-size:90%;color:#444}
.verdict{font-weight:bold}code{background:rgba(128,128,128,.15);padding:.1rem .3rem}.wide{overflow-x:auto}
"""


def page(found: Sequence[Finding], about: Mapping[str, Any]) -> str:
    """The whole page: a line for each experiment, then the headlines, then the others."""
    found = sorted(found, key=lambda one: one.name not in EXPERIMENTS or not EXPERIMENTS[one.name].headline)
    rows = [
        {"experiment": one.name, "about": one.title, "claims": len(one.claims),
         "verdict": "holds" if one.holds else "does not hold"}
        for one in found
    ]  # fmt: skip
    inside = "".join(map(_section, found))
    return document("The lab", f'<div class="wide">{grid(rows).html()}</div>\n{inside}', about, STYLE)


def _section(one: Finding) -> str:
    kind = EXPERIMENTS.get(one.name)
    claim = f"<p><em>{written(kind.claim)}</em></p>" if kind else ""
    cite = f" · cite {written(', '.join(kind.cite))}" if kind and kind.cite else ""
    verdicts = "".join(
        f'<li><span class="verdict">{"holds" if holds else "does not hold"}</span>: {written(said)}</li>'
        for said, holds in one.claims.items()
    )
    figures = "".join(
        f"<figure>{one.svg(name)}<figcaption>{written(drawing.caption)}</figcaption></figure>\n"
        for name, drawing in one.figures.items()
    )
    tables = "".join(f'<div class="wide">{grid(rows, title).html()}</div>\n' for title, rows in one.tables.items())
    notes = "".join(f"<li>{written(note)}</li>" for note in one.notes)
    return (
        f'<h2 id="{written(one.name)}">{written(one.title)}</h2>{claim}<p>{written(one.shown)}</p>\n'
        f"<ul>{verdicts}</ul>{figures}{tables}<ul>{notes}</ul><p class='soft'><code>{written(one.command)}</code>"
        f"{cite}</p>\n"
    )
