"""From a folder, a hub name or a (model, tokenizer) pair to one who answers; and what such a thing is, not loaded.

Knows what must not pass in silence: weights that transformers would make up, pickles, a tokenizer that belongs to
another network. Knows nothing of how questions are run.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from besag.conditionals import checkpoint as saved
from besag.conditionals.causal import Causal
from besag.conditionals.network import USABLE, check_ids, longest
from besag.conditionals.transformer import NO_MASK, Transformer
from besag.errors import BesagError
from besag.hardware import LOW_PRECISION, choose_device, choose_dtype
from besag.vocabulary import Vocabulary

NETWORKS: dict[str, type[Transformer] | type[Causal]] = {"masked": Transformer, "causal": Causal}


def load_conditionals(
    model: str | Path | tuple[Any, Any],
    *,
    tokenizer: Any = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    revision: str | None = None,
    allow_pickle: bool = False,
    name: str | None = None,
) -> Transformer | Causal:
    """One who answers, from a folder, a hub name, or a pair of a built model and its tokenizer.

    A pair stays where and as precise as it is, unless `device` or `dtype` says otherwise. `tokenizer` (one that is
    built, a folder or a hub name) replaces the one that lies with the weights. Only safetensors are read unless
    `allow_pickle`, and no code that comes with a model is ever run.
    """
    if isinstance(model, tuple):
        return _from_pair(model, tokenizer, device, dtype, name)
    if not isinstance(model, str | Path):
        raise BesagError(
            f"a model is a folder, a name on the hub or a pair (model, tokenizer), not a {type(model).__name__}"
        )
    name = name or str(model)
    chosen_device = choose_device(device)
    chosen_dtype = choose_dtype(dtype, chosen_device)
    folder = saved.find_folder(model, revision, *saved.WEIGHT_FILES)
    if allow_pickle and not saved.has_any(folder, saved.WEIGHTS):
        folder = saved.find_folder(model, revision, *saved.PICKLE_FILES)
    with _nothing_collected(), saved.quiet():
        config = saved.read_config(folder, name)
        kind = _kind(config, name)
        safe = saved.check_weights(folder, name, allow_pickle)
        vocabulary = read_vocabulary(folder if tokenizer is None else tokenizer, name)
        network = read_network(folder, config, kind, name, dtype=chosen_dtype, use_safetensors=safe)
        return NETWORKS[kind](network.to(chosen_device), vocabulary, name)


def describe(model: str | Path, revision: str | None = None) -> dict[str, Any]:
    """What a folder or hub name is and whether besag can use it, from its small files and the headers of its weights.

    `usable` is False exactly where `why_not` says why; what could not be found out is None.
    """
    facts: dict[str, Any] = dict.fromkeys(
        ("architecture", "kind", "parameters", "vocabulary", "width", "max_length", "mask_token")
    )
    try:
        with saved.quiet():
            _find_out(model, revision, facts)
    except BesagError as problem:
        return {"name": str(model), **facts, "usable": False, "why_not": str(problem)}
    return {"name": str(model), **facts, "usable": True, "why_not": ""}


def _find_out(model: str | Path, revision: str | None, facts: dict[str, Any]) -> None:
    """Fill in the facts in the order in which they are found, until one of them is a reason to refuse."""
    name = str(model)
    folder = saved.find_folder(model, revision)
    config = saved.read_config(folder, name)
    facts["architecture"], facts["kind"], _ = saved.architecture(config)
    shapes = saved.stored_shapes(folder, model, revision)
    facts["parameters"] = saved.size(shapes) or None
    kind = _kind(config, name)
    vocabulary = read_vocabulary(folder, name)
    facts["vocabulary"], facts["mask_token"] = vocabulary.size, vocabulary.mask_token
    if not shapes:
        saved.check_weights(folder, name, allow_pickle=False)
    # One number, spread over the shape of each tensor: the loader sees what is there, and nothing fills memory.
    hollow = {key: torch.zeros(()).expand(shape) for key, shape in shapes.items()}
    network = read_network(None, config, kind, name, dtype=torch.float32, state_dict=hollow)
    answers = network.get_output_embeddings()
    facts["width"] = config.vocab_size if answers is None else answers.weight.shape[0]
    facts["max_length"] = longest(network, vocabulary.tokenizer)
    check_ids(network, vocabulary, repr(name))
    if kind == "masked" and vocabulary.mask_id is None:
        raise BesagError(NO_MASK.format(repr(name)))


def _from_pair(
    pair: tuple[Any, ...],
    tokenizer: Any,
    device: str | torch.device | None,
    dtype: str | torch.dtype | None,
    name: str | None,
) -> Transformer | Causal:
    if len(pair) != 2 or tokenizer is not None:
        raise BesagError(
            f"a pair is (model, tokenizer), with no other tokenizer beside it; here it is a tuple of {len(pair)}"
            + ("" if tokenizer is None else " and a tokenizer")
        )
    network, own = pair
    for part, needs in ((network, "config"), (own, "model_max_length")):
        if not hasattr(part, needs):
            raise BesagError(
                f"a pair is (model, tokenizer), both from transformers, but a {type(part).__name__} is none of either"
            )
    if device is not None:
        network = network.to(choose_device(device))
    if dtype is None and network.dtype in LOW_PRECISION:
        dtype = network.dtype  # which a CPU may not be able to compute in
    if dtype is not None:
        network = network.to(choose_dtype(dtype, network.device))
    built = saved.architecture(network.config, type(network).__name__)
    with saved.quiet():
        return NETWORKS.get(built.kind, Transformer)(network, Vocabulary(own), name)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Python looks for no garbage in here: what is imported and loaded stays, and to look through it takes a second."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _kind(config: Any, name: str) -> saved.Kind:
    found = saved.architecture(config)
    if found.kind == "neither":
        raise BesagError(f"{name!r} ({found.name}) cannot be used: {found.why_not}. {USABLE[0].upper()}{USABLE[1:]}")
    return found.kind


def read_vocabulary(source: Any, name: str) -> Vocabulary:
    """The vocabulary of a built tokenizer, or of one that lies in a folder or on the hub."""
    if not isinstance(source, str | Path):
        return Vocabulary(source)
    folder = saved.find_folder(source, None)
    if not saved.has_any(folder, saved.TOKENIZER_FILES):
        raise BesagError(
            f"{name!r} holds no tokenizer (no {', '.join(saved.TOKENIZER_FILES)} in {str(source)!r}); give one with "
            f"tokenizer="
        )
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except Exception as problem:
        raise BesagError(f"the tokenizer of {name!r} cannot be read: {saved.first_line(problem)}") from problem
    if len(tokenizer) <= len(set(tokenizer.all_special_ids)):  # transformers makes up an empty one without files
        raise BesagError(
            f"the tokenizer of {name!r} knows {len(tokenizer)} special tokens and no others: its vocabulary is missing"
        )
    return Vocabulary(tokenizer)


def read_network(folder: Path | None, config: Any, kind: saved.Kind, name: str, **how: Any) -> Any:
    """The network with every weight it uses read from its files: none made up, none of another shape."""
    from transformers.models.auto import modeling_auto

    mappings: Any = modeling_auto
    mapping = mappings.MODEL_FOR_MASKED_LM_MAPPING if kind == "masked" else mappings.MODEL_FOR_CAUSAL_LM_MAPPING
    family = mapping[type(config)]
    try:
        network, info = family.from_pretrained(
            folder, config=config, output_loading_info=True, ignore_mismatched_sizes=True, **how
        )
    except Exception as problem:
        raise BesagError(f"the weights of {name!r} cannot be read: {saved.first_line(problem)}") from problem
    title = f"{name!r} as {family.__name__}"
    if info["mismatched_keys"]:
        key, stored, wanted = sorted(info["mismatched_keys"])[0]
        raise BesagError(
            f"{title}: the stored {key} has the shape {tuple(stored)}, but the config.json asks for {tuple(wanted)}, "
            f"so these files do not belong together"
        )
    learned = {key for key, weight in network.named_parameters(remove_duplicate=False) if weight.requires_grad}
    missing = sorted(key for key in learned & set(info["missing_keys"]) if "pooler" not in key.split("."))
    if missing:
        saved_as = next(iter(config.architectures or ()), None)
        raise BesagError(
            f"{title} lacks {len(missing)} weights, for which transformers would make up random numbers: "
            f"{', '.join(missing[:8])}{' …' if missing[8:] else ''}."
            + (f" It was saved from a {saved_as}." if saved_as not in (None, family.__name__) else "")
        )
    return network
