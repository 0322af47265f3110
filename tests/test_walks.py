"""docs/architecture.md names the files that four commands pass through. `python docs/walks.py` prints them as they are."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("docs_walks", ROOT / "docs" / "walks.py")
walks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(walks)


@pytest.mark.slow
@pytest.mark.parametrize("name", walks.WALKS)
def test_a_walk_passes_the_files_that_the_page_names(name):
    assert walks.shown(name) == walks.visited(walks.WALKS[name])
