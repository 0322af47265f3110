"""An exact finite distribution: the whole joint p(x_1 … x_n) over V^n, answering any question by marginalisation.

For hidden places K and shown values s:  logit(x_i = v) = log p(x_i = v, shown) = log Σ_{x_K : x_i = v} p(x_K, s).
Every method is tested against brute force on such a table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from besag.checks import array, checked, number, whole_number
from besag.conditionals.contract import Questions
from besag.errors import BesagError, quoted
from besag.vocabulary import Vocabulary

MOST_PLACES = 64  # as many axes as numpy has
LARGEST = 2**27  # weights: a gibibyte


class Exact(ABC):
    """What exact conditionals share: float64 on the CPU, logits = log joint, hidden places only, grouped by mask."""

    name = "exact"
    sees: Literal["both", "left"] = "both"
    max_length: int | None = None
    device = torch.device("cpu")
    dtype = torch.float64
    pads = False

    def __init__(self, places: int, symbols: list[str]) -> None:
        self.places, self.width = places, len(symbols)
        self.vocabulary = Vocabulary.of_symbols(symbols)

    @abstractmethod
    def log_joint(self, hidden: list[int], shown: list[int], values: Tensor) -> Tensor:
        """log p(x_hidden, shown) for each row of shown values (G, |shown|): (G, V, …, V), one axis a hidden place."""

    def rows(self, questions: Questions) -> Tensor:
        ids, row, place = questions.ids, questions.row, questions.place
        if ids.shape[1] != self.places:
            raise BesagError(f"{self.name!r} is a law of sequences of {self.places} symbols; got one of {ids.shape[1]}")
        hides = ids == self.width  # (N, L); the mask id comes right after the symbols
        if not bool(hides[row, place].all()):
            raise BesagError(f"{self.name!r} answers hidden places only; a shown place was asked")
        answers = torch.empty(len(row), self.width, dtype=self.dtype)
        patterns, pattern_of = torch.unique(hides, dim=0, return_inverse=True)
        for which, pattern in enumerate(patterns):
            members = torch.nonzero(pattern_of == which)[:, 0]  # (G,)
            hidden, shown = torch.nonzero(pattern)[:, 0].tolist(), torch.nonzero(~pattern)[:, 0].tolist()
            joint = self.log_joint(hidden, shown, ids[members][:, shown])  # (G, V, …, V)
            impossible = torch.logsumexp(joint.flatten(1), 1) == -torch.inf
            if bool(impossible.any()):
                example = ids[members[impossible.nonzero()[0, 0]]].tolist()
                raise BesagError(
                    f"{self.name!r} gives what is shown probability 0, so nothing can be conditioned on it: "
                    + " ".join(map(self.vocabulary.token, example))
                )
            position = torch.full((len(ids),), -1)
            position[members] = torch.arange(len(members))
            for axis, asked in enumerate(hidden):
                asks = torch.nonzero((pattern_of[row] == which) & (place == asked))[:, 0]
                others = [other + 1 for other in range(len(hidden)) if other != axis]
                marginal = torch.logsumexp(joint, others) if others else joint  # (G, V)
                answers[asks] = marginal[position[row[asks]]]
        return answers

    def head(self, rows: Tensor) -> Tensor:
        return rows


class Table(Exact):
    """The joint itself, as a tensor of V × … × V non-negative weights (they are normalised)."""

    @checked
    def __init__(self, joint: ArrayLike, symbols: Sequence[str] | None = None, name: str = "table") -> None:
        weights = torch.as_tensor(array(joint, "joint"))
        if weights.ndim == 0 or len(set(weights.shape)) != 1:
            raise BesagError(f"a table needs one axis of V symbols a place; got the shape {tuple(weights.shape)}")
        if not bool((weights >= 0).all()) or not 0 < float(weights.sum()) < float("inf"):
            raise BesagError("a table needs finite non-negative weights, not all of them zero")
        names = [f"s{symbol}" for symbol in range(len(weights))] if symbols is None else list(symbols)
        if len(names) != len(weights):
            raise BesagError(f"{len(names)} symbols were named for a table of {len(weights)}: {quoted(names)}")
        super().__init__(weights.ndim, names)
        self.name = name
        self.log_probs = (weights / weights.sum()).log()  # (V, …, V)

    @classmethod
    @checked
    def random(cls, width: int, places: int, seed: int = 0, concentration: float = 0.5) -> Table:
        """A joint drawn from a symmetric Dirichlet: small `concentration` gives strong dependence."""
        whole_number(places, "places", most=MOST_PLACES)
        if whole_number(width, "width") ** places > LARGEST:
            raise BesagError(f"a table of {places} places of {quoted(width)} symbols has over {LARGEST:,} weights")
        whole_number(seed, "seed", least=0)
        number(concentration, "concentration", least=1e-9, most=1e9)
        weights = np.random.default_rng(seed).gamma(concentration, size=(width,) * places)
        return cls(weights + 1e-12)

    def log_joint(self, hidden: list[int], shown: list[int], values: Tensor) -> Tensor:
        moved = self.log_probs.permute(*shown, *hidden)
        return moved[tuple(values.unbind(1))] if shown else moved.expand(len(values), *moved.shape)
