"""Training a few weights in place of all: BitFit, LoRA and bottlenecks.

BitFit (Ben Zaken et al. 2022) trains bias terms, those of normalisations with them, and no gain. LoRA (Hu et al. 2022)
adds to each chosen matrix W a product of two thin ones, W + (alpha / rank)·B·A, B = 0 at the start, and trains A and B
alone. `finish` adds the product into W, so that what is saved is an ordinary model of its family. A bottleneck (Houlsby
et al. 2019) is a narrow network after each layer, which no matrix can hold. It, and LoRA where it is wanted, is kept
`apart`: the weights of the adapter alone.

    model = adapt(model, recipe.adapt)     # then make the optimiser, of what requires a gradient
    … train …
    model = finish(model)                  # the same object, plain weights; or apart(model), and no model at all

The model stays the same object: layers are put into it. So an encoder that holds it needs no change, and its state has
the adapters in it (their names are told by `trained`).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from besag.conditionals import additions
from besag.errors import BesagError, nearest, require
from besag.training import recipe

PARTS = {"A": "down", "B": "up"}  # what peft calls the two thin matrices


def adapt(model: Any, how: recipe.Adapt) -> Any:
    """Freeze what is not to be trained, and put adapters in where the method has some; draws from torch's generator."""
    if how.method == "bitfit":
        return _bitfit(model)
    if how.method == "lora":
        return _lora(model, how)
    if how.method == "bottleneck":
        return _bottleneck(model, how)
    return model


def finish(model: Any) -> Any:
    """Plain weights again: adapters are added into the matrices they stand beside, and everything can be trained."""
    for name, module in list(model.named_modules()):
        if hasattr(module, "merge") and hasattr(module, "get_base_layer"):
            module.merge()
            parent, _, own = name.rpartition(".")
            setattr(model.get_submodule(parent), own, module.get_base_layer())
    for attribute in ("peft_config", "_hf_peft_config_loaded"):
        if attribute in vars(model):
            delattr(model, attribute)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return model


def apart(model: Any) -> dict[str, Tensor]:
    """The weights of the adapter alone, under the names that `additions` gives them."""
    found = additions.added(model)
    for name, weight in model.named_parameters():
        layer, here, part = name.partition(".lora_")
        if here:
            found[f"{layer}.{additions.NAME}.{PARTS[part[0]]}.weight"] = weight.detach()
    return found


def own_weights(model: Any) -> dict[str, Tensor]:
    """All others, under the names that they have in the network without the adapter."""
    added = set(additions.added(model))
    return {
        name.replace(".base_layer.", "."): weight.detach()
        for name, weight in model.named_parameters()
        if name not in added and ".lora_" not in name
    }


def trained(model: Any) -> list[str]:
    """The names of the weights that are trained."""
    return [name for name, parameter in model.named_parameters() if parameter.requires_grad]


def _bitfit(model: Any) -> Any:
    wanted = {id(parameter) for name, parameter in model.named_parameters() if name.rpartition(".")[2] == "bias"}
    if not any(id(parameter) in wanted for parameter in _body(model).parameters()):
        raise BesagError(
            f"adapt.method = 'bitfit' trains biases, and the layers of {type(model).__name__} have none: use 'lora', "
            "or a family with biases (bert, roberta, …)"
        )
    for parameter in model.parameters():
        parameter.requires_grad_(id(parameter) in wanted)
    return model


def _bottleneck(model: Any, how: recipe.Adapt) -> Any:
    if how.targets:
        raise BesagError(
            f"adapt.targets = {list(how.targets)} is for 'lora'; a bottleneck stands after every layer: leave them out"
        )
    additions.attach_bottlenecks(model, how.rank)
    added = set(additions.added(model))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in added)
    return model


def _lora(model: Any, how: recipe.Adapt) -> Any:
    peft = require("peft", extra="train")
    targets = list(how.targets) or _linear(model)
    known = {name.rpartition(".")[2] for name, _ in model.named_modules()} | {name for name, _ in model.named_modules()}
    for target in targets:
        if target not in known and not any(name.endswith(f".{target}") for name in known):
            guess = nearest(target, known)
            raise BesagError(f"adapt.targets: no layer of {type(model).__name__} is called {target!r}.{guess}")
    settings = peft.LoraConfig(r=how.rank, lora_alpha=how.alpha, target_modules=targets, lora_dropout=0.0, bias="none")
    shared = {id(model.get_input_embeddings().weight)}
    peft.inject_adapter_in_model(settings, model)
    for name, module in model.named_modules():
        if hasattr(module, "get_base_layer") and id(module.get_base_layer().weight) in shared:
            raise BesagError(
                f"adapt.targets: the matrix of {name!r} is that of the embeddings, which would change, too"
            )
        if (
            hasattr(module, "get_base_layer")
            and recipe.is_apart(how)
            and not isinstance(module.get_base_layer(), nn.Linear)
        ):
            raise BesagError(f"adapt.targets: {name!r} is no linear layer, and only additions to those are kept apart")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(".lora_" in name)
    return model


def _body(model: Any) -> Any:
    return model._modules[model.base_model_prefix]


def _linear(model: Any) -> list[str]:
    """Every linear layer of the body, by its whole name; not the head, whose matrix is often that of the embeddings."""
    prefix = model.base_model_prefix
    return [f"{prefix}.{name}" for name, module in _body(model).named_modules() if isinstance(module, nn.Linear)]
