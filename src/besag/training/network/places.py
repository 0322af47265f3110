"""Can a place be left out, or stand elsewhere in the row? Only where a network takes its places from the given numbers.

Most families add or rotate by `position_ids`. Some (DeBERTa, MPNet) measure distances between columns whatever they are
told, and would answer quietly about another sentence. No list of families: the network itself is asked.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch

from besag.errors import BesagError
from besag.training.network.batch import Layout

if TYPE_CHECKING:
    from besag.training.network.encoder import Encoder

TOLERANCE = 1e-3  # of the largest state; rounding in float32 is far below it, a wrong place far above


def require_numbered_places(encoder: Encoder, objective: str) -> None:
    """Refuse a network whose states change when its columns are reversed and every token keeps its number."""
    twin, ids = wide_twin(encoder), torch.tensor(ordinary_ids(encoder, 3))
    bounds, row = torch.tensor([0, len(ids)], dtype=torch.int32), torch.zeros_like(ids)
    position = torch.arange(len(ids)) * 2  # 0, 2, 4: gaps
    with torch.no_grad():
        forward = twin.states(ids, Layout(bounds, row, position, len(ids)))  # (3, H)
        backward = twin.states(ids.flip(0), Layout(bounds, row, position.flip(0), len(ids))).flip(0)
    if (forward - backward).abs().max() > TOLERANCE * forward.abs().max():
        raise BesagError(
            f"the objective {objective!r} leaves places out or moves them, and {type(encoder.model).__name__} measures "
            "where tokens stand by their columns: take a family that is told its positions, such as modernbert, bert "
            "or roberta."
        )


def wide_twin(encoder: Encoder) -> Encoder:
    """A copy with wide weights, to be tried: those of a new network hardly look at places, nor at anything."""
    twin = copy.deepcopy(encoder).float().cpu().eval()
    chance = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in twin.parameters():
            if weight.dim() > 1:
                weight.normal_(std=2 * weight.shape[-1] ** -0.5, generator=chance)
    return twin


def ordinary_ids(encoder: Encoder, count: int) -> list[int]:
    return [token for token in range(encoder.width) if token not in encoder.special_ids][:count]
