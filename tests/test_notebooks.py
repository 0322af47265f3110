"""The notebooks run, and show what their cells give. `python docs/notebooks.py` renews stale outputs."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


def _load(name: str) -> ModuleType:
    path = ROOT / "docs" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"docs_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


pages, notebooks = _load("outputs"), _load("notebooks")


@pytest.fixture
def stage() -> Iterator[None]:
    with pages.stage():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_its_cells_give(path, stage):
    said = ""
    for cell in notebooks.cells(path):
        assert kinds(cell.stored) == kinds(cell.made), cell.code
        now = notebooks.text(cell.made)
        assert cell.varies or pages.alike(notebooks.text(cell.stored), now), f"{cell.code}\ngives\n{now}"
        said += f"{now}\n"
    CONCLUSIONS.get(path.stem, lambda said: None)(said)


def kinds(outputs: list[dict]) -> list[list[str]]:
    return [sorted(output.get("data", ["text"])) for output in outputs]


def proteins(said: str) -> None:
    """What was trained differs a little between machines; what the page says of it does not."""
    contacts = re.findall(r"^ [12]  \w \((\d+)\) +\w \((\d+)\)", said, re.MULTILINE)
    assert sorted(contacts) == [("3", "10"), ("5", "8")]
    bridge = re.search(r"^ag .*?nats(.*)$", said, re.MULTILINE)[1]
    assert set(re.findall(r"\b[A-Z]{2}\b", bridge)[:4]) == {"DR", "RD", "EK", "KE"}
    effect = {name: float(value) for name, value in re.findall(r"^(\w+(?: \+ \w+)?) +(-?[\d.]+)", said, re.MULTILINE)}
    assert max(effect["M1L"], effect["R3D"], effect["G7A"], effect["D10R"]) < -3 < min(effect["V4I"], effect["T9S"])
    assert effect["R3D + D10R"] > -3
    assert int(re.search(r"(\d) of 6 have the glutamate", said)[1]) >= 5


CONCLUSIONS = {"proteins": proteins}


def test_a_cell_has_the_outputs_that_jupyter_would_store():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.close("all")  # of other tests
    namespace: dict[str, object] = {}
    assert notebooks.run("a = 2\nprint('said')", namespace, 1, "here") == [
        {"name": "stdout", "output_type": "stream", "text": ["said\n"]}
    ]
    [result] = notebooks.run("a + 1", namespace, 2, "here")
    assert result["data"] == {"text/plain": ["3"]}
    assert notebooks.run("a + 1;", namespace, 3, "here") == []
    [picture] = notebooks.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]);", namespace, 4, "here")
    assert list(picture["data"]) == ["image/png"]
