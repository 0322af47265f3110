"""`besag methods`: what scores, joints, laws of masks, objectives and kernels are, in their own words."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from besag.cli.exits import guarded
from besag.cli.named import TITLED, Named, all_of, every, find
from besag.files.writing import print_table

if TYPE_CHECKING:
    from besag.joints import Construction
    from besag.scores import Method

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="One of them, in full.", show_default=False)]


@guarded
def methods(name: Name = None) -> int:
    """List scoring methods, constructions of joints, laws of masks, objectives and kernels, or explain one of them."""
    if name is not None:
        print(_explained(named := find(name)))
        for other in all_of(name)[1:]:
            print(f"\n{named.name} is also {_KIND[other.kind]}: besag methods {other.kind}:{other.name}")
        return 0
    for kind, line in _LINES.items():
        print_table([line(one.what) if kind in ("score", "joint") else line(one) for one in every(kind)], sys.stdout)
        print()
    print("besag methods NAME says more of one; besag cite NAME gives its BibTeX.")
    return 0


_KIND = {"score": "a score", "joint": "a joint", "mask": "a law of masks", "objective": "an objective",
         "kernel": "a kernel"}  # fmt: skip


# ---- one line of each


def _line(kind: type[Method]) -> dict[str, object]:
    return {"method": kind.name, "title": kind.title, "passes": kind.passes, "normalised over": _over(kind) or "–"}


def _over(kind: type[Method]) -> str:
    return f"{kind.normalised} (a lower bound)" if kind.bound else kind.normalised


def _joint_line(kind: type[Construction]) -> dict[str, object]:
    return {"joint": kind.name, "title": kind.title, "formula": kind.formula, "exact for compatible": _yes(kind.exact)}


def _law_line(named: Named) -> dict[str, object]:
    return {"law of masks": named.name, "what it hides": named.title, "tilts": _yes(_tilts(named.what))}


def _objective_line(named: Named) -> dict[str, object]:
    return {"objective": named.name, "what is learned": named.title, "masks": _masks(named.what)}


def _kernel_line(named: Named) -> dict[str, object]:
    return {"kernel": named.name, "title": named.title, "forward passes": named.what.passes}


_LINES: dict[str, Any] = {
    "score": _line, "joint": _joint_line, "mask": _law_line, "objective": _objective_line, "kernel": _kernel_line,
}  # fmt: skip


def _yes(exact: bool) -> str:
    return "yes" if exact else "no"


def _tilts(law: Any) -> bool:
    """Does it look at the tokens that it hides, so that a table π(v) is saved with the model?"""
    from besag.masks.law import MaskLaw

    return law.tilt is not MaskLaw.tilt


def _masks(objective: Any) -> str:
    return "the law's" if objective.masks else "its own"


# ---- one in full


def _explained(named: Named) -> str:
    kind = named.what
    facts = {
        **({"title": named.title} if named.kind in TITLED else {}),  # else it is the first line below
        **_facts(named),
        "also called": ", ".join(getattr(kind, "aliases", ())) or "–",
        "options": ", ".join(_options(named)) or "none",
        "cite": ", ".join(named.cites) or "–",
    }
    width = max(map(len, facts))
    lines = [f"  {label:<{width}}  {value}" for label, value in facts.items()]
    return "\n".join([named.name, *lines, "", named.explanation])


def _facts(named: Named) -> dict[str, str]:
    kind = named.what
    if named.kind == "joint":
        return {"formula": kind.formula, "exact for compatible": _yes(kind.exact)}
    if named.kind == "mask":
        return {"in a recipe": f'masking.law = "{kind.name}"', "tilts": _yes(_tilts(kind))}
    if named.kind == "kernel":
        ends = "ends when nothing is hidden" if kind.ends else "a chain: runs as long as it is asked to"
        return {"formula": kind.formula, "law": kind.law, "forward passes": kind.passes, "runs": ends}
    if named.kind == "objective":
        return {"in a recipe": f'objective.name = "{kind.name}"', "masks": _masks(kind)}
    number = f"a log-probability, normalised over {kind.normalised}" if kind.normalised else "not a probability"
    return {
        "formula": kind.formula,
        "the number is": number + (", bounded from below" if kind.bound else ""),
        "model": "masked" if kind.sees == "both" else "causal",
        "passes for n tokens": kind.passes,
    }


def _options(named: Named) -> list[str]:
    if named.kind == "objective":
        given = inspect.signature(named.what.__init__).parameters.values()
        own = [one for one in given if one.kind is one.KEYWORD_ONLY and one.name != "seed"]
        return [f"{one.name} ({'needed' if one.default is one.empty else f'default {one.default}'})" for one in own]
    dash = "" if named.kind in ("mask", "kernel") else "--"
    return [f"{dash}{field.name} (default {field.default})" for field in dataclasses.fields(named.what)]
