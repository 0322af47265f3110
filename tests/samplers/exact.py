"""What tests of samplers need beside `besag.lab.oracles`: conditionals for text of any length, and a text to write on.

Import it as `tests.samplers.exact`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from tests.laws import Arbitrary

from besag.conditionals.contract import Conditionals, Given
from besag.conditionals.given_table import GivenTable
from besag.samplers.kernel import Canvas


class GivenLaws(GivenTable):
    """Any laws, each given a source of its own: the first one of one token, the second one of two …"""

    name = "given laws"

    def __init__(self, laws: Sequence[Conditionals]) -> None:
        self.vocabulary, self.width = laws[0].vocabulary, laws[0].width
        self.laws = {(0,) * (1 + number): law for number, law in enumerate(laws)}

    def given(self, which: Sequence[int]) -> Given:
        return Given(tuple(np.array(source) for source in self.laws), np.array(which))


class Hashed(Arbitrary):
    """Answers for text of any length, each distinct question once."""

    def __init__(self, width=2):
        super().__init__(width)
        self.known = {}

    def logits(self, context, place):
        key = (place, *context)
        if key not in self.known:
            self.known[key] = super().logits(context, place)
        return self.known[key]


def text_canvas(network, text: str, chains: int) -> Canvas:
    """Its masks are free; special tokens stand nowhere."""
    words = network.vocabulary
    ids = torch.as_tensor(words.encode([text])[0].ids).expand(chains, -1).clone()
    allowed = torch.ones(network.width, dtype=torch.bool)
    allowed[words.tokenizer.all_special_ids] = False
    return Canvas(ids, ids == words.mask_id, words.mask_id, allowed)


def hot(row):
    """A row at temperature 2."""
    return row**0.5 / (row**0.5).sum()


def cut(row):
    """A row of which the two likeliest are left."""
    kept = np.where(row >= np.sort(row)[-2], row, 1e-300)
    return kept / kept.sum()


DRAWN = [({"temperature": 2.0}, hot), ({"top_k": 2}, cut)]  # options of a kernel, and what they make of a row
