"""`besag examples`: the small files that the pages use, for whoever has no checkout."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

import besag
from besag.cli.exits import guarded, say
from besag.errors import BesagError, quoted

FOLDERS = ("examples", "recipes")
Into = Annotated[
    Path | None,
    typer.Argument(metavar="FOLDER", help="Where to put them; if not given, they are listed.", show_default=False),
]


@guarded
def examples(into: Into = None) -> int:
    """Copy example files.

    Without FOLDER, the example files and recipes of the documentation are listed.

    Example:
        besag examples .
    """
    home = _home()
    if into is None:
        for folder in FOLDERS:
            print("\n".join(str(path.relative_to(home)) for path in _files(home / folder)))
        return 0
    if taken := [str(into / folder) for folder in FOLDERS if (into / folder).exists()]:
        raise BesagError(f"{quoted(taken[0])} exists already: name another folder")
    for folder in FOLDERS:
        for path in _files(home / folder):
            target = into / path.relative_to(home)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    say(f"{' and '.join(FOLDERS)} are in {into}")
    return 0


def _home() -> Path:
    """The folder that holds both: inside an installed package, or the root of a checkout."""
    package = Path(besag.__file__).parent
    inside = package / "shipped"
    return inside if inside.is_dir() else package.parents[1]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
