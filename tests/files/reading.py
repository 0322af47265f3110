"""Reading what is in a file, for the tests of this room."""

from __future__ import annotations

from pathlib import Path

from besag.files.inputs import Layout, Record, inputs, records


def read(
    *arguments: object, as_text: bool = False, skip: int = 0, limit: int | None = None, **layout: object
) -> list[Record]:
    sources = inputs([str(argument) for argument in arguments], as_text=as_text, layout=Layout(**layout))  # type: ignore[arg-type]
    return [record for record in records(sources, skip=skip, limit=limit) if record is not None]


def texts(*arguments: object, **options: object) -> list[str]:
    return [record.text for record in read(*arguments, **options)]  # type: ignore[arg-type]


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
