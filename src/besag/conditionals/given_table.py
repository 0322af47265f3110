"""An exact law of texts given sources: p(x, s) for a few sources s, each a table over V^n.

    p(x_i = v | shown, s) = Σ_{x_K : x_i = v} p(x_K, shown, s) / Σ_{x_K} p(x_K, shown, s)

Sources are texts of symbols of their own, of any lengths. What is made of a source is its ids: the network of a table
is the list of its sources. Everything that is asked with a source is tested against brute force on such a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from besag.arrays import Ints
from besag.checks import checked
from besag.conditionals.contract import SOURCE_MASK, SOURCE_STATES, Conditionals, Questions
from besag.conditionals.table import Table
from besag.errors import BesagError, nearest, quoted


class GivenTable:
    """p(x | s) from weights p(x, s): for each source a tensor of V × … × V of them, all of one shape.

    How likely a source is, its sum, makes no difference: sources are given.

    Examples:
        >>> lm = besag.load(besag.GivenTable({"zwei": [0.1, 0.4], "drei Katzen": [0.2, 0.1]}, symbols=["one", "more"]))
        >>> lm.given("zwei").score("more", "chain").total == lm.score("more", "chain", sources="zwei").total
        True
        >>> round(lm.given("drei Katzen").score("more", "chain").total, 3)  # log of a third
        -1.099
    """

    sees: Literal["both", "left"] = "both"
    max_length: int | None = None
    max_source: int | None = None
    device = torch.device("cpu")
    dtype = torch.float64
    pads = False

    @checked
    def __init__(
        self, joints: Mapping[str, ArrayLike], symbols: Sequence[str] | None = None, name: str = "given table"
    ) -> None:
        if not joints:
            raise BesagError("a table of texts given sources needs a source at least: {source: weights, …}")
        tables = {source: Table(weights, symbols, name) for source, weights in joints.items()}
        first, law = next(iter(tables.items()))
        for source, table in tables.items():
            if table.log_probs.shape != law.log_probs.shape:
                raise BesagError(
                    f"the tables of {quoted(first)} and {quoted(source)} have the shapes {tuple(law.log_probs.shape)} "
                    f"and {tuple(table.log_probs.shape)}: texts have one length and one set of symbols, whatever the "
                    "source"
                )
        self.name, self.vocabulary, self.width, self.places = name, law.vocabulary, law.width, law.places
        self.sources = {source: tuple(source.split()) if isinstance(source, str) else () for source in tables}
        if not all(self.sources.values()) or len({*self.sources.values()}) < len(tables):
            raise BesagError(f"the sources {quoted([*tables])} must be texts that differ, of one symbol at least")
        self.numbers = {one: i for i, one in enumerate(dict.fromkeys(s for key in self.sources.values() for s in key))}
        self.laws: dict[tuple[int, ...], Conditionals] = {
            tuple(self.source_ids([source])[0].tolist()): table for source, table in tables.items()
        }

    def source_ids(self, texts: Sequence[str]) -> list[Ints]:
        """The numbers of the symbols of each source; one without a table is refused."""
        known = {*self.sources.values()}
        for text in texts:
            if tuple(text.split()) not in known:
                raise BesagError(
                    f"{self.name!r} has no table for the source {quoted(text)}.{nearest(text, self.sources)}"
                )
        return [np.array([self.numbers[symbol] for symbol in text.split()], np.int64) for text in texts]

    def encode(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """(S, T, 1) what is made of sources (S, T): themselves."""
        return ids[..., None].double()

    def rows(self, questions: Questions) -> Tensor:
        """(M, V) log p(x_i = v, what is shown, s) at the asked places."""
        ids, row, place, context = questions.ids, questions.row, questions.place, questions.context
        sources = context[SOURCE_STATES][..., 0].long()  # (N, T)
        if SOURCE_MASK in context:
            sources = sources.masked_fill(context[SOURCE_MASK] == 0, -1)
        distinct, which = torch.unique(sources, dim=0, return_inverse=True)
        answers = torch.empty(len(row), self.width, dtype=self.dtype)
        for number in which[row].unique().tolist():
            law = self.laws[tuple(symbol for symbol in distinct[number].tolist() if symbol >= 0)]
            members = which == number  # (N,)
            asks = members[row]
            answers[asks] = law.rows(Questions(ids[members], (members.cumsum(0) - 1)[row[asks]], place[asks]))
        return answers

    def head(self, rows: Tensor) -> Tensor:
        """The rows as they are."""
        return rows
