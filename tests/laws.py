"""Conditionals for tests: an arbitrary, incompatible family of conditionals, and a counter of what was run."""

from __future__ import annotations

import threading
from typing import Literal

import numpy as np
import torch

from besag.conditionals.contract import Conditionals, Questions
from besag.vocabulary import Vocabulary


class Arbitrary:
    """Every (context, place) has logits of its own, drawn from a hash of them: conditionals of no joint law at all.

    Answers shown places too (so one-pass methods can be tested), and, when `sees` is "left", from the left side only.
    """

    name = "arbitrary"
    device = torch.device("cpu")
    dtype = torch.float64
    pads = False
    bos_id: int | None

    def __init__(self, width: int = 3, sees: Literal["both", "left"] = "both", max_length: int | None = None) -> None:
        self.vocabulary = Vocabulary.of_symbols([f"s{number}" for number in range(width)])
        self.width, self.sees, self.max_length = width, sees, max_length
        self.bos_id = width if sees == "left" else None

    def logits(self, context: list[int], place: int) -> np.ndarray:
        seen = context[:place] if self.sees == "left" else context
        return np.random.default_rng([place, *seen]).normal(scale=2.0, size=self.width)

    def log_probs(self, context: list[int], place: int) -> np.ndarray:
        logits = self.logits(context, place)
        return logits - np.logaddexp.reduce(logits)

    def rows(self, questions: Questions) -> torch.Tensor:
        ids = questions.ids.tolist()
        pairs = zip(questions.row.tolist(), questions.place.tolist(), strict=True)
        return torch.from_numpy(np.stack([self.logits(ids[row], place) for row, place in pairs]))

    def head(self, rows: torch.Tensor) -> torch.Tensor:
        return rows


class Held(Arbitrary):
    """Answers once it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go = threading.Event(), threading.Event()

    def rows(self, questions: Questions) -> torch.Tensor:
        self.asked.set()
        assert self.go.wait(60)
        return super().rows(questions)


class Counting:
    """Passes every question on, and remembers the sequences that were run."""

    def __init__(self, inner: Conditionals) -> None:
        self.inner = inner
        self.batches: list[list[tuple[int, ...]]] = []
        self.head_rows = 0

    def __getattr__(self, name: str):
        return getattr(self.inner, name)

    @property
    def sequences(self) -> list[tuple[int, ...]]:
        return [sequence for batch in self.batches for sequence in batch]

    def rows(self, questions: Questions) -> torch.Tensor:
        self.batches.append([tuple(row) for row in questions.ids.tolist()])
        return self.inner.rows(questions)

    def head(self, rows: torch.Tensor) -> torch.Tensor:
        self.head_rows += len(rows)
        return self.inner.head(rows)
