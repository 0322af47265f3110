"""Every public verb says what it takes and gives, and shows it: the examples in docstrings are run."""

import doctest
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import besag

ROOT = Path(__file__).parent.parent
VERBS: dict[str, Callable] = {
    name: getattr(besag, name) for name in besag.__all__ if inspect.isfunction(getattr(besag, name))
} | {
    f"lm.{name}": kind
    for name, kind in inspect.getmembers(besag.LanguageModel, inspect.isfunction)
    if not name.startswith("_")
}
IMPERATIVES = {
    "Attribute", "Benchmark", "Compute", "Condition", "Correct", "Estimate", "Find", "Fit", "Generate", "Infill",
    "Load", "Map", "Match", "Predict", "Rank", "Record", "Replace", "Sample", "Score", "Switch", "Test", "Translate",
}  # fmt: skip
RESULTS = {name: getattr(besag, name) for name in besag.__all__ if inspect.isclass(getattr(besag, name))}


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


pages = _load(ROOT / "docs" / "outputs.py")


class About(doctest.OutputChecker):
    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return pages.alike(want, got)


@pytest.fixture
def stage() -> Iterator[None]:
    with pages.stage():
        yield


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_says_what_it_takes_and_gives(name):
    said = inspect.getdoc(VERBS[name])
    assert "\nReturns:\n" in said
    assert "\nExamples:\n" in said
    taken = [one for one in inspect.signature(VERBS[name]).parameters if one != "self"]
    missing = [one for one in taken if f"\n    {one}: " not in said]
    assert not missing, f"{name} does not say what {missing} are"


@pytest.mark.parametrize("name", ["load", *(name for name in VERBS if name.startswith("lm."))])
def test_the_first_line_of_a_method_is_one_imperative_sentence(name):
    first, _, rest = inspect.getdoc(VERBS[name]).partition("\n")
    assert first.split()[0] in IMPERATIVES
    assert first.endswith(".")
    assert rest.startswith("\n")


@pytest.mark.parametrize("name", VERBS)
def test_the_example_of_a_verb_gives_what_it_shows(name, stage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [example] = doctest.DocTestFinder(recurse=False).find(
        VERBS[name], name, module=False, globs={"besag": besag, "lm": pages.embedded()}
    )
    assert example.examples
    said: list[str] = []
    doctest.DocTestRunner(checker=About()).run(example, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("name", RESULTS)
def test_what_is_public_is_explained(name):
    kind = RESULTS[name]
    assert inspect.getdoc(kind)
    silent = [
        one
        for one, member in vars(kind).items()
        if inspect.isfunction(member) and not one.startswith("_") and not inspect.getdoc(member)
    ]
    assert not silent, f"{name} has no word about {silent}"
