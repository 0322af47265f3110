"""Each house rule is shown a package that breaks it, and finds the line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "lint"))
import house_rules  # noqa: E402
import mirrors  # noqa: E402


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def told(faults, root: Path) -> list[str]:
    return [str(fault).replace(f"{root}/", "") for fault in faults]


# ---- private names


KEEPS = """
_LIMIT = 3
class Engine:
    def __init__(self):
        self._waits = []
    def _bar(self): ...
    def _repr_html_(self): ...
"""


@pytest.mark.parametrize(
    ("uses", "name"),
    [
        ("from besag.engine import _LIMIT", "_LIMIT"),
        ("from besag import engine\nengine._LIMIT", "_LIMIT"),
        ("def walk(engine):\n    engine._bar()", "_bar"),
        ("def walk(engine):\n    engine._waits = []", "_waits"),
        ("from besag.engine._inside import this", "_inside"),
    ],
)
def test_a_private_name_of_another_room(tmp_path, uses, name):
    put(tmp_path, {"besag/engine/core.py": KEEPS, "besag/samplers/run.py": uses})
    faults = told(house_rules.private_names(house_rules.modules(tmp_path / "besag")), tmp_path)
    line = uses.count("\n") + 1
    assert faults == [f"besag/samplers/run.py:{line}: {name} is private to the room engine"]


@pytest.mark.parametrize(
    "uses",
    [
        "def show(engine):\n    return engine._repr_html_()",  # by agreement with others
        "def move(state):\n    return state._replace(ids=0)",  # Python's own
        "class Mine:\n    def go(self):\n        return self._waits",
        "def _bar(): ...\nclass Box: ...\ndef go(box):\n    return box._bar",  # this room has one of that name
        "from besag.samplers._own import this",
        "def find(network):\n    network._modules",
    ],
)
def test_names_that_are_no_secret_of_another_room(tmp_path, uses):
    reads = "def look(network):\n    network._modules = {}"  # of torch, which only looks like a definition
    put(tmp_path, {"besag/engine/core.py": KEEPS + reads, "besag/samplers/run.py": uses})
    assert told(house_rules.private_names(house_rules.modules(tmp_path / "besag")), tmp_path) == []


def test_a_room_may_use_its_own(tmp_path):
    put(tmp_path, {"besag/engine/core.py": KEEPS, "besag/engine/deep/run.py": "from besag.engine.core import _LIMIT"})
    assert not list(house_rules.private_names(house_rules.modules(tmp_path / "besag")))


# ---- long functions


def test_a_long_function(tmp_path):
    body = "\n".join("    x = 1" for _ in range(60))
    put(tmp_path, {"besag/a.py": f"def fine():\n{body[10:]}\n", "besag/b.py": f"\n\ndef long():\n{body}\n"})
    faults = told(house_rules.long_functions(house_rules.modules(tmp_path / "besag")), tmp_path)
    assert faults == ["besag/b.py:3: long has 61 lines; 60 are enough"]


# ---- tests mirror files


def mirror(root: Path, covered=None, whole=None) -> list[str]:
    return told(house_rules.unmirrored(root / "besag", root / "tests", covered or {}, whole or {}), root)


A_TEST = "def test_this(): ...\n"


def test_a_module_has_its_test_or_a_row(tmp_path):
    put(tmp_path, {"besag/masks/span.py": "", "besag/masks/law.py": "", "besag/masks/__init__.py": ""})
    put(tmp_path, {"tests/masks/test_span.py": A_TEST, "tests/masks/test_laws.py": A_TEST})
    alone = mirror(tmp_path)
    assert len(alone) == 2
    assert alone[0].startswith("besag/masks/law.py:1: no tests/masks/test_law.py: write it, or say in")
    assert alone[1].startswith("tests/masks/test_laws.py:1: no module has this name")
    assert mirror(tmp_path, {"masks/law.py": ("masks/test_laws.py", "the contract")}) == []


def test_rows_that_are_not_so(tmp_path):
    put(tmp_path, {"besag/span.py": "", "besag/law.py": "", "tests/test_span.py": A_TEST})
    covered = {"span.py": ("test_span.py", ""), "law.py": ("test_laws.py", ""), "gone.py": ("test_span.py", "")}
    assert mirror(tmp_path, covered, {"test_whole.py": ""}) == [
        "besag/law.py:1: lint/mirrors.py says test_laws.py covers it, which does not exist",
        f"besag/span.py:1: has {tmp_path}/tests/test_span.py and stands in lint/mirrors.py too: drop the row".replace(
            f"{tmp_path}/", ""
        ),
        "besag/gone.py:1: stands in lint/mirrors.py and does not exist",
        "tests/test_whole.py:1: stands in lint/mirrors.py and does not exist",
    ]


def test_an_empty_namesake(tmp_path):
    put(tmp_path, {"besag/span.py": "", "tests/test_span.py": '"""Nothing yet."""\n'})
    assert mirror(tmp_path) == ["tests/test_span.py:1: has no tests"]


def test_no_module_is_covered_twice_and_every_row_says_why():
    rows = [module for _, _, modules in mirrors.ROWS for module in modules]
    assert len(rows) == len(set(rows))
    assert all(why for _, why, _ in mirrors.ROWS)


# ---- streams of noise


@pytest.mark.parametrize(
    ("uses", "line"),
    [
        ("HIDE = 7\n\ndraws.uniform(seed, HIDE, draw)", 1),
        ("HIDE, KIND = range(7, 9)\nnoise.uniform(seed, KIND, draw)", 1),
        ("x = noise.uniform(seed, 12, draw)", 1),
        ("HIDE = 7\ntake(passages, stream=HIDE)", 1),
        ("A, B = 3, 4\ndef step(noise):\n    noise.grid(B, 0, 5)", 1),
    ],
)
def test_a_stream_is_numbered_in_its_own_file(tmp_path, uses, line):
    put(tmp_path, {"besag/masks/span.py": uses, "besag/noise.py": "HIDE = 7\nuniform(seed, HIDE, 1)"})
    [fault] = told(house_rules.own_streams(house_rules.modules(tmp_path / "besag")), tmp_path)
    assert fault.startswith(f"besag/masks/span.py:{line}: ")
    assert fault.endswith("number it in noise.py")


@pytest.mark.parametrize(
    "uses",
    [
        "noise.uniform(seed, noise.HIDE, draw)",
        "from besag.noise import HIDE\ndraws.uniform(seed, HIDE, draw)",
        "LONGEST = 7\ndef take(seed, stream):\n    return noise.uniform(seed, stream, LONGEST)",
    ],
)
def test_streams_that_are_numbered_in_noise(tmp_path, uses):
    put(tmp_path, {"besag/masks/span.py": uses})
    assert not list(house_rules.own_streams(house_rules.modules(tmp_path / "besag")))


# ---- all of it


def test_it_prints_where_and_fails(tmp_path):
    put(tmp_path, {"src/besag/engine.py": "def _bar(): ...\n", "src/besag/run.py": "from besag.engine import _bar\n"})
    done = subprocess.run(
        [sys.executable, ROOT / "lint" / "house_rules.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "src/besag/run.py:1: _bar is private to the room engine" in done.stdout.splitlines()
