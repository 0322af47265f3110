"""From a folder, a hub name or a (model, tokenizer) pair to one who answers; and what such a thing is, not loaded.

Knows what must not pass in silence: weights that transformers would make up, pickles, a tokenizer that belongs to
another network. Knows nothing of how questions are run.
"""

from __future__ import annotations

import copy
import gc
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from besag.conditionals import adapters, additions, families, published, reach, weights
from besag.conditionals import checkpoint as saved
from besag.conditionals.causal import Causal
from besag.conditionals.configuration import read_config, reason, tokenizer_settings
from besag.conditionals.decoder import CausalDecoder, Decoder, MaskedDecoder
from besag.conditionals.length_head import FILE as LENGTH_FILE
from besag.conditionals.network import USABLE, check_ids, longest
from besag.conditionals.transformer import NO_MASK, Transformer
from besag.errors import BesagError, quoted
from besag.hardware import LOW_PRECISION, choose_device, choose_dtype, memory_available
from besag.vocabulary import Vocabulary

NETWORKS: dict[str, Any] = {
    "masked": Transformer, "causal": Causal, "masked decoder": MaskedDecoder, "causal decoder": CausalDecoder,
}  # fmt: skip
MAPPINGS = {"masked": "MASKED_LM", "causal": "CAUSAL_LM"}  # of transformers; all others are those of encoder-decoders
# A config may ask for more weights than are stored, but not for so many more that to make them up would fill memory.
SURPLUS, SMALL = 4, 2**24
NUMBER = re.compile(r"\d+")


def load_conditionals(
    model: str | Path | tuple[Any, Any],
    *,
    tokenizer: Any = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    revision: str | None = None,
    allow_pickle: bool = False,
    adapter: str | Path | None = None,
    name: str | None = None,
) -> Transformer | Causal | Decoder:
    """One who answers, from a folder, a hub name, or a pair of a built model and its tokenizer.

    A pair stays where and as precise as it is, unless `device` or `dtype` says otherwise. `tokenizer` (one that is
    built, a folder or a hub name) replaces the one that lies with the weights. Only safetensors are read unless
    `allow_pickle`, and no code that comes with a model is ever run. `adapter` is the folder of one that was trained
    beside these weights.
    """
    if isinstance(model, tuple):
        if adapter is not None:
            raise BesagError(
                f"adapter = {quoted(str(adapter))} is for a model that is read from a folder or the hub: whether a "
                "pair has the weights that it was trained beside cannot be told"
            )
        return _from_pair(model, tokenizer, device, dtype, name)
    if not isinstance(model, str | Path):
        raise BesagError(
            f"a model is a folder, a name on the hub or a pair (model, tokenizer), not a {type(model).__name__}"
        )
    name = name or str(model)
    chosen_device = choose_device(device)
    chosen_dtype = choose_dtype(dtype, chosen_device)
    beside = (saved.SCORER_FILE, LENGTH_FILE, saved.COUNTS_FILE)
    folder = saved.find_folder(model, revision, *saved.WEIGHT_FILES, *beside)
    if allow_pickle and not weights.has_weights(folder):
        folder = saved.find_folder(model, revision, *saved.PICKLE_FILES)
    with _nothing_collected(), saved.quiet(), _refused(name):
        config = read_config(folder, name)
        kind = _kind(config, name)
        files = weights.weight_files(folder, name, allow_pickle)
        same = tokenizer is None
        vocabulary = read_vocabulary(folder if same else tokenizer, name, config if same else None)
        stored = weights.read_weights(files, name)
        eight_bits = chosen_dtype is torch.int8  # of products: the network is built in float32
        _refuse_eight_bits(kind, eight_bits, name)
        if adapter is not None:
            _refuse_adapter(kind, eight_bits, adapter, name)
        built_in = torch.float32 if eight_bits else chosen_dtype
        refuse_without_room(stored, built_in, chosen_device, name)
        network = read_network(stored, config, kind, name, built_in)
        if adapter is not None:
            base = adapters.Base(name, folder, adapters.digest(stored))
            return _adapted(network.to(chosen_device), vocabulary, adapter, base)
        conditionals: Transformer | Causal | Decoder = NETWORKS[kind](network.to(chosen_device), vocabulary, name)
        conditionals.folder = folder
        if eight_bits:
            assert not isinstance(conditionals, Decoder)
            conditionals.round_to_eight_bits(published.renamed(weights.read_rows(files, name), config.model_type))
        reach.warn_of_no_reach(vocabulary, name)
        return conditionals


def with_adapter(conditionals: Any, adapter: str | Path | None) -> Transformer:
    """The same network with another adapter, or none; its weights are shared, and what it had on before is left out."""
    base, folder = getattr(conditionals, "base", None), getattr(conditionals, "folder", None)
    if not isinstance(conditionals, Transformer) or (base is None and folder is None):
        raise BesagError(
            f"{quoted(conditionals.name)} takes no adapter: that is for a masked network, read from a folder or the hub"
        )
    if base is None:
        assert folder is not None
        base = adapters.Base(conditionals.name, folder, adapters.digest_of(folder, conditionals.name))
        conditionals.base = base
    _refuse_adapter("masked", conditionals.dtype is torch.int8, adapter, base.name)
    with saved.quiet(), _refused(base.name):
        return _adapted(additions.sharing(conditionals.model), conditionals.vocabulary, adapter, base)


def _adapted(network: Any, vocabulary: Vocabulary, adapter: str | Path | None, base: adapters.Base) -> Transformer:
    """One who answers with an adapter; what lies in the base's folder was learned without it, and is not its own."""
    own = None if adapter is None else adapters.put_on(network, adapter, base.name, base.sha256)
    name = base.name if adapter is None else f"{base.name} (adapter: {adapter})"
    conditionals = Transformer(network, vocabulary, name)
    conditionals.base, conditionals.adapter = base, own
    conditionals.folder = base.folder if adapter is None else None
    return conditionals


def _refuse_adapter(kind: str, eight_bits: bool, adapter: str | Path | None, name: str) -> None:
    if kind != "masked":
        raise BesagError(
            f"adapter = {quoted(str(adapter))}: {quoted(name)} is a {kind} network, and adapters are of masked ones"
        )
    if eight_bits:
        raise BesagError(f"adapter = {quoted(str(adapter))}: a network on 8-bit numbers takes none: use another dtype")


def describe(model: str | Path, revision: str | None = None) -> dict[str, Any]:
    """What a folder or hub name is and whether besag can use it, from its small files and the headers of its weights.

    `usable` is False exactly where `why_not` says why; what could not be found out is None.
    """
    facts: dict[str, Any] = dict.fromkeys(
        ("architecture", "kind", "parameters", "vocabulary", "width", "max_length", "mask_token", "shift")
    )
    try:
        with saved.quiet(), _refused(str(model)):
            _find_out(model, revision, facts)
    except BesagError as problem:
        return {"name": str(model), **facts, "usable": False, "why_not": str(problem)}
    return {"name": str(model), **facts, "usable": True, "why_not": ""}


def _find_out(model: str | Path, revision: str | None, facts: dict[str, Any]) -> None:
    """Fill in the facts in the order in which they are found, until one of them is a reason to refuse."""
    name = str(model)
    folder = saved.find_folder(model, revision)
    config = read_config(folder, name)
    facts["architecture"], facts["kind"], _ = saved.architecture(config)
    shapes = _shapes(folder, model, revision)
    facts["parameters"] = weights.size(shapes) or None
    kind = _kind(config, name)
    facts["shift"] = published.shift_of(config) if kind == "masked" else None
    vocabulary = read_vocabulary(folder, name, config)
    facts["vocabulary"], facts["mask_token"] = vocabulary.size, vocabulary.mask_token
    if not shapes:
        weights.weight_files(folder, name, allow_pickle=False)
    # One number, spread over the shape of each tensor: the loader sees what is there, and nothing fills memory.
    hollow = {key: torch.zeros(()).expand(shape) for key, shape in shapes.items()}
    network = read_network(hollow, config, kind, name, torch.float32)
    answers = network.get_output_embeddings()
    facts["width"] = config.vocab_size if answers is None else answers.weight.shape[0]
    facts["max_length"] = longest(network, vocabulary.tokenizer)
    check_ids(network, vocabulary, quoted(name))
    if kind.startswith("masked") and vocabulary.mask_id is None:
        raise BesagError(NO_MASK.format(quoted(name)))
    if lost := reach.out_of_reach(vocabulary):
        raise BesagError(f"the tokenizer of {quoted(name)} {lost}")


def _shapes(folder: Path, model: str | Path, revision: str | None) -> weights.Shapes:
    """Of the weights in the folder; of a model on the hub, whose weights need not be in its cache, by its headers."""
    name = str(model)
    if folder != Path(model).expanduser() and not saved.has_any(folder, saved.WEIGHT_FILES):
        return weights.shapes_on_the_hub(name, revision)
    if not weights.has_weights(folder):
        return {}
    return weights.stored_shapes(weights.weight_files(folder, name, allow_pickle=False), name)


def _from_pair(
    pair: tuple[Any, ...],
    tokenizer: Any,
    device: str | torch.device | None,
    dtype: str | torch.dtype | None,
    name: str | None,
) -> Transformer | Causal | Decoder:
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
    chosen = None if dtype is None else choose_dtype(dtype, network.device)
    if chosen is torch.int8:
        network = copy.deepcopy(network).float()  # the layers of a network that is somebody else's are not replaced
    elif chosen is not None:
        network = network.to(chosen)
    built = saved.architecture(network.config, type(network).__name__)
    _refuse_eight_bits(built.kind, chosen is torch.int8, name or type(network).__name__)
    with saved.quiet():
        conditionals: Transformer | Causal | Decoder = NETWORKS.get(built.kind, Transformer)(
            network, Vocabulary(own), name
        )
    if chosen is torch.int8:
        assert not isinstance(conditionals, Decoder)
        conditionals.round_to_eight_bits()
    return conditionals


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


@contextmanager
def _refused(name: str) -> Iterator[None]:
    """Files from elsewhere can be wrong in any way, and whatever transformers trips over then is one refusal."""
    try:
        yield
    except BesagError:
        raise
    except Exception as problem:
        raise BesagError(f"{quoted(name)} cannot be loaded: {reason(problem)}") from problem


def _kind(config: Any, name: str) -> saved.Kind:
    found = saved.architecture(config)
    if found.kind == "neither":
        raise BesagError(
            f"{quoted(name)} ({found.name}) cannot be used: {found.why_not}. {USABLE[0].upper()}{USABLE[1:]}"
        )
    return found.kind


def read_vocabulary(source: Any, name: str, config: Any = None) -> Vocabulary:
    """The vocabulary of a built tokenizer, or of one that lies in a folder or on the hub, of a network or by itself."""
    if not isinstance(source, str | Path):
        return Vocabulary(source)
    folder = saved.find_folder(source, None)
    if not saved.has_any(folder, saved.TOKENIZER_FILES):
        raise BesagError(
            f"{quoted(name)} holds no tokenizer (no {', '.join(saved.TOKENIZER_FILES)} in {quoted(str(source))}): put "
            f"its files there (in Python, tokenizer= takes another)"
        )
    from transformers import AutoTokenizer, PreTrainedConfig

    settings = tokenizer_settings(folder, name)
    if config is None:  # else transformers would read config.json by itself
        with suppress(BesagError):
            config = read_config(folder, name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, config=config or PreTrainedConfig(), trust_remote_code=False, local_files_only=True, **settings
        )
        size, special = len(tokenizer), len(set(tokenizer.all_special_ids))
    except Exception as problem:
        raise BesagError(f"the tokenizer of {quoted(name)} cannot be read: {reason(problem)}") from problem
    if size <= special:  # transformers makes up an empty one without files
        raise BesagError(
            f"the tokenizer of {quoted(name)} knows {size} special tokens and no others: its vocabulary is missing"
        )
    _name_mask(tokenizer, config, name)
    return Vocabulary(tokenizer)


def _name_mask(tokenizer: Any, config: Any, name: str) -> None:
    """Give a tokenizer that names no mask token the one that the configuration declares."""
    mask = published.mask_id_of(config)
    if mask is None or tokenizer.mask_token is not None:
        return
    known = len(tokenizer), config.vocab_size
    if mask >= min(known):
        raise BesagError(
            f"the mask token of {quoted(name)} has the id {mask}, but its tokenizer has {known[0]} tokens and its "
            f"network {known[1]}: set mask_token_id in its config.json to the id of its mask token"
        )
    tokenizer.mask_token = tokenizer.convert_ids_to_tokens(mask)


def refuse_without_room(stored: dict[str, torch.Tensor], dtype: torch.dtype, device: torch.device, name: str) -> None:
    """Refuse a network whose weights would not fit into the memory of the host, from where they go to the device."""
    needed = dtype.itemsize * weights.size(weights.shapes_of(stored))
    for place in {torch.device("cpu"), device}:
        free = memory_available(place)
        if free is not None and needed > free:
            raise BesagError(
                f"the weights of {quoted(name)} need {needed / 2**30:.1f} GiB as {str(dtype).removeprefix('torch.')}, "
                f"and {free / 2**30:.1f} GiB are free on {place}"
            )


def read_network(
    stored: dict[str, Any], config: Any, kind: saved.Kind, name: str, dtype: torch.dtype, *, whole: bool = True
) -> Any:
    """The network with every weight it uses among those stored: none made up, none of another shape.

    With `whole`, a layer that is stored and not used is refused as well: fewer layers are another network. Of besag's
    own family every stored weight must be used: whatever its config.json can switch off makes another network.
    """
    from transformers.models.auto import modeling_auto

    mappings: Any = modeling_auto
    mapping = getattr(mappings, f"MODEL_FOR_{MAPPINGS.get(kind, 'SEQ_TO_SEQ_CAUSAL_LM')}_MAPPING")
    family = mapping[type(config)]
    title = f"{quoted(name)} as {family.__name__}"
    stored = published.renamed(stored, config.model_type)
    _refuse_inflated(family, config, weights.size(weights.shapes_of(stored)), title)
    try:
        network, info = family.from_pretrained(
            None, config=config, state_dict=stored, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True
        )
    except Exception as problem:
        raise BesagError(f"the weights of {quoted(name)} cannot be read: {reason(problem)}") from problem
    if info["mismatched_keys"]:
        key, found, wanted = sorted(info["mismatched_keys"])[0]
        raise BesagError(
            f"{title}: the stored {key} has the shape {tuple(found)}, but the config.json asks for {tuple(wanted)}, "
            f"so these files do not belong together"
        )
    learned = {key for key, weight in network.named_parameters(remove_duplicate=False) if weight.requires_grad}
    missing = sorted(key for key in learned & set(info["missing_keys"]) if "pooler" not in key.split("."))
    if missing:
        saved_as = next(iter(config.architectures or ()), None)
        raise BesagError(
            f"{title} lacks {len(missing)} weights, for which transformers would make up random numbers: "
            f"{', '.join(missing[:8])}{' …' if missing[8:] else ''}."
            + (f" It was saved from a {quoted(saved_as)[1:-1]}." if saved_as not in (None, family.__name__) else "")
        )
    left_out = sorted(info["unexpected_keys"])
    unused = left_out if config.model_type in families.OWN else _unused_layers(network, left_out)
    if whole and unused:
        raise BesagError(
            f"{title} would leave {len(unused)} stored weights out, such as {quoted(unused[0])}: the config.json asks "
            f"for fewer layers or parts than there are, so these files do not belong together"
        )
    return network


def _refuse_eight_bits(kind: str, asked: bool, name: str) -> None:
    if asked and kind.endswith("decoder"):
        raise BesagError(f"{quoted(name)} is an encoder-decoder, which is not run on 8-bit numbers: use another dtype")


def _refuse_inflated(family: Any, config: Any, stored: int, title: str) -> None:
    """Built without memory first: what is asked for and not stored would be made up, and may fill any memory."""
    try:
        with torch.device("meta"):
            trial = family(copy.deepcopy(config))
    except Exception as problem:
        raise BesagError(f"{title} cannot be built: {reason(problem)}") from problem
    asked = sum(tensor.numel() for tensor in (*trial.parameters(), *trial.buffers()))
    if asked > SURPLUS * stored + SMALL:
        raise BesagError(
            f"{title}: the config.json asks for {asked:,} numbers, and the files hold {stored:,}, so these files do "
            f"not belong together"
        )


def _unused_layers(network: Any, unexpected: Iterable[str]) -> list[str]:
    """Stored weights of layers that the network has others of: the same name but for its numbers."""
    used = {NUMBER.sub("#", key) for key in network.state_dict()}
    return sorted(key for key in unexpected if NUMBER.search(key) and NUMBER.sub("#", key) in used)
