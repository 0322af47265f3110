"""How much memory a run takes, as a rough estimate, beside what there is: a run that cannot fit is told so at once.

Weights, gradients and the optimiser's moments by their sizes; activations by the rule of 34 bytes a token, hidden unit
and layer in 16 bits (Korthikanti et al. 2023, attention without stored scores), a few more for what besag's own family
adds to a layer, twice that in 32; the logits of what is asked. Networks that an objective trains besides, and its
further passes, are not counted.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import torch

from besag import hardware
from besag.errors import BesagError
from besag.training.recipe import Recipe

ACTIVATION_BYTES = 34  # of a token, hidden unit and layer, where numbers have 16 bits
ADDED_BYTES = {"gate": 2, "qk_norm": 4, "layer_weights": 4}  # by besag's family: heads; queries, keys; sums, slopes
LOGIT_COPIES = 3  # logits, their softmax and its gradient, in float32
MOMENTS = 2  # that the optimiser keeps of each weight, at most


class Need(NamedTuple):
    """Bytes."""

    weights: int  # with their gradients and moments
    batch: int  # what one batch leaves for the way back

    @property
    def total(self) -> int:
        return self.weights + self.batch

    def __str__(self) -> str:
        return f"about {size(self.total)}: {size(self.weights)} for weights, {size(self.batch)} for a batch"


def need(recipe: Recipe, model: Any, precision: str, trained: int | None = None) -> Need:
    """Of a run with this network, which may be one without memory of its own; `trained` weights, or all of them."""
    config = model.config
    total = sum(weight.numel() for weight in model.parameters())
    trained = total if trained is None else trained
    pure = precision == "bfloat16-pure"
    of_one = (2 + 4 + 2 if pure else 4 + 4) + 4 * MOMENTS  # weight, master, gradient; moments in float32
    weights = of_one * trained + (2 if pure else 4) * (max(total - trained, 0) + (total if recipe.run.ema else 0))
    scale = 2 if precision == "float32" else 1
    tokens = recipe.data.batch_tokens
    wide, deep, words = (
        int(getattr(config, name, 0) or 0) for name in ("hidden_size", "num_hidden_layers", "vocab_size")
    )
    added = sum(count for name, count in ADDED_BYTES.items() if getattr(config, name, False) is True)
    layers = (ACTIVATION_BYTES + added) * scale * tokens * wide * deep
    asked = tokens * max(recipe.masking.rate, recipe.masking.end_rate or 0.0) * recipe.masking.predict
    return Need(weights, layers + int(4 * LOGIT_COPIES * asked * words))


def refuse_too_large(recipe: Recipe, model: Any, precision: str, device: torch.device) -> None:
    """Refuse a run that needs more than is left, before its network is made; run.check_memory = false only warns."""
    trained = None if recipe.adapt.method == "none" else 0  # few of them: how few is known when they are there
    wanted, left = need(recipe, model, precision, trained), hardware.memory_available(device)
    if left is None or wanted.total <= left:
        return
    said = (
        f"this run needs {wanted} of {recipe.data.batch_tokens:,} tokens; {size(left)} are left on {device.type}. Make "
        "data.batch_tokens smaller (run.accumulate makes up for it), or the network ([model.config])"
    )
    if recipe.run.check_memory:
        raise BesagError(f"{said}; or try it all the same: run.check_memory = false")
    warnings.warn(said, stacklevel=2)


def size(count: float) -> str:
    """In GiB, or MiB where that is less than one.

    >>> size(3 * 2**30), size(5 * 2**20)
    ('3.0 GiB', '5 MiB')
    """
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
