"""A head's recipe: what decides what a head learns, as one TOML file of four short sections.

The dataclasses are the one source of truth, as in `besag.training.recipe`: names, types and defaults are those of the
file. Paths in a file are relative to that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from besag.errors import BesagError, quoted
from besag.training.recipe import Changes
from besag.training.recipe import values as recipe_values
from besag.training.recipe.values import Bounds


@dataclass(frozen=True)
class Task:
    kind: Literal["classify", "tag"] = "classify"  # a label for each text, or for each word of it
    train: str = ""  # TSV, CSV or JSON Lines
    valid: str | None = None  # held out; nothing here: `held_out` of train is kept aside
    held_out: float = 0.1  # share of the examples
    text: str = "text"  # the column with the text; of a tagger the words, in a list or with spaces between
    label: str = "label"  # the column with the label; of a tagger the tags, as many as words
    max_length: int = 256  # tokens of one example, special tokens counted; what is longer is cut, and counted


@dataclass(frozen=True)
class Model:
    start: str = "embedded"  # a masked model: a folder, a hub name, or the embedded one


@dataclass(frozen=True)
class Tuning:
    epochs: int = 3  # readings of all examples
    batch: int = 32  # examples in a step
    lr: float = 1e-4  # at its highest
    head_lr: float = 1e-3  # of the weights that are new
    weight_decay: float = 0.01  # of matrices
    warmup: float = 0.1  # share of the steps in which the learning rate rises; it falls to 0 afterwards
    clip: float = 1.0  # largest norm of the gradient
    layer_decay: float = 1.0  # the learning rate of a layer is this share of that of the layer above it
    frozen: int = 0  # layers from the bottom, and the table of tokens, that stay as they are; 0: none
    smoothing: float = 0.0  # share of each label that is spread over all
    masked: bool = False  # hide a random share of the tokens of half of the examples, so that masks mean something


@dataclass(frozen=True)
class Run:
    output: str = "head"  # folder of the finished head
    seed: int = 0  # of everything that is random
    device: str = "auto"  # cpu, cuda, mps; auto: the fastest there is


@dataclass(frozen=True)
class HeadRecipe:
    task: Task = field(default_factory=Task)
    model: Model = field(default_factory=Model)
    tuning: Tuning = field(default_factory=Tuning)
    run: Run = field(default_factory=Run)


PATHS = ("task.train", "task.valid", "run.output")
PATHS_OR_NAMES = ("model.start",)
BOUNDS = {
    "task.held_out": Bounds(0.0, 0.9, low_open=True),
    "task.max_length": Bounds(4, 100_000),
    "tuning.epochs": Bounds(1, 1000),
    "tuning.batch": Bounds(1, 100_000),
    "tuning.lr": Bounds(0.0, 1.0),
    "tuning.head_lr": Bounds(0.0, 1.0),
    "tuning.weight_decay": Bounds(0.0, 1.0),
    "tuning.warmup": Bounds(0.0, 1.0),
    "tuning.clip": Bounds(0.0, 1e6, low_open=True),
    "tuning.layer_decay": Bounds(0.0, 1.0, low_open=True),
    "tuning.frozen": Bounds(0, 1000),
    "tuning.smoothing": Bounds(0.0, 1.0, high_open=True),
    "run.seed": Bounds(0, 2**31),
}


def recipe_of(
    source: HeadRecipe | str | Path | Mapping[str, Any], changes: Changes = (), *, output: str | Path | None = None
) -> HeadRecipe:
    """A recipe from whatever says one: itself, a file, or a table of tables as a file has them; all of it checked."""
    name = str(source) if isinstance(source, str | Path) else "the recipe"
    if isinstance(source, str | Path):
        table = recipe_values.of_file(source, PATHS, PATHS_OR_NAMES, Run.output)
    elif isinstance(source, HeadRecipe | Mapping):
        plain = recipe_values.as_table(source) if isinstance(source, HeadRecipe) else source
        table = recipe_values.copied(plain, name)
    else:
        raise BesagError(f"{quoted(source)} is no recipe of a head: give a file, a table of tables or a HeadRecipe")
    given = recipe_values.overrides(changes)
    given += [(("run", "output"), str(output))] if output is not None else []
    recipe_values.put(table, given)
    found: HeadRecipe = recipe_values.fill(HeadRecipe, table, name, BOUNDS)
    if not found.task.train:
        raise BesagError(f"{name}: task.train names no file: give a TSV, CSV or JSON Lines file with labelled examples")
    return found
