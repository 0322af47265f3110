"""Findings as one HTML page: what was claimed, what was found, figures, tables, and the command for each.

Figures stand in the page as SVG, on white, as they are on paper. Knows findings and experiments, and runs none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from besag.lab.experiment import EXPERIMENTS
from besag.lab.finding import Finding, grid
from besag.lab.seeds import FALSE_ALARM
from besag.results.grid import written
from besag.results.page import document

STYLE = """
figure{background:#fff;color:#1c1c1c;margin:1rem 0;padding:.6rem;max-width:44rem;border-radius:4px}
figure svg{max-width:100%;height:auto}figcaption{font-size:90%;color:#444}
.verdict{font-weight:bold}code{background:rgba(128,128,128,.15);padding:.1rem .3rem}
.wide{overflow-x:auto}.wide td{white-space:nowrap}
details{margin:.8rem 0}summary{cursor:pointer;color:var(--soft)}
"""
INTRODUCTION = """
<p>A masked model is learnt by hiding places and asking for them, and sampled by hiding places and drawing them anew. Each experiment puts
claims about the two to the test on systems so small that all of it can be computed, or on networks trained for it. <em>J</em> is how
strongly neighbours depend on each other, <em>k</em> how many places are hidden at once. <em>C</em>, the Poincaré constant of the sampler,
is how slowly it forgets: one over its spectral gap, in steps. <em>Γ</em> is the asymptotic covariance of what a loss learns from many
sequences, <em>I</em>⁻¹ that of maximum likelihood, the least there is.</p>
"""  # noqa: E501 (a page)
SHORT = 12  # rows of a table that is shown at once; a longer one is opened


def by_seed(found: Mapping[int, Sequence[Finding]]) -> list[dict[str, Any]]:
    """Return one row an experiment: exact or simulated, and for each seed "holds" or how many claims do not."""
    rows: dict[str, dict[str, Any]] = {}
    for seed, some in found.items():
        for one in some:
            kind = "simulated" if EXPERIMENTS[one.name].simulated else "exact"
            wrong = sum(not holds for holds in one.claims.values())
            row = rows.setdefault(one.name, {"experiment": one.name, "numbers": kind})
            row[f"seed {seed}"] = f"{wrong} of {len(one.claims)} DO NOT HOLD" if wrong else _verdict(True)
    return list(rows.values())


def page(found: Sequence[Finding], about: Mapping[str, Any], seeds: Sequence[Mapping[str, Any]] = ()) -> str:
    """The whole page: a line for each experiment, what holds `by_seed`, then the headlines, then the others."""
    found = sorted(found, key=lambda one: one.name not in EXPERIMENTS or not EXPERIMENTS[one.name].headline)
    rows = "".join(
        f'<tr><td style="text-align:left"><a href="#{written(one.name)}">{written(one.name)}</a></td>'
        f'<td style="text-align:left">{written(_title(one))}</td><td>{len(one.claims)}</td>'
        f'<td style="text-align:left">{_verdict(one.holds)}</td></tr>'
        for one in found
    )
    names = "".join(
        f'<th style="text-align:{side}">{name}</th>'
        for name, side in {"experiment": "left", "about": "left", "claims": "right", "verdict": "left"}.items()
    )
    contents = f'<div class="wide"><table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table></div>\n'
    if seeds:
        contents += _table(
            f"Claims by seed; a simulated experiment rejects a true one at {FALSE_ALARM:.1%} at most", seeds
        )
    return document("The lab", INTRODUCTION + contents + "".join(map(_section, found)), about, STYLE)


def _title(one: Finding) -> str:
    """As a heading is written: experiments begin theirs small or large."""
    return one.title[:1].upper() + one.title[1:]


def _verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Long ones would stand between a reader and the next experiment."""
    table = f'<div class="wide">{grid(rows, title).html()}</div>\n'
    if len(rows) <= SHORT:
        return table
    return f"<details><summary>{written(title)}: a table of {len(rows)} rows</summary>{table}</details>\n"


def _section(one: Finding) -> str:
    kind = EXPERIMENTS.get(one.name)
    claim = f"<p><em>{written(kind.claim)}</em></p>" if kind else ""
    cite = f" · cite {written(', '.join(kind.cite))}" if kind and kind.cite else ""
    shown = f"<p>{written(one.shown)}</p>" if one.holds else ""
    verdicts = "".join(
        f'<li><span class="verdict">{_verdict(holds)}</span>: {written(said)}</li>'
        for said, holds in one.claims.items()
    )
    figures = "".join(
        f"<figure>{one.svg(name)}<figcaption>{written(drawing.caption)}</figcaption></figure>\n"
        for name, drawing in one.figures.items()
    )
    tables = "".join(_table(title, rows) for title, rows in one.tables.items())
    notes = "".join(f"<li>{written(note)}</li>" for note in one.notes)
    notes = notes and f"<ul>{notes}</ul>"
    return (
        f'<h2 id="{written(one.name)}">{written(_title(one))}</h2>{claim}{shown}\n'
        f"<ul>{verdicts}</ul>{figures}{tables}{notes}<p class='soft'><code>{written(one.command)}</code>"
        f"{cite}</p>\n"
    )
