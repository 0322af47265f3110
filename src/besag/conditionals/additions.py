"""Small networks beside the layers of a trained one: what an adapter adds, while the layers stay as they are.

A bottleneck (Houlsby et al. 2019), one after each layer as Pfeiffer et al. 2020 have it, makes of the layer's output h

    h + W_up · relu(W_down · norm(h) + b_down) + b_up,     norm(h): mean 0 and variance 1, without weights

A low-rank addition (Hu et al. 2022) stands beside a linear layer: W·x + (alpha / rank) · B·A·x. Where W_up, b_up and B
are 0 the network says what it said before, to the bit.

The norm is there because some families hand on sums that grow from layer to layer, and others normalise them. Each
stands in its layer under one name and is run by a hook of it, so whoever calls the layer calls both.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from torch import Tensor, nn
from torch.nn import functional as F

from besag.conditionals.families import LIKE_BERT
from besag.errors import BesagError, nearest

Kind = Literal["bottleneck", "lora"]
KINDS: tuple[Kind, ...] = ("bottleneck", "lora")
NAME = "adapter"  # of what is added, in its layer

LAYERS: Mapping[str, str] = {  # of a family: what its layers are called in the body, # a number
    "modernbert": "layers.#",
    "besag": "layers.#",
    **dict.fromkeys(LIKE_BERT, "encoder.layer.#"),
    "distilbert": "transformer.layer.#",
    "albert": "encoder.albert_layer_groups.#.albert_layers.#",  # run again and again, and what stands after them, too
    "neobert": "transformer_encoder.#",
}


class Bottleneck(nn.Module):
    """Down to a few numbers and up again, added to what a layer says; a new one adds nothing."""

    def __init__(self, width: int, rank: int) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(width, rank), nn.Linear(rank, width)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, states: Tensor) -> Tensor:  # (…, H) -> (…, H)
        weight = self.down.weight
        normal = F.layer_norm(states.to(weight.dtype), states.shape[-1:])
        added: Tensor = self.up(F.relu(self.down(normal)))
        return states + added.to(states.dtype)


class LowRank(nn.Module):
    """Two thin matrices beside a linear layer; a new one adds nothing."""

    def __init__(self, narrow: int, wide: int, rank: int, scale: float) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(narrow, rank, bias=False), nn.Linear(rank, wide, bias=False)
        nn.init.zeros_(self.up.weight)
        self.scale = scale

    def forward(self, states: Tensor, said: Tensor) -> Tensor:  # (…, in), (…, out) -> (…, out)
        added: Tensor = self.up(self.down(states.to(self.down.weight.dtype))) * self.scale
        return said + added.to(said.dtype)


def layers(model: Any) -> dict[str, Any]:
    """The layers of a network's body by their names in the network; of a family that is not known, an error."""
    family = model.config.model_type
    if family not in LAYERS:
        raise BesagError(
            f"a bottleneck stands after each layer, and where those of the family {family!r} are is not known."
            f"{nearest(family, LAYERS)} Known are {', '.join(LAYERS)}; low-rank additions (lora) suit every family"
        )
    called = re.compile(re.escape(f"{model.base_model_prefix}.{LAYERS[family]}").replace("\\#", "[0-9]+"))
    return {name: layer for name, layer in model.named_modules() if called.fullmatch(name)}


def linear(model: Any) -> dict[str, nn.Linear]:
    return {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}


def attach_bottlenecks(model: Any, rank: int) -> None:
    """One after every layer; draws W_down and b_down from torch's generator."""
    for layer in layers(model).values():
        _put(layer, Bottleneck(model.config.hidden_size, rank))
        layer.register_forward_hook(_after_layer, prepend=True)  # before those who look at what a layer says


def attach_low_rank(model: Any, rank: int, alpha: float, at: Iterable[str]) -> None:
    """One beside each linear layer that is named."""
    known = linear(model)
    for name in at:
        layer = known[name]
        _put(layer, LowRank(layer.in_features, layer.out_features, rank, alpha / rank))
        layer.register_forward_hook(_beside_linear, prepend=True)


def _put(layer: Any, addition: nn.Module) -> None:
    weight = next(layer.parameters())
    layer.add_module(NAME, addition.to(weight.device, weight.dtype).train(layer.training))


# Functions of the module alone: a copy of a network calls what was copied with it.
def _after_layer(layer: Any, _: Any, said: Any) -> Any:
    addition = layer.get_submodule(NAME)
    if isinstance(said, tuple):
        return (addition(said[0]), *said[1:])
    return addition(said)


def _beside_linear(layer: Any, given: tuple[Tensor, ...], said: Tensor) -> Any:
    return layer.get_submodule(NAME)(given[0], said)


def added(model: Any) -> dict[str, Tensor]:
    """The weights of what was attached, by their names in the network."""
    return {
        f"{name}.{part}": weight.detach()
        for name, module in model.named_modules()
        if isinstance(module, Bottleneck | LowRank)
        for part, weight in module.named_parameters()
    }


def shapes(model: Any, kind: Kind, rank: int, at: Iterable[str] = ()) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the weights that an adapter of this network has; nothing is made."""
    found: dict[str, tuple[int, ...]] = {}
    if kind == "bottleneck":
        width = int(model.config.hidden_size)
        for name in layers(model):
            own = {"down.weight": (rank, width), "down.bias": (rank,), "up.weight": (width, rank), "up.bias": (width,)}
            found |= {f"{name}.{NAME}.{part}": shape for part, shape in own.items()}
        return found
    known = linear(model)
    for name in at:
        layer = known[name]
        found[f"{name}.{NAME}.down.weight"] = (rank, layer.in_features)
        found[f"{name}.{NAME}.up.weight"] = (layer.out_features, rank)
    return found


def sharing(model: Any) -> Any:
    """The same network as modules of its own, whose weights are not copied; without what was attached."""
    twin = copy.deepcopy(model, {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())})
    for module in list(twin.modules()):
        if isinstance(module._modules.get(NAME), Bottleneck | LowRank):
            del module._modules[NAME]
            for key, hook in list(module._forward_hooks.items()):
                if hook in (_after_layer, _beside_linear):
                    del module._forward_hooks[key]
    return twin
