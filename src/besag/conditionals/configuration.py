"""What the small files of a model may say: read in bounds, and without what would fetch or run anything.

A config.json can name code: of its own repository, of a kernel on the hub, of a package for quantised weights. It can
also ask for a billion layers. So transformers never reads it itself: it is given what is left after this file. Knows
JSON and the keys that transformers acts on. Refuses to know networks and weights.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from besag.conditionals import families, published
from besag.errors import BesagError, quoted

MOST_BYTES = 2**26  # of one small file; a tokenizer.json may have more
MOST_DEPTH = 40  # lists and dictionaries in one another
MOST_LAYERS = 1_000  # of anything that is counted in layers: ten times what the deepest language models have

ATTENTION = ("eager", "sdpa")  # those of torch and of transformers itself
EXPERTS = ("eager", "batched_mm", "grouped_mm")
IMPLEMENTATIONS = {
    **dict.fromkeys(("attn_implementation", "_attn_implementation", "_attn_implementation_internal"), ATTENTION),
    **dict.fromkeys(("experts_implementation", "_experts_implementation", "_experts_implementation_internal"), EXPERTS),
}
# Of no use to a language model, and each a way to code, to other files or to endless lists.
IGNORED = {
    "auto_map", "custom_pipelines", "trust_remote_code", "use_kernels", "kernel_config", "allow_all_kernels",
    "fusion_config", "distributed_config", "device_map", "transformers_weights", "configuration_files", "gguf_file",
    "base_model_name_or_path", "peft_config", "num_labels", "id2label", "label2id", "finetuning_task",
    "task_specific_params",
}  # fmt: skip
COUNTED = re.compile(r"(^|_)(layers?|blocks?|experts?|groups?|stages?|depths?|heads?)($|_)")
NO_COUNT = re.compile(r"_(size|sizes|id|ids|dim|eps|scale|length|types?)$")

# What besag itself writes of the weights, where they are no plain ones.
WEIGHTS_KEY, WEIGHTS_KINDS = "besag_weights", ("int8",)

ADAPTER_KEY = "besag_adapter"  # of what stands beside the weights of a network: the kind of adapter

# How the decoder of an encoder-decoder is run; where it does not say, as the family has it: from the left.
DECODER_KEY, DECODERS = "besag_decoder", ("masked", "causal")

# Of a masked network that was trained block after block: the tokens of a block. Where it does not say, of no blocks.
BLOCK_KEY = "besag_block_length"

# A tokenizer that reads its words from elsewhere, or is handed arguments of which nobody knows what they are.
TOKENIZER_REFUSED = ("gguf_file", "init_inputs", "subfolder", "tokenizer_object", "vocab", "merges")


def read_config(folder: Path, name: str) -> Any:
    """The configuration of the network in a folder, as transformers knows it, with nothing in it that loads code."""
    if not (folder / "config.json").is_file():
        inside = sorted(file.parent.name for file in folder.glob("*/config.json"))
        hint = f"; its folder {inside[0]!r} has one" if inside else ""
        raise BesagError(f"{quoted(name)} holds no config.json, so it is no saved Hugging Face model{hint}")
    what = f"the config.json of {quoted(name)}"
    said = clean(read_json(folder / "config.json", what), what)
    if ADAPTER_KEY in said:
        raise BesagError(
            f"{quoted(name)} is an adapter, and no model: load the model that it was trained beside, which is called "
            f"{quoted(said.get('base'))} there, with this as its adapter"
        )
    kind = said.pop(WEIGHTS_KEY, None)  # of the files, not of the network, which may be saved again in another kind
    if kind not in (None, *WEIGHTS_KINDS):
        raise BesagError(
            f"{what} cannot be used: {WEIGHTS_KEY}={quoted(kind)}, where this besag knows {', '.join(WEIGHTS_KINDS)} "
            f"alone; a newer one may know more"
        )
    if said.get(DECODER_KEY, "causal") not in DECODERS:
        raise BesagError(
            f"{what} cannot be used: {DECODER_KEY}={quoted(said[DECODER_KEY])}, where besag knows {', '.join(DECODERS)}"
        )
    if DECODER_KEY in said:
        said.pop("is_causal", None)  # follows from it, and would turn the encoder as well
    _refuse_no_tokenizer(said.get("tokenizer_class"), what)
    return _built(said, what, folder)


def _refuse_undeclared(key: str, value: Any, what: str) -> None:
    """Refuse what cannot be a shift, true or false, or the id of a mask token."""
    right = isinstance(value, bool) if key == published.SHIFT_KEY else type(value) is int and value >= 0
    if value is not None and not right:
        needed = "true or false" if key == published.SHIFT_KEY else "the id of a token"
        raise BesagError(f"{what} cannot be used: {key}={quoted(value)}, where {needed} must stand")


def decoder_of(config: Any) -> str:
    """How the decoder of a network is run: "masked" or "causal"."""
    return str(getattr(config, DECODER_KEY, "causal"))


def block_length_of(config: Any) -> int | None:
    """How many tokens the blocks have in which a network was trained; None: it was trained on whole texts."""
    length: int | None = getattr(config, BLOCK_KEY, None)
    return length


def read_json(file: Path, what: str) -> dict[str, Any]:
    """The object that a small JSON file holds; refused if it is large, torn, nested deeply or something else."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise BesagError(f"{what} cannot be used: it has over {MOST_BYTES >> 20} MiB")
        said = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:  # a BesagError is a ValueError, and says it already
        if isinstance(problem, BesagError):
            raise
        raise BesagError(f"{what} cannot be used: {reason(problem)}") from problem
    if not isinstance(said, dict):
        raise BesagError(f"{what} cannot be used: it holds {quoted(said)}, no object of names and values")
    return said


def reason(problem: BaseException) -> str:
    """What went wrong, in one line that a reader can bear."""
    if isinstance(problem, RecursionError):
        return "it is nested too deeply"
    words = (str(problem).strip() or type(problem).__name__).splitlines()[0]
    return words if len(words) <= 300 else f"{words[:300]} …"


def clean(said: dict[str, Any], what: str) -> dict[str, Any]:
    """The same without what would fetch or run anything; refused where that would leave another network."""
    foreign: list[str] = []
    result: dict[str, Any] = _cleaned(said, what, foreign, depth=1)
    if foreign:
        warnings.warn(
            f"{what} asks for {', '.join(foreign)}, which is no part of torch or transformers; besag fetches no code, "
            f"and runs the network with torch's own attention",
            stacklevel=4,
        )
    return result


def _cleaned(value: Any, what: str, foreign: list[str], depth: int) -> Any:
    if depth > MOST_DEPTH:
        raise BesagError(f"{what} cannot be used: it is nested too deeply")
    if isinstance(value, list):
        return [_cleaned(part, what, foreign, depth + 1) for part in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, part in value.items():
        if key in IGNORED:
            continue
        if key == "quantization_config" and part:
            raise BesagError(f"{what} cannot be used: its weights are quantised, and besag reads plain ones only")
        if key in IMPLEMENTATIONS and any(named not in IMPLEMENTATIONS[key] for named in _leaves(part)):
            foreign.append(f"{key}={quoted(part)}")
            continue
        if COUNTED.search(key) and not NO_COUNT.search(key):
            _refuse_many(key, part, what)
        kept[key] = _cleaned(part, what, foreign, depth + 1)
    return kept


def _leaves(value: Any) -> Iterator[Any]:
    """What an implementation is called, for the whole network or for its parts by name."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _leaves(part)
    elif value is not None:
        yield value


def _refuse_many(key: str, value: Any, what: str) -> None:
    count = len(value) if isinstance(value, list | dict) else value
    least = 0 if key.startswith(("num_", "n_")) else -MOST_LAYERS  # what is no count may be counted from the end
    if isinstance(count, int | float) and not least <= count <= MOST_LAYERS:
        raise BesagError(f"{what} cannot be used: {key}={quoted(value)}, where besag takes 0 to {MOST_LAYERS:,}")


def _built(said: dict[str, Any], what: str, folder: Path) -> Any:
    family, classes = said.get("model_type"), said.get("architectures")
    if classes is not None and not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)):
        raise BesagError(f"{what} cannot be used: architectures={quoted(classes)}, not a list of names")
    if family == "mistral" and "layer_types" in said:
        family = said["model_type"] = "ministral"  # as transformers reads it
    for name in classes or ():
        family = said["model_type"] = families.OF_CLASS.get(name, family)
    if isinstance(family, str):
        said = published.translated(said, what)
        family = said["model_type"]
    length = said.get(BLOCK_KEY, 1)
    if not isinstance(length, int) or isinstance(length, bool) or length < 1:
        raise BesagError(f"{what} cannot be used: {BLOCK_KEY}={quoted(length)}, where a number of tokens must stand")
    for key in (published.SHIFT_KEY, published.MASK_KEY):
        _refuse_undeclared(key, said.get(key), what)
    kind = families.configuration(family)
    if kind is None:
        raise BesagError(
            f"{what} cannot be used: neither besag nor transformers knows a network of model_type={quoted(family)} "
            f"(besag never runs code that comes with a model)"
        )
    try:
        return kind.from_dict(said, name_or_path=str(folder))
    except Exception as problem:  # each family trips over wrong settings in its own way
        why = reason(problem.__cause__ or problem)  # a check of the class is wrapped, and its words are those inside
        raise BesagError(f"{what} cannot be used: {why}") from problem


def tokenizer_settings(folder: Path, name: str) -> dict[str, str | None]:
    """What must be said to read the tokenizer of a folder from that folder alone; refused if it wants something else.

    A tokenizer_config.json can name files anywhere. They are looked for under the same name in the folder.
    """
    file, what = folder / "tokenizer_config.json", f"the tokenizer_config.json of {quoted(name)}"
    said = read_json(file, what) if file.exists() else {}
    written = said.get("tokenizer_class")
    family = published.TOKENIZERS.get(written) if isinstance(written, str) else None
    if family is None:
        _refuse_no_tokenizer(written, what)
    for key in TOKENIZER_REFUSED:
        if said.get(key):
            raise BesagError(f"{what} cannot be used: {key}={quoted(said[key])}, where no such thing may stand")
    for other in said.get("fast_tokenizer_files") or ():
        if not is_plain_name(other):
            raise BesagError(f"{what} cannot be used: {quoted(other)} is no file of that folder")
    named = {key: str(value) for key, value in said.items() if key.endswith("_file") and value}
    here = {key: folder / Path(value.replace("\\", "/")).name for key, value in named.items()}
    files = {key: str(path) if path.is_file() else None for key, path in here.items()}
    return files if family is None else files | {"tokenizer_type": family}


def is_plain_name(name: object) -> bool:
    """Is it the name of a file, with no folder in it?"""
    return isinstance(name, str) and name not in ("", ".", "..") and not re.search(r"[/\\:\0]", name)


def _refuse_no_tokenizer(named: object, what: str) -> None:
    """`tokenizer_class` may be any name that transformers has, also that of a network, which would then be loaded."""
    if named is None:
        return
    if isinstance(named, str) and named.isidentifier():
        from transformers import PreTrainedTokenizerBase
        from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

        found: Any = tokenizer_class_from_name(named)
        if found is None or (isinstance(found, type) and issubclass(found, PreTrainedTokenizerBase)):
            return
        if getattr(found, "_backends", None):  # stands for a class that needs a package, and says so when it is used
            return
    raise BesagError(f"{what} cannot be used: tokenizer_class={quoted(named)} is no tokenizer of transformers")
