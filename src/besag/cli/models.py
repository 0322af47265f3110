"""`besag models`: what is embedded; and what a folder or hub name is, and whether it can be used."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from besag.cli import options as o
from besag.cli.exits import UNUSABLE, as_typed, guarded
from besag.cli.groups import ModelOptions
from besag.files.writing import print_table
from besag.results.tables import shown

Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME|FOLDER", help="A hub name or a folder to look into.", show_default=False),
]
LABELS = {
    "architecture": "architecture",
    "kind": "kind",
    "parameters": "parameters",
    "vocabulary": "vocabulary",
    "width": "predicts over",
    "max_length": "longest input",
    "mask_token": "mask token",
    "shift": "shift",
}


@guarded
def models(name: Name = None, revision: o.Revision = None) -> int:
    """List the embedded models, or say what a model is and whether besag can use it.

    Exit code 1: it cannot be used.
    """
    from besag.models import EMBEDDED, path

    if name is None:
        row = {LABELS[key]: _said(fact) for key, fact in _facts(path()).items()}
        print_table([{"model": EMBEDDED, **row, "licence": _licence(path())}], sys.stdout)
        print(f"In {path()}\n`besag models NAME` looks into a folder or a model of the hub.")
        return 0
    from besag.conditionals.loading import describe  # brings transformers, which the list does without

    facts = describe(path() if name == EMBEDDED else name, revision)
    width = max(map(len, LABELS.values()))
    print(shown(name), *(f"  {label:<{width}}  {_said(facts[key])}" for key, label in LABELS.items()), sep="\n")
    why_not = shown(as_typed(facts["why_not"], ModelOptions))
    print(f"  {'can be used':<{width}}  {'yes' if facts['usable'] else 'no: ' + why_not}")
    return 0 if facts["usable"] else UNUSABLE


def _said(fact: object) -> str:
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    return "–" if fact is None else f"{fact:,}" if isinstance(fact, int) else shown(str(fact))


def _facts(folder: Path) -> dict[str, int]:
    """Of an embedded model, which is known to be sound: what its small files say."""
    from besag.conditionals import weights

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return {
        "parameters": weights.size(
            weights.stored_shapes(weights.weight_files(folder, folder.name, False), folder.name)
        ),
        "vocabulary": config["vocab_size"],
        "max_length": config["max_position_embeddings"],
    }


def _licence(folder: Path) -> str:
    """As the model card's first lines say."""
    card = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    said = [line.partition(":")[2].strip(" '\"") for line in card if line.startswith("license:")]
    return next(iter(said), "see README.md")
