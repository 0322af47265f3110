"""Vectors of sub-tokens, added to those of the tokens that they stand in (AMLM; Edman and Fraser 2025).

    E_v = W_v + 1/|S(v)| Σ_{s ∈ S(v)} U_s         S(v): the runs of 1 … n characters in token v, each once (n-hot)

So tokens that share letters share weights: what is learned of `walked` moves `talked` as well. Tokens are taken as the
tokenizer writes them, its mark of a word's beginning counted as a character: a suffix is no prefix. A run that stands
in one token alone would be that token's vector once more, and is left out; special tokens are no text, and have none. U
begins at 0, so that a network begins as it would without.

The table that the head shares with the embeddings is the same sum. `fold` leaves the sum behind as a plain table: what
is saved is an ordinary model of its family. The publication says that sub-token embeddings are used; that sub-tokens
are runs of characters, their mean and the shared head are a reading of it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

from besag.errors import BesagError
from besag.vocabulary import Vocabulary


class SubTokens(nn.Module):
    """W + N U: N (V, S) has the same share for each sub-token of a token."""

    member: Tensor  # (K,) the sub-tokens of all tokens, one token after the other
    first: Tensor  # (V,) where those of each token begin

    def __init__(self, runs: list[list[str]], width: int) -> None:
        super().__init__()
        number = {run: place for place, run in enumerate(dict.fromkeys(run for each in runs for run in each))}
        if not number:
            raise BesagError("model.subtokens: no two tokens of this vocabulary share a letter")
        sizes = torch.tensor([0, *map(len, runs)])
        self.register_buffer("member", torch.tensor([number[run] for each in runs for run in each]), persistent=False)
        self.register_buffer("first", sizes.cumsum(0)[:-1], persistent=False)
        self.vectors = nn.Parameter(torch.zeros(len(number), width))  # U

    def forward(self, table: Tensor) -> Tensor:  # (V, H) -> (V, H)
        return table + F.embedding_bag(self.member, self.vectors, self.first, mode="mean").to(table)


def shared_runs(tokens: list[str], longest: int) -> list[list[str]]:
    """The runs of at most `longest` characters in each token that stand in another one, too; of an empty text: none."""
    every = [
        dict.fromkeys(token[at : at + size] for size in range(1, longest + 1) for at in range(len(token) - size + 1))
        for token in tokens
    ]
    count = Counter(run for runs in every for run in runs)
    return [[run for run in runs if count[run] > 1] for runs in every]


def attach(model: Any, vocabulary: Vocabulary, longest: int) -> Any:
    """The same model, its table of tokens a sum; the head's as well, where it is the same table."""
    inputs, outputs = model.get_input_embeddings(), model.get_output_embeddings()
    special = vocabulary.special_ids
    tokens = ["" if id in special else vocabulary.token(id) for id in range(vocabulary.size)]
    tokens += [""] * (len(inputs.weight) - len(tokens))  # a table may be rounded up
    added = SubTokens(shared_runs(tokens, longest), inputs.weight.shape[1])
    tied = outputs is not None and outputs.weight is inputs.weight
    for part in (inputs, outputs) if tied else (inputs,):
        parametrize.register_parametrization(part, "weight", added)
    return model


def fold(model: Any) -> Any:
    """The same model with a plain table: the sum. One that has nothing added is left as it is."""
    parts = [part for part in (model.get_input_embeddings(), model.get_output_embeddings()) if _is_sum(part)]
    if not parts:
        return model
    with torch.no_grad():
        table = parts[0].weight.clone()
        for part in parts:
            parametrize.remove_parametrizations(part, "weight", leave_parametrized=False)
        parts[0].weight.copy_(table)  # which is that of the others
    return model


def _is_sum(part: Any) -> bool:
    return part is not None and parametrize.is_parametrized(part, "weight")
