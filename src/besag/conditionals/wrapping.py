"""Conditionals that change the answers of others, and are as they are in all else. Knows the contract alone."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor

from besag.conditionals.contract import Conditionals, Questions


class Wrapping:
    """`inner` answers; who derives from this says under which name, and what becomes of the logits."""

    def __init__(self, inner: Conditionals, name: str) -> None:
        self.inner, self.name = inner, name
        self.vocabulary = inner.vocabulary
        self.sees: Literal["both", "left"] = inner.sees
        self.width, self.max_length = inner.width, inner.max_length
        self.device, self.dtype, self.pads = inner.device, inner.dtype, inner.pads

    def __getattr__(self, name: str) -> Any:  # what only some have: the network, the token before a text …
        if name == "inner":  # not there yet: a copy being made
            raise AttributeError(name)
        return getattr(self.inner, name)

    def rows(self, questions: Questions) -> Tensor:
        return self.inner.rows(questions)
