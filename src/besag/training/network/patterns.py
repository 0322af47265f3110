"""Can it be said who sees whom? Only where a network attends by the pattern that it is given.

Most families add a mask of four dimensions to their scores. Some make their own of it, or look at the whole row besides
(a share of masks that rescales its embeddings), and would let answers leak. No list of families: the network is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from besag.errors import BesagError
from besag.training.network.batch import Layout
from besag.training.network.places import TOLERANCE, ordinary_ids, wide_twin

if TYPE_CHECKING:
    from besag.training.network.encoder import Encoder

PROBE = 5  # tokens


def require_patterns(encoder: Encoder, objective: str) -> None:
    """Refuse a network where a token moves those that do not see it, or where a pattern that hides nothing hides."""
    twin, ids = wide_twin(encoder), torch.tensor(ordinary_ids(encoder, PROBE))
    layout = Layout.of_lengths(torch.tensor([len(ids)]))
    before = torch.ones(1, len(ids), len(ids), dtype=torch.bool).tril()
    other = ids.clone()
    other[-1] = encoder.mask_id
    try:
        with torch.no_grad():
            plain = twin.states(ids, layout)
            whole = twin.states(ids, layout, seen=torch.ones_like(before))
            one, two = twin.states(ids, layout, seen=before), twin.states(other, layout, seen=before)
    except Exception as problem:  # each family trips over a mask of four dimensions in its own way
        raise BesagError(f"{_refused(encoder, objective)}: {problem}") from problem
    largest = TOLERANCE * plain.abs().max()
    leaks, hides = (one - two)[:-1].abs().max() > largest, (whole - plain).abs().max() > largest
    if leaks or hides or (one - plain).abs().max() <= largest:
        raise BesagError(_refused(encoder, objective))


def _refused(encoder: Encoder, objective: str) -> str:
    return (
        f"the objective {objective!r} says which token sees which, and {type(encoder.model).__name__} does not attend "
        "by what it is told: take a family that does, such as besag, modernbert, bert or roberta"
    )
