"""The contract: who answers "what stands at this place, given what is shown?".

Knows no tokenizer, no batch size, no device policy. Methods plan `Questions`; the engine hands them, one length at a
time, to a `Conditionals`; logits come back.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from besag.errors import BesagError
from besag.vocabulary import Vocabulary

NOTHING: Mapping[str, Tensor] = MappingProxyType({})


class Questions(NamedTuple):
    """Asks about N sequences of one length L. Asks are flat: a sequence may be asked about any number of places."""

    ids: Tensor  # (N, L), the mask id where a place is hidden
    row: Tensor  # (M,) which sequence
    place: Tensor  # (M,) which position of it
    target: Tensor | None = None  # (M,) or (M, t) the tokens whose probability, logit or rank is wanted
    context: Mapping[str, Tensor] = NOTHING  # (N, ...) token types, attention mask, an encoder's source ...
    uniform: Tensor | None = (
        None  # (M,) float64 in (0, 1): the noise of a draw, a function of (seed, chain, step, place)
    )


@runtime_checkable
class Conditionals(Protocol):
    """Answers p(x_i | what is shown) over one vocabulary.

    `rows` runs the network and keeps the asked places; `head` turns kept rows into logits, so that the engine can cut a
    vocabulary of 250,000 into affordable chunks. Logits, not log-probabilities: the engine normalises over `width`.
    """

    name: str
    vocabulary: Vocabulary
    sees: Literal["both", "left"]  # a causal model answers from the left only; methods say what they need
    width: int  # V, the width that normalises; some heads are wider than their tokenizer
    max_length: int | None  # most positions in one sequence, special tokens included; None: no limit
    device: torch.device
    dtype: torch.dtype
    pads: (
        bool  # may sequences of different lengths share a batch, with context["attention_mask"] saying where they end?
    )

    def rows(self, questions: Questions) -> Tensor: ...  # (M, H)

    def head(self, rows: Tensor) -> Tensor: ...  # (M, V) logits


def require_both_sides(conditionals: Conditionals, what: str = "this") -> None:
    """Refuse a causal model, in one sentence everywhere."""
    if conditionals.sees != "both" or conditionals.vocabulary.mask_id is None:
        raise BesagError(f"{conditionals.name!r} sees the left side of a place only: {what} needs a masked model.")


def gives_zeros(conditionals: Conditionals) -> bool:
    """Can it give what is asked the probability 0? An exact law can.

    The softmax of a network cannot: a log-probability of −∞ then comes of a number that overflowed, or of a token that
    was masked in the network itself, and says nothing about a text.
    """
    return getattr(conditionals, "model", None) is None
