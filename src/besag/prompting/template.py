"""A template, as "{text} [T] [T] [T] [MASK].": columns in braces, trigger tokens, the gap that the model fills.

A row is tokenised once, with the mask token at every trigger and at the gap, and the triggers' own tokens are put in
afterwards: so a trigger is always one token, whatever stands beside it. Knows texts and ids, no model; columns and gap
are those of every template (`besag.templates`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Ints
from besag.errors import BesagError, quoted
from besag.places.tokens import token_ids
from besag.templates import GAP, filled, with_gap
from besag.vocabulary import Encoded, Vocabulary

TRIGGER = "[T]"
SLOTS = re.compile(r"\[T\]|\[MASK\]")


class Asked(NamedTuple):
    """A row as the network reads it."""

    ids: Ints  # (L,) the mask token at the triggers and at the gap
    triggers: Ints  # (T,) their positions
    gap: int


class Template:
    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        text = with_gap(text)
        slots = SLOTS.findall(text)
        if slots.count(GAP) != 1:
            raise BesagError(f"template={quoted(text)}: write {GAP} once, where the label stands")
        if vocabulary.mask_token is None:
            raise BesagError("the model has no mask token, so there is no gap to fill: take a masked model")
        self.text, self.vocabulary = text, vocabulary
        self.triggers = len(slots) - 1
        self.gap = slots.index(GAP)  # how many triggers stand before it

    def asked(self, row: Mapping[str, Any]) -> Asked:
        """A row's ids, and where its slots stand."""
        encoded = self.encoded(row)
        places = np.flatnonzero(encoded.ids == self.vocabulary.mask_id)
        if len(places) != self.triggers + 1:
            raise BesagError(f"{quoted(dict(row))} holds the mask token {self.vocabulary.mask_token!r} itself")
        return Asked(encoded.ids, np.delete(places, self.gap), int(places[self.gap]))

    def encoded(self, row: Mapping[str, Any]) -> Encoded:
        mask = str(self.vocabulary.mask_token)
        return self.vocabulary.encode([filled(SLOTS.sub(mask, self.text), row)])[0]

    def words(self, row: Mapping[str, Any], words: Sequence[str]) -> Ints:
        """(n,) the tokens of words of one token each, as they stand in the gap."""
        asked = self.asked(row)
        return np.array(token_ids(self.vocabulary, self.encoded(row), asked.gap, list(words)))

    def filled(self, tokens: Sequence[int]) -> str:
        """The template with its triggers written out."""
        written = iter(self.vocabulary.tokenizer.decode([token]).strip() for token in tokens)
        return SLOTS.sub(lambda found: GAP if found[0] == GAP else next(written), self.text)
