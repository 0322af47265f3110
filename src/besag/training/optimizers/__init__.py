"""How weights move: AdamW, Muon with AdamW for what is no hidden matrix, LAMB."""

from __future__ import annotations

from typing import Any

from torch import nn

from besag.training.optimizers.masters import Masters
from besag.training.recipe import Optimizer as Settings

__all__ = ["Masters", "make"]


def make(module: nn.Module, settings: Settings) -> Masters:
    """The optimiser of a recipe over the trainable weights of an objective. Norms and biases are not decayed."""
    from besag.training.optimizers.adamw import AdamW
    from besag.training.optimizers.lamb import Lamb
    from besag.training.optimizers.muon import Muon

    named = [(name, weight) for name, weight in module.named_parameters() if weight.requires_grad]
    if settings.name == "muon":
        return Muon(_muon_groups(module, named, settings), momentum=settings.momentum, **_adam(settings))
    kind: type[Masters] = AdamW if settings.name == "adamw" else Lamb
    return kind(_decayed(named, settings), **_adam(settings))


def _adam(settings: Settings) -> dict[str, Any]:
    return {"betas": tuple(settings.betas), "eps": settings.eps}


def _decayed(named: list[tuple[str, nn.Parameter]], settings: Settings) -> list[dict[str, Any]]:
    groups = [
        {"params": [w for _, w in named if w.ndim >= 2], "lr": settings.lr, "weight_decay": settings.weight_decay},
        {"params": [w for _, w in named if w.ndim < 2], "lr": settings.lr, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def _muon_groups(module: nn.Module, named: list[tuple[str, nn.Parameter]], settings: Settings) -> list[dict[str, Any]]:
    """Matrices inside the network turn as Muon says; embeddings, the head's table, norms and biases as AdamW says."""
    embeddings = [part for part in module.modules() if isinstance(part, nn.Embedding)]
    tables = {id(weight) for part in embeddings for weight in part.parameters()}  # and what is tied to one
    hidden = [(name, w) for name, w in named if w.ndim == 2 and id(w) not in tables and "decoder.weight" not in name]
    taken = {id(w) for _, w in hidden}
    # three matrices in one: each is turned by itself
    threefold = [w for name, w in hidden if "qkv" in name.lower() and w.shape[0] == 3 * w.shape[1]]
    triple = {id(w) for w in threefold}
    whole = [w for _, w in hidden if id(w) not in triple]
    about = {"lr": settings.matrix_lr, "weight_decay": settings.weight_decay}
    groups = [
        {"params": whole, "blocks": 1, **about},
        {"params": threefold, "blocks": 3, **about},
        *({**group, "blocks": 0} for group in _decayed([(n, w) for n, w in named if id(w) not in taken], settings)),
    ]
    return [group for group in groups if group["params"]]
