"""Everything public of the lab says what it takes and gives, and its examples give what they show."""

import doctest
import inspect

import pytest

from besag import lab
from besag.lab import chains, dictionary, oracles

PUBLIC = {
    **{name: getattr(lab, name) for name in lab.__all__},
    **{f"chains.{name}": getattr(chains, name) for name in chains.__all__},
    "dictionary.dictionary": dictionary.dictionary,
    "oracles.check_kernel": oracles.check_kernel,
}
VERBS = {name: one for name, one in PUBLIC.items() if inspect.isfunction(one)}


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_says_what_it_takes_and_gives(name):
    said = inspect.getdoc(VERBS[name])
    assert "\nReturns:\n" in said
    missing = [one for one in inspect.signature(VERBS[name]).parameters if f"\n    {one}: " not in said]
    assert not missing, f"{name} does not say what {missing} are"


@pytest.mark.parametrize("name", VERBS)
def test_the_example_of_a_verb_gives_what_it_shows(name):
    [example] = doctest.DocTestFinder(recurse=False).find(VERBS[name], name, module=False, globs={})
    assert example.examples
    said: list[str] = []
    doctest.DocTestRunner().run(example, out=said.append)
    assert not said, "".join(said)


def test_every_name_is_there():
    assert sorted(lab.__all__) == sorted(set(lab.__all__))
    assert all(inspect.getdoc(getattr(lab, name)) for name in lab.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = lab.nothing
