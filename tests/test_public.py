"""docs/public.md says what is public: all of it is there and documented, and pages and examples use nothing else."""

import importlib
import inspect
import json
import re
from pathlib import Path

import pytest

import besag

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "public.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(besag[\w.]*)` \| ([^|]+) \|", re.MULTILINE)
FROM = re.compile(r"^\s*from (besag[\w.]*) import (\([^)]*\)|[^\n#]*)", re.MULTILINE)
PLAIN = re.compile(r"^\s*import (besag[\w.]*)", re.MULTILINE)
BLOCK = re.compile(r"^```(?:python|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
READERS = [  # whoever shows besag to others
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "docs").rglob("*.ipynb")),
    *sorted((ROOT / "examples").glob("*.py")),
]

PUBLIC: dict[str, set[str]] = {}
for module, names in ROW.findall(PAGE):
    PUBLIC.setdefault(module, set()).update(re.findall(r"`(\w+)`", names))


def code(path: Path) -> str:
    """What a reader would copy."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return "\n".join(BLOCK.findall(text))
    if path.suffix == ".ipynb":
        return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
    return text


def private(said: str) -> list[str]:
    """What this code takes from besag that is not public."""
    taken = [
        (module, name.split(" as ")[0].strip())
        for module, names in FROM.findall(said)
        for name in names.strip("()\n ").split(",")
        if name.strip()
    ]
    wrong = [f"from {module} import {name}" for module, name in taken if name not in PUBLIC.get(module, ())]
    wrong += [f"import {module}" for module in PLAIN.findall(said) if module not in PUBLIC]
    rooms = {name.split(".")[1] for name in PUBLIC if "." in name} | {"__version__"}
    return wrong + [
        f"besag.{name}" for name in re.findall(r"(?<![\w./-])besag\.(\w+)", said) if name not in PUBLIC["besag"] | rooms
    ]


@pytest.mark.parametrize("path", READERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_others_read_uses_what_is_public(path):
    assert private(code(path)) == []


def test_what_is_not_public_is_noticed():
    assert private("import besag\nfrom besag.scores import Method\nbesag.load()\n") == []
    assert "from besag.buckets import Bucket" in private("from besag.buckets import Bucket")
    assert private("from besag.scores import (\n    Method,\n    show,\n)") == ["from besag.scores import show"]
    assert "import besag.buckets" in private("import besag.buckets as b")
    assert private("besag.laod()") == ["besag.laod"]


def test_everything_public_exists():
    assert PUBLIC["besag"] == set(besag.__all__)
    missing = [
        f"{module}.{name}"
        for module, names in PUBLIC.items()
        for name in names
        if not hasattr(importlib.import_module(module), name)
    ]
    assert missing == []


def test_the_verbs_of_a_model_are_listed():
    said = re.search(r"^The verbs of a `LanguageModel`: (.*?)\.\n", PAGE, re.MULTILINE | re.DOTALL)[1]
    verbs, made_from = (re.findall(r"`(\w+)`", part) for part in said.split(";"))
    public = [name for name, _ in inspect.getmembers(besag.LanguageModel, callable) if not name.startswith("_")]
    assert sorted(verbs) == sorted(public)
    lm = besag.load(besag.Table.random(2, 2))
    assert all(hasattr(lm, name) for name in made_from)
    assert sorted(made_from) == sorted({"dtype", *(name for name in vars(lm) if not name.startswith("_"))})


def test_the_reference_shows_what_is_public():
    shown = [
        name
        for page in sorted((ROOT / "docs" / "api").glob("*.md"))
        for name in re.findall(r"^\.\. auto\w+:: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(shown) == len(set(shown))
    public = {f"{module}.{name}" for module, names in PUBLIC.items() for name in names}
    assert [name for name in shown if name not in public and name not in PUBLIC] == []
    assert {f"besag.{name}" for name in besag.__all__} - set(shown) == {"besag.BesagError", "besag.IDLE"}
