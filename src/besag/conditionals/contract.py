"""The contract: who answers "what stands at this place, given what is shown?".

Knows no tokenizer, no batch size, no device policy. Methods plan `Questions`; the engine hands them, one length at a
time, to a `Conditionals`; logits come back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from besag.arrays import Ints
from besag.errors import BesagError
from besag.vocabulary import Vocabulary

NOTHING: Mapping[str, Tensor] = MappingProxyType({})


SOURCE_STATES = "encoder_hidden_states"  # (N, T, H) in a context: what `encode` made of the source of each sequence
SOURCE_MASK = "encoder_attention_mask"  # (N, T) beside it, 1 where a source has a token; absent where none is padded


class Given(NamedTuple):
    """Which source each of N sequences is given: p(x_i | what is shown, s). Many sequences may share one source."""

    sources: tuple[Ints, ...]  # (T,) token ids of each, its special tokens included; equal ids are one source
    which: Ints  # (N,) the number of its source, on the host

    @classmethod
    def one(cls, source: Ints, count: int) -> Given:
        """The same source for all."""
        return cls((source,), np.zeros(count, np.int64))

    def rows(self, index: Tensor | Ints | slice) -> Given:
        """The sources of some of the sequences, or of copies of them."""
        return self._replace(which=self.which[index.numpy(force=True) if isinstance(index, Tensor) else index])


class Questions(NamedTuple):
    """Asks about N sequences of one length L. Asks are flat: a sequence may be asked about any number of places."""

    ids: Tensor  # (N, L), the mask id where a place is hidden
    row: Tensor  # (M,) which sequence
    place: Tensor  # (M,) which position of it
    target: Tensor | None = None  # (M,) or (M, t) the tokens whose probability, logit or rank is wanted
    context: Mapping[str, Tensor] = NOTHING  # (N, ...) token types, attention mask, what an encoder made of a source …
    uniform: Tensor | None = (
        None  # (M,) float64 in (0, 1): the noise of a draw, a function of (seed, chain, step, place)
    )
    given: Given | None = None  # the sources; the engine turns them into SOURCE_STATES and SOURCE_MASK of the context


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


@runtime_checkable
class GivenSource(Conditionals, Protocol):
    """Answers p(x_i | what is shown, s), where s is a source: a text to be translated, say. It needs one to be asked.

    Whoever asks says `Questions.given`. The engine calls `encode` once for each distinct source, keeps what it returns
    for all questions about it, and hands it to `rows` as `context[SOURCE_STATES]`, (N, T, H), right-padded with zeros
    to the longest source of the batch, with `context[SOURCE_MASK]`, (N, T), where any is padded. `rows` never sees
    `given`. The sequences may be padded too, as ever, if `pads`: then `context["attention_mask"]`, (N, L), is there.
    `pads` also says whether sources of different lengths may be encoded together, padded with the vocabulary's pad id.
    H is the network's own affair: hidden states, or keys and values of all layers side by side.
    """

    max_source: int | None  # most tokens of a source, special ones included; None: no limit

    def source_ids(self, texts: Sequence[str]) -> list[Ints]: ...  # (T,) each, special tokens included

    def encode(self, ids: Tensor, mask: Tensor | None) -> Tensor: ...  # (S, T), (S, T) or None: no padding → (S, T, H)


def takes_source(conditionals: Conditionals) -> bool:
    """Is it asked with a source? Then it always is: `GivenSource` needs one, and all others refuse one."""
    return hasattr(conditionals, "source_ids")


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
