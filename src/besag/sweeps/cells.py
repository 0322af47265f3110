"""The runs of a sweep: every recipe with every choice of the keys that vary. Knows what runs are called, runs none."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from besag.errors import BesagError, quoted
from besag.training.recipe import Recipe, recipe_of
from besag.training.recipe.values import override

Source: TypeAlias = Recipe | str | Path | Mapping[str, Any]
MOST = 1000  # runs
LONGEST = 120  # letters of a name, which is that of a folder
UNFIT = re.compile(r"[^\w.=,+-]+")  # in the name of a folder


class Cell(NamedTuple):
    """One run."""

    name: str
    recipe: Recipe
    values: dict[str, Any]  # of the keys that vary; "recipe" is one of them where there are several


def cells(recipes: Sequence[Source], vary: Mapping[str, Sequence[Any]], folder: Path) -> list[Cell]:
    """Recipes × values, each checked as `besag train` would; `"a:b"` varies two keys together, with pairs of values."""
    if not recipes:
        raise BesagError("there is no recipe to train: give one, or several")
    choices = [_choices(keys, values) for keys, values in vary.items()]
    count = len(recipes)
    for one in choices:
        count *= len(one)
    if count > MOST:
        raise BesagError(f"that is {count:,} runs: at most {MOST:,} go into one sweep; vary less")
    short = _short([key for keys in vary for key in keys.split(":")])
    titles = [_title(one, place) for place, one in enumerate(recipes, 1)]
    found = []
    for (title, source), *chosen in itertools.product(zip(titles, recipes, strict=True), *choices):
        values = {key: value for one in chosen for key, value in one.items()}
        words = [f"{short[key]}={written(value)}" for key, value in values.items()]
        name = UNFIT.sub("-", ",".join([title, *words] if len(recipes) > 1 or not words else words))[:LONGEST]
        recipe = recipe_of(source, values, output=folder / name)
        found.append(Cell(name, recipe, ({"recipe": title} if len(recipes) > 1 else {}) | values))
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BesagError(f"two runs would be called {twice!r}: vary each key once, and give recipes different names")
    return found


def _choices(keys: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    """What is set in each of the runs: one key, or several together."""
    names = keys.split(":")
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise BesagError(f"{keys!r} varies over {quoted(values)}: give a list of at least one value")
    if len(names) == 1:
        return [{keys: value} for value in values]
    for value in values:
        if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != len(names):
            raise BesagError(f"{keys!r} varies over {quoted(value)}: give {len(names)} values, one for each key")
    return [dict(zip(names, value, strict=True)) for value in values]


def parsed(text: str) -> tuple[str, list[Any]]:
    """What --vary says: "masking.rate=0.15,0.3", "a.b:a.c=1:2,3:4", or a TOML list, 'masking.law=["span", "ngram"]'."""
    keys, equals, said = text.partition("=")
    keys, said = keys.strip(), said.strip()
    if not equals or not keys or not said:
        raise BesagError(f"--vary {quoted(text)}: write section.key=value,value, such as masking.rate=0.15,0.3")
    if said.startswith("["):
        found = _toml(said)
        if not isinstance(found, list):
            raise BesagError(f"--vary {quoted(text)}: what stands behind = is no TOML list")
        return keys, found
    parts = [one.strip() for one in said.split(",")]
    if not all(parts):
        raise BesagError(f"--vary {quoted(text)}: there is nothing between two commas")
    several = ":" in keys
    return keys, [[_toml(word) for word in one.split(":")] if several else _toml(one) for one in parts]


def _toml(word: str) -> Any:
    """A value as --set reads it."""
    return override(f"vary.value={word}")[1]


def written(value: Any) -> str:
    """A value in a name or a table."""
    return value if isinstance(value, str) else json.dumps(value, default=str).strip('"')


def _short(keys: Sequence[str]) -> dict[str, str]:
    """The last word of each key, where no other key has the same."""
    last = [key.rpartition(".")[2] for key in keys]
    return {key: own if last.count(own) == 1 else key for key, own in zip(keys, last, strict=True)}


def _title(source: Source, place: int) -> str:
    return Path(source).stem if isinstance(source, str | Path) else f"recipe-{place}"
