"""docs/architecture.md names the files that four commands pass through; `python docs/walks.py` prints them."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


walks = _load(ROOT / "docs" / "walks.py")


@pytest.fixture(scope="module")
def walked() -> dict[str, tuple[list[str], list[str]]]:
    """All walks in a process of their own: what others have called before does not matter."""
    said = subprocess.run(
        [sys.executable, ROOT / "docs" / "walks.py"], capture_output=True, text=True, check=True, timeout=110
    )
    blocks = [block.splitlines() for block in said.stdout.strip().split("\n\n")]
    return {name: (files, way_in.split(" → ")) for name, (_, *files, way_in) in zip(walks.WALKS, blocks, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize("name", walks.WALKS)
def test_a_walk_passes_the_files_that_the_page_names(name, walked):
    files, way_in = walked[name]
    assert walks.shown(name).files == files
    assert walks.shown(name).way_in == list(dict.fromkeys(way_in))
    twice = {file for file in way_in if way_in.count(file) > 1}
    assert twice <= {"engine.py", "batches.py"}  # one object in two files


@pytest.mark.parametrize("name", walks.WALKS)
def test_a_walk_passes_no_file_twice(name):
    files, way_in = walks.shown(name)
    assert len(files) > 20
    assert len(way_in) > 4
    assert len(files) == len(set(files))
    assert len(way_in) == len(set(way_in))
    assert all((ROOT / "src" / "besag" / file).is_file() for file in {*files, *way_in})
