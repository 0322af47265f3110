"""Beam search over the chain of pair blocks: likely fillings of any number of masks, with their `ag_chain` probability.

The masks are filled from left to right, two at a time. Each hypothesis asks for the law of its next block; of all pairs
of all hypotheses the likeliest go on. Only pairs inside a block's box are followed, and only tokens that may stand in a
text; their probabilities are those of the whole law. Refuses to promise that the best filling is among those it meets.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from besag.arrays import Ints
from besag.conditionals.contract import Conditionals
from besag.engine import Plan
from besag.errors import BesagError
from besag.joints.candidates import Kind, outcome_ids
from besag.places.places import Places
from besag.reductions import Top
from besag.scores.ag_chain import AgChain
from besag.scores.passage import Passage
from besag.vocabulary import Encoded


def beam_search(
    model: Conditionals, places: Places, chain: AgChain, width: int, outcomes: Kind
) -> Plan[tuple[Ints, NDArray[np.float64]]]:
    """The likeliest fillings met, (≤ width, k) ids, and their log-probabilities."""
    allowed, masks, text = outcome_ids(model, outcomes), np.array(places.at), places.shown
    found, totals = np.empty((1, 0), np.int64), np.zeros(1)  # (h, how far) the hypotheses, (h,) their log-probabilities
    for start in range(0, len(masks), 2):
        block = np.arange(start, min(start + 2, len(masks)))
        passage = Passage([_told(text, masks, row) for row in found], model)
        hide = (np.arange(len(masks)) >= start)[None]
        likeliest = Top(chain.candidates if len(block) == 2 else max(chain.candidates, width))
        nothing = np.zeros((len(found), len(block)), np.int64)  # the text has no token there to ask about
        answers = yield from passage.ask(hide, np.zeros_like(block), block, likeliest, target=nothing)
        tokens = answers["top_ids"].reshape(len(found), len(block), -1)  # (h, 1 or 2, c)
        forbidden = np.where(np.isin(tokens, allowed), 0.0, -np.inf)
        if len(block) == 2:
            pairs = np.broadcast_to(block, (len(found), 1, 2))
            law = (yield from chain.ask_block(passage, hide[None], pairs, answers)).log_law[:, 0].cpu().numpy()
            law = law + forbidden[:, 0, :, None] + forbidden[:, 1, None]  # (h, c, c)
        else:
            law = answers["top_log_probs"][:, 0] + forbidden[:, 0]  # (h, c)
        scores = totals[:, None] + law.reshape(len(found), -1)
        best = np.argsort(-scores, axis=None, kind="stable")[:width]
        best = best[np.isfinite(scores.ravel()[best])]
        if not len(best):
            raise BesagError(f"no token of text is likely at {places.title}: outcomes='all' allows the special ones")
        hypothesis, cell = np.divmod(best, scores.shape[1])
        index = np.unravel_index(cell, law.shape[1:])
        chosen = [tokens[hypothesis, side, part] for side, part in enumerate(index)]
        found, totals = np.column_stack([found[hypothesis], *chosen]), scores.ravel()[best]
    return found, totals


def _told(text: Encoded, masks: Ints, tokens: Ints) -> Encoded:
    """The text with its first masks filled in; all of its masks are the places to ask about."""
    ids = text.ids.copy()
    ids[masks[: len(tokens)]] = tokens
    return replace(text, ids=ids)
