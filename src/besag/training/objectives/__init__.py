"""One file a loss. `OBJECTIVES` knows them by name."""

from besag.training.objectives import (
    alternate,
    causal,
    compatible,
    correct,
    distil,
    electra,
    glance,
    late_mask,
    mae,
    maskless,
    mdlm,
    mlm,
    permuted,
    spindle,
    unroll,
)
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, Predicted

__all__ = [
    "OBJECTIVES",
    "Loss",
    "Objective",
    "Predicted",
    "alternate",
    "causal",
    "compatible",
    "correct",
    "distil",
    "electra",
    "glance",
    "late_mask",
    "mae",
    "maskless",
    "mdlm",
    "mlm",
    "permuted",
    "spindle",
    "unroll",
]
