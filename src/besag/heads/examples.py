"""Labelled examples from files: texts with a label each, or words with a tag each.

Knows columns by name. Refuses rows that miss one, and a task of a single label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from besag import noise
from besag.errors import BesagError, nearest, quoted
from besag.files import columns, rows
from besag.heads.recipe import Task
from besag.noise import Training


class Example(NamedTuple):
    """Words with spaces between are a text."""

    words: tuple[str, ...]  # of a classifier one: the text
    labels: tuple[str, ...]  # as many

    @property
    def text(self) -> str:
        return " ".join(self.words)


class Split(NamedTuple):
    train: tuple[Example, ...]
    valid: tuple[Example, ...]
    names: tuple[str, ...]  # (C,) all labels of `train`, sorted


def split(task: Task, seed: int) -> Split:
    """The examples of a task, and those held out: of a file of their own, or drawn from the others by the seed."""
    train = tuple(read(task.train, task))
    if task.valid is not None:
        valid = tuple(read(task.valid, task))
    else:
        aside = noise.uniform(seed, Training.HEAD_SPLIT, np.arange(len(train))) < task.held_out
        valid = tuple(one for one, out in zip(train, aside, strict=True) if out)
        train = tuple(one for one, out in zip(train, aside, strict=True) if not out)
        if not valid or not train:
            raise BesagError(
                f"task.held_out = {task.held_out:g} of {len(aside)} examples leaves {len(train)} to learn from and "
                f"{len(valid)} to measure on: name a file in task.valid"
            )
    names = tuple(sorted({label for one in train for label in one.labels}))
    if len(names) < 2:
        raise BesagError(f"{task.train} has only the label {names[0]!r}: a task needs at least two")
    known = set(names)
    for one in valid:
        for label in one.labels:
            if label not in known:
                raise BesagError(
                    f"the label {quoted(label)} of {quoted(one.text)} is held out, and no example to learn from has "
                    f"it.{nearest(label, names)}"
                )
    return Split(train, valid, names)


def read(path: str, task: Task) -> Iterator[Example]:
    """The examples in a file, in order."""
    plain = rows.format_of(path) == "text"
    found = None
    for found in rows.read(path, "tsv" if plain else None):
        values: Mapping[str, object] = found.values if isinstance(found.values, Mapping) else {}
        text, label = (columns.value(values, name, found.where) for name in (task.text, task.label))
        yield _tagged(text, label, found.where) if task.kind == "tag" else _labelled(text, label, found.where)
    if found is None:
        raise BesagError(f"{path} has no rows")


def _labelled(text: Any, label: Any, where: str) -> Example:
    if not isinstance(text, str) or not text.strip():
        raise BesagError(f"{where}: the text is {quoted(text)}: give a text")
    if isinstance(label, bool) or not isinstance(label, str | int | float) or not str(label).strip():
        raise BesagError(f"{where}: the label is {quoted(label)}: give a word or a number")
    return Example((text,), (str(label),))


def _tagged(words: Any, tags: Any, where: str) -> Example:
    parts = [one.split() if isinstance(one, str) else one for one in (words, tags)]
    for said, part in zip((words, tags), parts, strict=True):
        if not isinstance(part, list) or not part or not all(isinstance(one, str) and one.strip() for one in part):
            raise BesagError(f"{where}: {quoted(said)} are no words: give a list of them, or spaces between")
    if len(parts[0]) != len(parts[1]):
        raise BesagError(f"{where}: {len(parts[0])} words and {len(parts[1])} tags: give a tag for each word")
    return Example(tuple(parts[0]), tuple(parts[1]))
