"""A model is known by its files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from besag.bulk.models import about_model
from besag.errors import BesagError


def test_a_changed_file_is_seen(bert: Path, tmp_path: Path) -> None:
    copy = tmp_path / "bert"
    shutil.copytree(bert, copy)
    before = about_model(str(bert), None)
    assert about_model(str(copy), None) == before  # wherever it lies
    (copy / "README.md").write_text("about it")
    assert about_model(str(copy), None) == before
    (copy / "config.json").write_text((copy / "config.json").read_text() + " ")
    assert about_model(str(copy), None) != before
    assert about_model(None, None) == about_model("small-en", None) == about_model("embedded", None)
    with pytest.raises(BesagError, match="there is no folder"):
        about_model("/no/such", None)
