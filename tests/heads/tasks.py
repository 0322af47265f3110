"""A small task of each kind, and a small masked network to put heads on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tests import networks

ANIMALS = ("cat", "dogs")


def start(folder: Path, family: str = "bert") -> str:
    """A folder with a random masked network."""
    networks.tiny(family, initializer_range=0.05).save_pretrained(folder)
    networks.vocabulary(family).tokenizer.save_pretrained(folder)
    return str(folder)


def texts(path: Path, count: int = 160, seed: int = 0) -> str:
    """The label is the animal: a text holds one of two, among other words."""
    draw = np.random.default_rng(seed)
    others = ["the", "a", "on", "mat", "night", "table", "she"]
    lines = ["text\tlabel"]
    for _ in range(count):
        words = list(draw.choice(others, size=draw.integers(2, 6)))
        animal = ANIMALS[draw.integers(2)]
        words.insert(int(draw.integers(len(words) + 1)), animal)
        lines.append(f"{' '.join(words)}\t{animal}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def tags(path: Path, count: int = 160, seed: int = 0) -> str:
    """Animals are spans of one word, the rest is nothing; some words have several pieces."""
    draw = np.random.default_rng(seed)
    others = ["the", "a", "on", "traveller", "night", "casino"]
    rows = []
    for _ in range(count):
        words = [str(word) for word in draw.choice([*others, *ANIMALS], size=draw.integers(3, 7))]
        rows.append({"words": words, "tags": ["B-ANIMAL" if word in ANIMALS else "O" for word in words]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)
