"""Few shots: solved examples that stand before a question, each written as the question is, with its answer in the gap.

    prompt = example_1 ⏎ … ⏎ example_k ⏎ the row with its gap

The same examples stand before every row. They are drawn by a seed, labels taking turns, so that no label leads by its
number alone. Knows texts, no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from besag import noise
from besag.errors import BesagError, nearest
from besag.noise import Prompting
from besag.templates import around


def drawn(rows: Sequence[Mapping[str, Any]], label: str, shots: int, seed: int) -> list[Mapping[str, Any]]:
    """So many examples: in an order drawn by the seed, the first of each label, then the second of each …

    >>> rows = [{"label": "a"}, {"label": "a"}, {"label": "b"}]
    >>> sorted(row["label"] for row in drawn(rows, "label", 2, seed=0))
    ['a', 'b']
    """
    if shots > len(rows):
        raise BesagError(f"shots={shots}: {len(rows)} examples were given; give as many, or more")
    order = np.argsort(noise.uniform(seed, Prompting.SHOTS, np.arange(len(rows))), kind="stable")
    by_label: dict[str, list[Mapping[str, Any]]] = {}
    for place in order.tolist():
        by_label.setdefault(right_answer(rows[place], label), []).append(rows[place])
    in_turn = chain.from_iterable(zip_longest(*by_label.values()))
    return [row for row in in_turn if row is not None][:shots]


def lead(
    template: str, rows: Sequence[Mapping[str, Any]], label: str, words: Mapping[str, Sequence[str]] | None,
    between: str,
) -> str:  # fmt: skip
    """The solved examples, as they stand before a prompt; a label is written by the first of its words."""
    lines = []
    for row in rows:
        name = right_answer(row, label)
        if words is not None and name not in words:
            raise BesagError(
                f"an example is labelled {name!r}, and labels has {', '.join(words)}.{nearest(name, words)}"
            )
        before, after = around(template, row)
        lines.append(before + (name if words is None else words[name][0]) + after + between)
    return "".join(lines)


def right_answer(row: Mapping[str, Any], label: str) -> str:
    if row.get(label) is None:
        raise BesagError(f"a row has no {label!r}: it has {', '.join(row)}.{nearest(label, row)}")
    return str(row[label])
