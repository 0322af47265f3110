"""docs/architecture.md names the files that four commands pass through; `python docs/walks.py` prints them."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("docs_walks", ROOT / "docs" / "walks.py")
walks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(walks)


@pytest.fixture(scope="module")
def visited() -> dict[str, list[str]]:
    """All walks in a process of their own: what others have called before does not matter."""
    said = subprocess.run(
        [sys.executable, ROOT / "docs" / "walks.py"], capture_output=True, text=True, check=True, timeout=110
    )
    blocks = [block.splitlines() for block in said.stdout.strip().split("\n\n")]
    return dict(zip(walks.WALKS, (files for _, *files in blocks), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", walks.WALKS)
def test_a_walk_passes_the_files_that_the_page_names(name, visited):
    assert walks.shown(name) == visited[name]


@pytest.mark.parametrize("name", walks.WALKS)
def test_a_walk_passes_no_file_twice(name):
    files = walks.shown(name)
    assert len(files) > 20
    assert len(files) == len(set(files))
    assert all((ROOT / "src" / "besag" / file).is_file() for file in files)
