"""`besag.load`: read a model from a folder or the Hub, or wrap an exact one, as a `LanguageModel`."""

from __future__ import annotations

import warnings
from copy import copy
from pathlib import Path
from typing import Any

import torch

from besag import models
from besag.checks import checked
from besag.conditionals.contract import Conditionals
from besag.errors import BesagError, quoted
from besag.hardware import choose_device, choose_dtype
from besag.language_model import LanguageModel
from besag.results.words import dtype_name


@checked
def load(
    model: str | Path | tuple[Any, Any] | Conditionals | None = None,
    *,
    tokenizer: Any = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    revision: str | None = None,
    allow_pickle: bool = False,
    compile: bool = False,
    untilt: bool = False,
    adapter: str | Path | None = None,
    batch_tokens: int | None = None,
    progress: bool | None = None,
    name: str | None = None,
) -> LanguageModel:
    """Load a masked, causal or exact model.

    Args:
        model: Folder, Hub model ID, (model, tokenizer) or exact model; None is the bundled English model.
        tokenizer: Tokenizer to use instead of the model's own.
        device: "cpu", "cuda", "cuda:1" or "mps"; default: the fastest device available.
        dtype: "float32", "bfloat16" or "float16"; "int8" (quantised matrix products) on CPUs; default: bfloat16 on
            CUDA, float32 elsewhere. A model that is built already keeps its device and dtype; others are rejected.
        revision: Branch, tag or commit of a model on the Hub.
        allow_pickle: Read weights from pickle files. These can run code, so trust their author.
        compile: On CUDA, compile the network for about ten seconds; large ModernBERT batches then run twice as fast.
        untilt: Correct the bias of a masking strategy that depends on token content.
        adapter: Folder of an adapter that was trained on this model and saved apart (`adapt.keep`).
        batch_tokens: Number of tokens in a batch; default: as many as fit into memory.
        progress: Show a progress bar on stderr; default: on a terminal, for work longer than a second.
        name: Name of the model in results.

    Returns:
        A `LanguageModel`. A checkpoint without weights for its head is rejected.

    Examples:
        >>> besag.load()
        LanguageModel('small-en', cpu, float32, V=12,288)
        >>> coins = besag.load(besag.Table([[0.4, 0.1], [0.1, 0.4]], symbols=["h", "t"]))
        >>> round(coins.score("h h", "chain").total, 2)  # log 0.4
        -0.92
    """
    if isinstance(model, Conditionals):
        _refuse_reading(model, tokenizer=tokenizer, revision=revision, allow_pickle=allow_pickle, adapter=adapter)
        _refuse_elsewhere(model, device, dtype)
        conditionals = _named(model, name)
    else:
        if model is None or models.is_bundled(model):
            model, name = models.path(), name or models.EMBEDDED
        from besag.conditionals.loading import load_conditionals  # brings transformers, which exact laws do without

        conditionals = load_conditionals(
            model, tokenizer=tokenizer, device=device, dtype=dtype, revision=revision, allow_pickle=allow_pickle,
            adapter=adapter, name=name,
        )  # fmt: skip
    if compile:
        _compile(conditionals)
    if untilt:  # of the last masking strategy in training
        conditionals = _untilted(conditionals, *((model, revision) if adapter is None else (adapter, None)))
    return LanguageModel(conditionals, batch_tokens=batch_tokens, progress=progress)


def _refuse_reading(built: Conditionals, **told: Any) -> None:
    """Refuse what says how a model is read, where nothing is read."""
    for option, value in told.items():
        if value is not None and value is not False:
            raise BesagError(
                f"{option}={quoted(str(value) if isinstance(value, Path) else value)} is for a model that is read from "
                f"a folder or the hub, and {built.name!r} is built already: leave it out"
            )


def _refuse_elsewhere(built: Conditionals, device: str | torch.device | None, dtype: str | torch.dtype | None) -> None:
    """Refuse another device or precision than that of a model that is built already."""
    if device is not None and str(device).strip().lower() != "auto":
        asked = choose_device(device)
        if asked.type != built.device.type or asked.index not in (None, built.device.index):
            raise BesagError(
                f"device={quoted(str(device))}: {built.name!r} is built already, on {built.device}. Leave device out, "
                "or build it there"
            )
    said = "auto" if dtype is None else str(dtype).strip().lower()
    if said != "auto" and choose_dtype(dtype, built.device) != built.dtype:
        raise BesagError(
            f"dtype={quoted(dtype_name(dtype))}: {built.name!r} is built already, in {dtype_name(built.dtype)}. "
            "Leave dtype out, or build it in that precision"
        )


def _named(built: Conditionals, name: str | None) -> Conditionals:
    """Return the model under a name: a copy that shares its weights, or itself where the name is its own."""
    if name is None or name == built.name:
        return built
    other = copy(built)
    try:
        other.name = name
    except AttributeError as problem:
        raise BesagError(f"name={quoted(name)}: {built.name!r} cannot be renamed ({problem}); leave name out") from None
    return other


def _compile(conditionals: Conditionals) -> None:
    compiles = getattr(conditionals, "compile", None)
    if compiles is None:
        raise BesagError(f"compile=True: {conditionals.name!r} has no layers to compile: it is not a network")
    if conditionals.device.type == "cuda":
        compiles()
    else:
        warnings.warn(f"compile=True is for CUDA, and this is {conditionals.device}: not compiled", stacklevel=3)


def _untilted(conditionals: Conditionals, model: object, revision: str | None) -> Conditionals:
    from besag.conditionals.tilt import untilted

    return untilted(conditionals, model, revision)
