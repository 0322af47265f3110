"""The door to models: `besag.load` finds whoever answers, and makes a `LanguageModel` of it."""

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
    """A language model from the embedded model (None), a folder, a hub name, (model, tokenizer) or an exact law.

    Args:
        model: what to load; nothing: the small English model that ships with besag.
        tokenizer: another tokenizer than the model's own.
        device: "cpu", "cuda", "cuda:1", "mps"; if not given, the fastest there is.
        dtype: "float32", "bfloat16", "float16"; on a CPU "int8", products of 8-bit numbers; if not given, bfloat16 on
            CUDA and float32 elsewhere. A model that is built already keeps its device and dtype: others are refused.
        revision: of a model on the hub.
        allow_pickle: load weights that are no safetensors files. Such files can run code: only from whom you trust.
        compile: spend some ten seconds on CUDA to run large batches faster, those of ModernBERT twice as fast.
        untilt: take out what a law of masks that looks at tokens put into the answers.
        adapter: the folder of an adapter that was trained beside this model and kept apart (`adapt.keep`).
        batch_tokens: how many tokens run at a time; if not given, as many as fit.
        progress: show a bar on stderr; if not given, only on a terminal, for work of over a second.
        name: what results call the model.

    Returns:
        A `LanguageModel`. A model whose head would be made up at random is refused.

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
        if model is None or model == models.EMBEDDED:
            model, name = models.path(), name or models.EMBEDDED
        from besag.conditionals.loading import load_conditionals  # brings transformers, which exact laws do without

        conditionals = load_conditionals(
            model, tokenizer=tokenizer, device=device, dtype=dtype, revision=revision, allow_pickle=allow_pickle,
            adapter=adapter, name=name,
        )  # fmt: skip
    if compile:
        _compile(conditionals)
    if untilt:  # the last law of masks it learned by
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
        raise BesagError(f"compile=True: {conditionals.name!r} is no network, and has no layers to compile")
    if conditionals.device.type == "cuda":
        compiles()
    else:
        warnings.warn(f"compile=True is for CUDA, and this is {conditionals.device}: not compiled", stacklevel=3)


def _untilted(conditionals: Conditionals, model: object, revision: str | None) -> Conditionals:
    from besag.conditionals.tilt import untilted

    return untilted(conditionals, model, revision)
