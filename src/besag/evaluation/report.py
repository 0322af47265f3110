"""Evaluations as one HTML page (`results/page.py`). Knows evaluations, no suite."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from besag.evaluation.evaluation import Evaluation, Part, cells, in_groups
from besag.evaluation.metrics import MetricValue
from besag.results.grid import written
from besag.results.page import document

COLOURS = ("#e24826", "#2f7ed8", "#2a9d5c", "#a259d9", "#d99a00", "#5b6770", "#c2185b", "#00838f")
LEFT, WIDE, LINE, DOT = 260, 460, 22, 7  # of a chart, in pixels: names, the axis, the height of a group and of a dot
PERCENT = (0.0, 25.0, 50.0, 75.0, 100.0)  # marks of an axis of shares
STYLE = """
td:nth-child(-n+3),th:nth-child(-n+3){text-align:left}
svg text{fill:var(--ink);font:12px system-ui,sans-serif}svg .rule{stroke:var(--rule)}svg .soft{fill:var(--soft)}
"""
HEAD = ("model", "figure", "of", "value", "se", "95 %", "n", "ties")


def page(found: Sequence[Evaluation], settings: Mapping[str, Any]) -> str:
    """The whole page."""
    return document(", ".join(one.suite.name for one in found), "".join(map(_section, found)), settings, STYLE)


def _section(one: Evaluation) -> str:
    suite = one.suite
    heads = [(part, part.figures[0]) for part in one.parts if part.figures]
    missing = [
        f"<li>{written(part.label)}: {count:,} without numbers, in no figure: {written(status.sentence)}</li>"
        for part in one.parts for status, count in part.unscored.items()
    ]  # fmt: skip
    every = [(part, figure) for part in one.parts for figure in part.figures]
    told = {
        figure.name: f"{figure.meaning}. {figure.direction}; standard error: {figure.error}"
        for _, figure in reversed(every)
    }  # of one name the first speaks: it is that of all items, if there is one
    meanings = "".join(f"<li><b>{written(name)}</b>: {written(text)}</li>" for name, text in reversed(told.items()))
    return (
        f"<h2>{written(suite.name)}</h2><p>{written(suite.title)}<br><small>{written(_sources(one))}</small></p>\n"
        f"{_table(heads)}{_chart(one)}<ul>{meanings}{''.join(missing)}</ul>"
        f"<details><summary>all figures ({len(every):,})</summary>{_table(every)}</details>\n"
    )


def _sources(one: Evaluation) -> str:
    suite = one.suite
    cite = f"cite {', '.join(suite.cite)} · " if suite.cite else ""
    return f"{cite}data: {suite.origin} ({suite.licence}) · {suite.ties}"


def _table(every: Sequence[tuple[Part, MetricValue]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in HEAD)
    lines = "".join(f"<tr>{''.join(f'<td>{written(cell)}</td>' for cell in _line(*one))}</tr>" for one in every)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _line(part: Part, one: MetricValue) -> tuple[str, ...]:
    value, se, ties = cells(one)
    low, high = one.interval
    digits = 1 if one.unit == "%" else 3
    interval = "–" if math.isnan(low) else f"{low:.{digits}f} to {high:.{digits}f}"
    return part.label, one.name, one.group or "all", value, se, interval, f"{one.n:,}", ties


# ---- the chart


def _chart(one: Evaluation) -> str:
    """The headline of each group as a dot with its interval, a colour for each part; dotted lines for all items."""
    parts = [part for part in one.parts if part.figures and not math.isnan(part.figures[0].value)]
    if not parts:
        return ""
    groups = list(dict.fromkeys(figure.group for part in parts for figure in in_groups(part))) or [""]
    shown = [(part, in_groups(part) or part.figures[:1]) for part in parts]
    ends = [end for _, figures in shown for figure in figures for end in (*figure.interval, figure.value)]
    ends += [part.figures[0].value for part in parts] + [part.figures[0].chance for part in parts]
    finite = [end for end in ends if math.isfinite(end)]
    share = parts[0].figures[0].unit == "%" and min(finite) > -5 and max(finite) > 10
    marks = PERCENT if share else _marks(min(finite), max(finite))
    low, high, line = marks[0], marks[-1], max(LINE, DOT * len(parts) + 6)
    at = lambda value: LEFT + WIDE * min(1.05, max(-0.05, (value - low) / (high - low)))  # noqa: E731
    top = max(20, 10 + DOT * len(parts) // 2)  # where the first group stands
    bottom = top + line * len(groups)
    drawn = [
        _ruler(marks, at, bottom),
        *(_name(group or "all items", top + line * place) for place, group in enumerate(groups)),
        *(_whole(part, number, at, bottom) for number, part in enumerate(parts)),
        *(_dot(figure, top + line * groups.index(figure.group) + (number - (len(parts) - 1) / 2) * DOT, number, at)
          for number, (_, figures) in enumerate(shown) for figure in figures),
    ]  # fmt: skip
    height = bottom + 36 + 18 * len(parts)
    return (
        f'<svg viewBox="0 0 {LEFT + WIDE + 40} {height}" width="{LEFT + WIDE + 40}" role="img">{"".join(drawn)}</svg>'
    )


def _marks(low: float, high: float) -> Sequence[float]:
    """Round numbers, three to seven of them, that the numbers lie between."""
    room = (high - low) * 0.05 or max(abs(high), 1.0) * 0.05
    low, high = low - room, high + room
    unit = 10 ** math.floor(math.log10((high - low) / 2))
    step = next(unit * times for times in (1, 2, 5, 10, 20) if (high - low) / (unit * times) <= 5)
    return [step * place for place in range(math.floor(low / step), math.ceil(high / step) + 1)]


def _ruler(marks: Sequence[float], at: Any, bottom: int) -> str:
    return "".join(
        f'<line class="rule" x1="{at(mark):.1f}" x2="{at(mark):.1f}" y1="10" y2="{bottom}"/>'
        f'<text class="soft" x="{at(mark):.1f}" y="{bottom + 16}" text-anchor="middle">{mark:.4g}</text>'
        for mark in marks
    )


def _name(group: str, y: int) -> str:
    short = group if len(group) <= 40 else f"{group[:39]}…"
    return f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{written(short)}</text>'


def _whole(part: Part, number: int, at: Any, bottom: int) -> str:
    x, colour = at(part.figures[0].value), COLOURS[number % len(COLOURS)]
    y = bottom + 36 + 18 * number
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="10" y2="{bottom}" stroke="{colour}" stroke-dasharray="3 3"/>'
        f'<circle cx="{LEFT}" cy="{y - 4}" r="4" fill="{colour}"/>'
        f'<text x="{LEFT + 12}" y="{y}">{written(part.label)}</text>'
    )


def _dot(one: MetricValue, y: float, number: int, at: Any) -> str:
    if math.isnan(one.value):
        return ""
    low, high = one.interval
    colour, x = COLOURS[number % len(COLOURS)], at(one.value)
    bar = "" if math.isnan(low) else (
        f'<line x1="{at(low):.1f}" x2="{at(high):.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}" stroke-width="1.5"/>'
    )  # fmt: skip
    hint = f"<title>{written(f'{one.group or one.name}: {one.value:.4g}, n = {one.n:,}')}</title>"
    return f'{bar}<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}">{hint}</circle>'
