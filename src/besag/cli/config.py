"""`--config FILE.toml`: the options of a command from a file. What the command line says wins."""

from __future__ import annotations

import tomllib
from typing import Annotated

import typer

from besag.cli.exits import WRONG, say
from besag.cli.options import of_run
from besag.errors import BesagError, nearest, quoted
from besag.files.lines import small_file


def read(path: str, options: dict[str, bool]) -> dict[str, object]:
    """The keys of a TOML file as parameters of a command; `options` says which it has and which of them repeat."""
    content = _tables(path)
    found: dict[str, object] = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        name = name if name in options else f"{name}_" if f"{name}_" in options else name  # `set` is a word of Python's
        if name not in options:
            raise BesagError(f"--config {path!r} sets {key!r}, which is no option.{nearest(name, options)}")
        if isinstance(value, list) != options[name]:
            if isinstance(value, list):
                raise BesagError(f"--config {path!r}: {key!r} takes one value, not a list")
            value = [value]
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(part, str | int | float | bool) for part in values):
            raise BesagError(f"--config {path!r}: {key!r} is {quoted(value)}: write a text, a number, true or false")
        words = [part if isinstance(part, bool) else str(part) for part in values]  # as if typed on the command line
        found[name] = words if options[name] else words[0]
    return found


def _tables(path: str) -> dict[str, object]:
    try:
        return tomllib.loads(small_file(path).decode("utf-8-sig"))
    except RecursionError:
        raise BesagError(f"--config {path!r} is not TOML that can be read: it is nested too deep") from None
    except BesagError as failure:
        raise BesagError(f"cannot read --config {path!r}: {failure}") from failure
    except ValueError as failure:  # no TOML, no UTF-8, a number of thousands of digits
        raise BesagError(f"--config {path!r} is not TOML: {failure}") from failure


def apply(context: typer.Context, path: str | None) -> str | None:
    """Before the other options are read: let the file give their defaults."""
    if path is not None:
        options = {
            str(parameter.name): bool(parameter.multiple if hasattr(parameter, "multiple") else parameter.nargs == -1)
            for parameter in context.command.params
            if parameter.name not in ("config", "help")
        }
        try:
            context.default_map = read(path, options)
        except BesagError as error:
            say(f"error: {error}")
            raise typer.Exit(WRONG) from error
    return path


Config = Annotated[
    str | None,
    of_run("--config", help="TOML file with these options; the command line wins.", is_eager=True, callback=apply),
]
