"""`besag.load`: read a model from a folder or the Hub, or wrap an exact one, as a `LanguageModel`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch

from besag import models
from besag.checks import checked
from besag.conditionals.contract import Conditionals
from besag.errors import BesagError, quoted
from besag.language_model import LanguageModel


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
            CUDA, float32 elsewhere.
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
        conditionals = _as_it_is(model, adapter)
    else:
        if model is None or models.is_bundled(model):
            model, name = models.path(), name or models.EMBEDDED
        from besag.conditionals.loading import load_conditionals  # brings transformers, which exact laws do without

        conditionals = load_conditionals(
            model, tokenizer=tokenizer, device=device, dtype=dtype, revision=revision, allow_pickle=allow_pickle,
            adapter=adapter, name=name,
        )  # fmt: skip
        if compile and conditionals.device.type == "cuda":
            conditionals.compile()
        elif compile:
            warnings.warn(f"compile=True is for CUDA, and this is {conditionals.device}: not compiled", stacklevel=2)
    if untilt:  # of the last masking strategy in training
        conditionals = _untilted(conditionals, *((model, revision) if adapter is None else (adapter, None)))
    return LanguageModel(conditionals, batch_tokens=batch_tokens, progress=progress)


def _as_it_is(built: Conditionals, adapter: str | Path | None) -> Conditionals:
    if adapter is not None:
        raise BesagError(
            f"adapter = {quoted(str(adapter))} is for a model that is read from a folder or the hub, and "
            f"{built.name!r} is built already"
        )
    return built


def _untilted(conditionals: Conditionals, model: object, revision: str | None) -> Conditionals:
    from besag.conditionals.tilt import untilted

    return untilted(conditionals, model, revision)
