"""The door to models: `besag.load` finds whoever answers, and makes a `LanguageModel` of it."""

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
    """A language model from the embedded model (None), a folder, a hub name, (model, tokenizer) or an exact law.

    Args:
        model: what to load; nothing: the small English model that ships with besag.
        tokenizer: another tokenizer than the model's own.
        device: "cpu", "cuda", "cuda:1", "mps"; if not given, the fastest there is.
        dtype: "float32", "bfloat16", "float16"; on a CPU "int8", products of 8-bit numbers; if not given, bfloat16 on
            CUDA and float32 elsewhere.
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
    if untilt:  # the last law of masks it learned by
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
