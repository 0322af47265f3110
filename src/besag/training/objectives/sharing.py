"""What objectives that keep masks from their network have in common: the part that is shown, and a share of plain ones.

A share of the passages may be given to plain masked modelling. Which ones is decided by noise on their draws, so that
neither the batch nor the process they are in matters.
"""

from __future__ import annotations

import torch
from torch import Tensor

from besag import noise
from besag.errors import BesagError
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.objectives import draws


def check_share(objective: str, share: float) -> float:
    if not 0.0 <= share <= 1.0:
        raise BesagError(f"mlm_share = {share!r} of the objective {objective!r} is a share of passages, from 0 to 1")
    return float(share)


def plain_rows(batch: Batch, share: float, seed: int, stream: int) -> Tensor:  # (R,) bool
    """Which passages are plain."""
    if share in (0.0, 1.0):
        return torch.full(batch.draw.shape, share == 1.0, device=batch.draw.device)
    return draws.uniform(seed, stream, batch.draw) < share


def shown_alone(encoder: Encoder, batch: Batch, plain: Tensor) -> tuple[Tensor, Layout]:  # (T,) bool
    """What the network reads, all but the masked places of passages that are not `plain` (R,), and how it lies."""
    shown = plain[batch.layout.row] | (batch.inputs != encoder.mask_id) | ~batch.free
    layout = batch.layout.kept(shown)
    if encoder.ragged:
        return shown, layout
    longest = int(layout.bounds.diff().max())  # padding up to the old length would cost what leaving out saves
    return shown, layout._replace(longest=max(1, longest))


def generator_for(seed: int, stream: int) -> torch.Generator:
    """Where the first weights of what is trained beside a network come from."""
    return torch.Generator().manual_seed(int(noise.uniform(seed, stream) * 2**52))
