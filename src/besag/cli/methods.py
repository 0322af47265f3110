"""`besag methods`: what the scoring methods are, in their own words."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from besag.cli.exits import guarded
from besag.cli.writing import print_table

if TYPE_CHECKING:
    from besag.scores import Method

Name = Annotated[str | None, typer.Argument(metavar="METHOD", help="One of them, in full.", show_default=False)]


@guarded
def methods(name: Name = None) -> int:
    """List the scoring methods, or explain one."""
    from besag.scores import METHODS, method

    if name is None:
        print_table([_line(kind) for kind in METHODS.values()], sys.stdout)
        print("besag methods NAME says more of one; besag cite NAME gives its BibTeX.")
    else:
        print(_explained(type(method(name))))
    return 0


def _line(kind: type[Method]) -> dict[str, object]:
    return {"method": kind.name, "title": kind.title, "passes": kind.passes, "normalised over": _over(kind) or "–"}


def _over(kind: type[Method]) -> str:
    return f"{kind.normalised} (a lower bound)" if kind.bound else kind.normalised


def _explained(kind: type[Method]) -> str:
    number = f"a log-probability, normalised over {kind.normalised}" if kind.normalised else "not a probability"
    options = [f"--{field.name} (default {field.default})" for field in dataclasses.fields(kind)]
    facts = {
        "title": kind.title,
        "formula": kind.formula,
        "the number is": number + (", bounded from below" if kind.bound else ""),
        "model": "masked" if kind.sees == "both" else "causal",
        "passes for n tokens": kind.passes,
        "options": ", ".join(options) or "none",
        "also called": ", ".join(kind.aliases) or "–",
        "cite": ", ".join(kind.cite) or "–",
    }
    width = max(map(len, facts))
    explanation = inspect.getdoc(sys.modules[kind.__module__]) or ""
    return "\n".join([kind.name, *(f"  {label:<{width}}  {value}" for label, value in facts.items()), "", explanation])
