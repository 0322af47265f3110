"""`besag cite`: BibTeX."""

from __future__ import annotations

from typing import Annotated

import typer

from besag.cli.catalogue import find
from besag.cli.exits import guarded
from besag.references import BESAG, BIBTEX

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="Scores, joints, laws of masks, objectives, kernels, or keys of papers; besag itself if none.",
        show_default=False,
    ),
]


@guarded
def cite(names: Names = None) -> int:
    """Print BibTeX.

    Example:
        besag cite pll
    """
    print("\n\n".join(BIBTEX[key] for key in _keys(names or [])))
    return 0


def _keys(names: list[str]) -> list[str]:
    """The papers behind the names, each once, besag last (or alone)."""
    if not names:
        return [BESAG]
    keys: dict[str, None] = {}
    for name in names:
        if name in BIBTEX:
            keys[name] = None
            continue
        keys.update(dict.fromkeys(find(name, also=tuple(BIBTEX)).cite))
    return [*(key for key in keys if key != BESAG), BESAG]
