"""One base for all that has a name: options as data, refused alike, and registries that are whole whoever is asked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from besag.errors import BesagError
from besag.joints import CONSTRUCTIONS, construction
from besag.masks import LAWS, law
from besag.references import BIBTEX
from besag.registry import NEEDED, Accepts, Named, Registry, options, written
from besag.samplers import KERNELS, kernel
from besag.scores import METHODS, method
from besag.training.objectives import OBJECTIVES

ALL: dict[str, Registry[Any]] = {
    "scores.registry.METHODS": METHODS,
    "joints.registry.CONSTRUCTIONS": CONSTRUCTIONS,
    "masks.law.LAWS": LAWS,
    "training.objectives.objective.OBJECTIVES": OBJECTIVES,
    "samplers.kernel.KERNELS": KERNELS,
}
EVERY = [(registry, name) for registry in ALL.values() for name in registry]


@pytest.mark.parametrize(("registry", "name"), EVERY, ids=[f"{one.what} {name}" for one, name in EVERY])
def test_all_say_what_they_are(registry: Registry[Any], name: str) -> None:
    kind = registry[name]
    assert issubclass(kind, Named)
    assert kind.title
    assert kind.title == kind.title.rstrip(".")
    assert isinstance(kind.cite, tuple)
    assert set(kind.cite) <= set(BIBTEX)
    for option in options(kind):
        assert option.meaning, f"{name} does not say what {option.name} means"
        assert option.default is NEEDED or option.accepts.takes(option.default)
    for alias in kind.aliases:
        assert registry.find(alias) is kind


def an_objective(name: str, **given: object) -> object:
    return OBJECTIVES.find(name)(None, **given)


@pytest.mark.parametrize(
    ("make", "name", "option", "nearly", "wrong", "type_"),
    [
        (method, "chain", "orders", "ordrs", "three", "a whole number"),
        (construction, "ag", "limit", "limt", 1.5, "a whole number"),
        (law, "span", "longest", "longst", None, "a whole number"),
        (an_objective, "mae", "layers", "layrs", "four", "a whole number"),
        (kernel, "gibbs", "top_p", "top_q", "most", "a number or none"),
    ],
)
def test_all_refuse_alike(
    make: Callable[..., Any], name: str, option: str, nearly: str, wrong: object, type_: str
) -> None:
    with pytest.raises(BesagError, match=rf"the [\w ]+ '{name}' has no option '{nearly}': it takes .*'{option}'\?"):
        make(name, **{nearly: 1})
    with pytest.raises(BesagError, match=rf"the [\w ]+ '{name}' with {option}={wrong!r}: give {type_}"):
        make(name, **{option: wrong})


def test_a_word_that_is_not_one_is_answered_with_the_nearest_also_without_the_registry() -> None:
    from besag.scores.chain import Chain

    with pytest.raises(BesagError, match=r"with order='rndom': give one of left-to-right, .*Did you mean 'random'\?"):
        Chain("rndom")  # type: ignore[arg-type]
    with pytest.raises(BesagError, match="orders=True: give a whole number"):
        Chain(orders=True)


def test_options_are_data() -> None:
    [order, orders, seed] = options(METHODS["chain"])
    assert order.accepts == Accepts(words=("left-to-right", "right-to-left", "random", "confident"))
    assert (orders.name, orders.accepts.kinds, orders.default) == ("orders", ("int",), 1)
    assert str(seed) == "int, default 0: of random orders"
    [teacher, *_] = options(OBJECTIVES["distil"])
    assert (teacher.default, str(teacher).split(":")[0]) == (NEEDED, "any, needed")
    assert [written(value) for value in (None, True, 0.5, "a", (1, 2.0))] == ["none", "true", "0.5", "a", "[1, 2.0]"]


def test_a_label_names_what_is_unusual() -> None:
    assert construction("ag", weights="marginal", paper=True).label == "ag marginal paper"
    assert construction("order", direction="ab").label == "order a→b"
    assert kernel("gibbs", temperature=0.5).unusual == {"temperature": 0.5}


def test_what_is_registered_later_is_held_to_its_options_too() -> None:
    known: Registry[Any] = Registry("fruit")

    @known.register
    @dataclass(frozen=True)
    class Apple(Named):
        name = "apple"
        title = "an apple"
        colour: Annotated[Literal["red", "green"], "of the skin"] = "red"

    assert known.find("apple")(colour="green") == Apple("green")
    with pytest.raises(BesagError, match=r"the fruit 'apple' with colour='gren': give one of red, green.*'green'"):
        Apple(colour="gren")  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ALL)
def test_a_registry_is_whole_whatever_was_imported(path: str) -> None:
    module, _, name = path.rpartition(".")
    code = f"from besag.{module} import {name}; print(*{name})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == [*ALL[path]]
