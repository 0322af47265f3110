"""The command line run inside the test process, where the embedded model is loaded only once."""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.files.reading import put as put
from typer.testing import CliRunner, Result

import besag
from besag.cli import app

Run = Callable[..., Result]


@functools.cache
def _embedded() -> besag.LanguageModel:
    from besag.load_model import load

    return load(progress=False)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("score", "text", stdin="…")`."""
    from besag.load_model import load

    def remembered(model: Any = None, **options: Any) -> besag.LanguageModel:
        plain = model is None and options.get("device") is None
        return _embedded() if plain else load(model, **options)

    monkeypatch.setattr(besag, "load", remembered, raising=False)
    return lambda *arguments, stdin=None: CliRunner().invoke(app, [str(part) for part in arguments], input=stdin)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Three lines, the second empty."""
    path = tmp_path / "corpus.txt"
    path.write_text("The cats sleep.\n\nThe cat sleeps.\n", encoding="utf-8")
    return path


# ---- reading what came out


def table(text: str) -> list[dict[str, str]]:
    """The rows of a TSV."""
    return list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))


def column(text: str, name: str) -> list[float]:
    return [float(row[name]) for row in table(text)]
