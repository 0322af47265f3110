"""`besag methods`: what scores, joints, laws of masks, objectives, kernels and the rest are, in their own words."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from besag.cli.catalogue import KINDS, Entry, all_of, every, find
from besag.cli.exits import guarded
from besag.files.writing import print_table

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="One of them, in full.", show_default=False)]
COMMANDS = {  # where its options are said, and how they begin
    "score": ("besag score --method {name}", ""),
    "joint": ("besag joint --method {name}", ""),
    "mask": ("besag train RECIPE --set masking.law={name}", "masking.options."),
    "objective": ("besag train RECIPE --set objective.name={name}", "objective.options."),
    "kernel": ("besag sample --kernel {name}", ""),
    "explanation": ("besag explain --method {name}", ""),
    "suite": ("besag eval {name}", ""),
    "experiment": ("besag lab run {name}", ""),
}


@guarded
def methods(name: Name = None) -> int:
    """List or describe scores, samplers, objectives, …

    Example:
        besag methods pll
    """
    if name is not None:
        print(_explained(found := find(name)))
        for other in all_of(name)[1:]:
            print(f"\n{found.name} is also {KINDS[other.kind][1]}: besag methods {other.kind}:{other.name}")
        return 0
    for kind in KINDS:
        print_table([one.line for one in every(kind)], sys.stdout)
        print()
    print("besag methods NAME says more of one; besag cite NAME gives its BibTeX.")
    return 0


def _explained(entry: Entry) -> str:
    facts = {
        "title": entry.title,
        **entry.facts,
        "also called": ", ".join(entry.aliases) or "–",
        "cite": ", ".join(entry.cite) or "–",
        "command": COMMANDS[entry.kind][0].format(name=entry.name),
    }
    width = max(map(len, facts))
    lines = [f"  {label:<{width}}  {value}" for label, value in facts.items()]
    return "\n".join([entry.name, *lines, *_options(entry), "", entry.explanation])


def _options(entry: Entry) -> list[str]:
    """One a line, as the command takes them."""
    begin = COMMANDS[entry.kind][1]
    said = [f"  --set {begin}{option.name}=…" for option in entry.options]
    width = max(map(len, said), default=0)
    return [f"{flag:<{width}}  {option}" for flag, option in zip(said, entry.options, strict=True)]
