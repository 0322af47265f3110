"""Every public function of the lab says what it takes and gives, and shows it: the examples in docstrings are run."""

import doctest
import inspect

import pytest

import besag.lab
from besag.lab import chains, dictionary, oracles

FUNCTIONS = {
    **{f"lab.{name}": getattr(besag.lab, name) for name in besag.lab.__all__},
    **{f"lab.chains.{name}": getattr(chains, name) for name in chains.__all__},
    "lab.dictionary.dictionary": dictionary.dictionary,
    "lab.oracles.check_kernel": oracles.check_kernel,
}
FUNCTIONS = {name: one for name, one in FUNCTIONS.items() if inspect.isfunction(one)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_says_what_it_takes_and_gives(name):
    said = inspect.getdoc(FUNCTIONS[name])
    assert "\nReturns:\n" in said
    assert "\nExamples:\n" in said
    taken = list(inspect.signature(FUNCTIONS[name]).parameters)
    missing = [one for one in taken if f"\n    {one}: " not in said]
    assert not missing, f"{name} does not say what {missing} are"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_its_example_gives_what_it_shows(name):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    [test] = doctest.DocTestFinder(recurse=False).find(FUNCTIONS[name], name, globs={})
    report = []
    runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
