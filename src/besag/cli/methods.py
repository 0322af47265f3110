"""`besag methods`: what the scoring methods and the constructions of joints are, in their own words."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from besag.cli.exits import guarded
from besag.cli.writing import print_table

if TYPE_CHECKING:
    from besag.joints import Construction
    from besag.scores import Method

Name = Annotated[str | None, typer.Argument(metavar="METHOD", help="One of them, in full.", show_default=False)]


@guarded
def methods(name: Name = None) -> int:
    """List the scoring methods and the constructions of joints, or explain one."""
    from besag.joints import CONSTRUCTIONS
    from besag.scores import METHODS

    if name is None:
        print_table([_line(kind) for kind in METHODS.values()], sys.stdout)
        print()
        print_table([_joint_line(kind) for kind in CONSTRUCTIONS.values()], sys.stdout)
        print("besag methods NAME says more of one; besag cite NAME gives its BibTeX.")
    elif name in CONSTRUCTIONS:
        print(
            _explained(kind := CONSTRUCTIONS[name], {"formula": kind.formula, "exact for compatible": _yes(kind.exact)})
        )
    else:
        print(_explained(known := METHODS.find(name), _of_score(known)))
    return 0


def _line(kind: type[Method]) -> dict[str, object]:
    return {"method": kind.name, "title": kind.title, "passes": kind.passes, "normalised over": _over(kind) or "–"}


def _over(kind: type[Method]) -> str:
    return f"{kind.normalised} (a lower bound)" if kind.bound else kind.normalised


def _joint_line(kind: type[Construction]) -> dict[str, object]:
    return {"joint": kind.name, "title": kind.title, "formula": kind.formula, "exact for compatible": _yes(kind.exact)}


def _yes(exact: bool) -> str:
    return "yes" if exact else "no"


def _of_score(kind: type[Method]) -> dict[str, str]:
    number = f"a log-probability, normalised over {kind.normalised}" if kind.normalised else "not a probability"
    return {
        "formula": kind.formula,
        "the number is": number + (", bounded from below" if kind.bound else ""),
        "model": "masked" if kind.sees == "both" else "causal",
        "passes for n tokens": kind.passes,
        "also called": ", ".join(kind.aliases) or "–",
    }


def _explained(kind: type[Method] | type[Construction], more: Mapping[str, str]) -> str:
    options = [f"--{field.name} (default {field.default})" for field in dataclasses.fields(kind)]
    facts = {"title": kind.title, **more, "options": ", ".join(options) or "none", "cite": ", ".join(kind.cite) or "–"}
    width = max(map(len, facts))
    explanation = inspect.getdoc(sys.modules[kind.__module__]) or ""
    return "\n".join([kind.name, *(f"  {label:<{width}}  {value}" for label, value in facts.items()), "", explanation])
