"""What tests of samplers need beside `besag.lab.oracles`: conditionals for text of any length, and a text to write on.

Import it as `tests.samplers.exact`.
"""

from __future__ import annotations

import torch
from tests.laws import Arbitrary

from besag.samplers.kernel import Canvas


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
