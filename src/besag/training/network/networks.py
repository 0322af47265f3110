"""The network of a recipe: a new one of any family, or one to go on from; and how it is run.

Initial weights are a function of the recipe's seed alone: what was drawn before in this process does not matter, and
what is drawn after does not either.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from besag import models
from besag.conditionals import checkpoint as saved
from besag.conditionals import families, loading, weights
from besag.conditionals.configuration import BLOCK_KEY, block_length_of, read_config
from besag.conditionals.network import places
from besag.conditionals.published import shift_of
from besag.errors import BesagError, nearest, quoted
from besag.training.network import causal_start, decoders, subtokens, vocabularies
from besag.training.network.batch import Layout
from besag.training.network.encoder import Encoder
from besag.training.recipe import SIZES, Recipe, is_apart
from besag.vocabulary import Vocabulary

MULTIPLE = "pad_to_multiple_of"  # in [model.config]: rows of the table of tokens, rounded up
TRIAL = (5, 9, 3)  # lengths of the sequences on which a network is tried
SPECIAL = ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "mask_token_id")
PADDED = 256  # rows of a table of tokens that may stand for nothing: it was rounded up
ROOM = 8  # places beyond max_length in a new network: some families number their places from 2 on


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """In here torch draws from this seed; afterwards it goes on as if nothing had been drawn."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def found(name: str) -> str | Path:
    """The embedded model's folder by its name; everything else is a folder or a hub name."""
    return models.path() if name in ("embedded", models.EMBEDDED) else name


def network(recipe: Recipe, vocabulary: Vocabulary) -> Any:
    """A `*ForMaskedLM`, or an encoder-decoder with its mask lifted or not, in float32 on the CPU."""
    if vocabulary.mask_id is None or vocabulary.pad_id is None:
        missing = "mask" if vocabulary.mask_id is None else "padding"
        raise BesagError(f"the tokenizer has no {missing} token, which a masked network cannot be trained without")
    with saved.quiet(), seeded(recipe.run.seed):
        model = _new(recipe, vocabulary) if recipe.model.start is None else _started(recipe)
        model = decoders.turned(model, recipe.model.decoder)
        if recipe.model.vocabulary != "as-is":
            start = str(recipe.model.start)
            own = loading.read_vocabulary(found(start), start)
            model = vocabularies.give(model, own, vocabulary, extended=recipe.model.vocabulary == "extended")
        if vocabulary.size > len(model.get_input_embeddings().weight) and vocabulary.mask_id == vocabulary.size - 1:
            model.resize_token_embeddings(vocabulary.size)  # a mask token was added to the tokenizer
    rows = model.get_input_embeddings().weight.shape[0]
    others = recipe.model.start is not None and recipe.tokenizer.path not in (None, recipe.model.start)
    if others and recipe.model.vocabulary == "as-is":
        refuse_unrelated(str(recipe.model.start), str(recipe.tokenizer.path), vocabulary, rows)
    if vocabulary.size > rows:
        raise BesagError(
            f"the tokenizer has {vocabulary.size} tokens and the network {rows}: they do not belong together"
        )
    room = places(model)
    if room is not None and recipe.data.max_length > room:
        raise BesagError(
            f"data.max_length = {recipe.data.max_length}, but the network has {room} places (max_position_embeddings): "
            "shorten the one, or give a new network more of the other"
        )
    return subtokens.attach(model, vocabulary, recipe.model.subtokens) if recipe.model.subtokens else model


def refuse_unrelated(start: str, path: str, vocabulary: Vocabulary, rows: int) -> None:
    """Row i of a trained table is what the network knows of token i: a tokenizer that calls i something else would ask
    another token's row. Where no tokenizer lies beside the weights, only the number of rows can tell."""
    folder = saved.find_folder(found(start), None)
    called = f"tokenizer.path = {quoted(path)} is not the tokenizer of model.start = {quoted(start)}"
    right = (
        "leave tokenizer.path out, name one with the same tokens, give the network another vocabulary "
        "(model.vocabulary), or train a new one"
    )
    if not saved.has_any(folder, saved.TOKENIZER_FILES):
        if rows - vocabulary.size >= PADDED:
            raise BesagError(f"{called}: it has {vocabulary.size} tokens and the network {rows}; {right}")
        return
    own = loading.read_vocabulary(folder, start)
    for id in range(min(own.size, vocabulary.size)):
        if (theirs := vocabulary.token(id)) != (token := own.token(id)):
            raise BesagError(f"{called}: token {id} is {quoted(theirs)} there and {quoted(token)} here; {right}")


def check_shape(recipe: Recipe) -> Any:
    """Refuse settings that make no network, before anything that takes time: built without memory for its weights.

    What was built, or None where the recipe goes on from a network that is there.
    """
    if recipe.model.start is not None:
        return None
    settings = {"vocab_size": recipe.tokenizer.size, **dict.fromkeys(SPECIAL, 0)}
    with saved.quiet(), seeded(0):
        try:
            with torch.device("meta"):
                return _made(recipe, settings)
        except BesagError:
            return _made(recipe, settings)  # a family that cannot be built without memory is not at fault


def _started(recipe: Recipe) -> Any:
    name = str(recipe.model.start)
    folder = saved.find_folder(found(name), None, *saved.WEIGHT_FILES)
    config = read_config(folder, name)
    kind = saved.architecture(config)
    plain = recipe.model.decoder == "none"
    if plain and kind.kind == "causal":
        if is_apart(recipe.adapt):
            raise BesagError(
                f"model.start = {name!r} is a left-to-right model, whose mask is lifted while it is trained: an "
                "adapter kept apart would stand beside one that is not saved. Use 'lora' with adapt.keep = 'merged'"
            )
        config = causal_start.twin(config, name)
        kind = saved.architecture(config)
    if kind.kind not in (("masked",) if plain else ("masked decoder", "causal decoder")):
        what = "masked language model" if plain else f"encoder-decoder, and model.decoder = {recipe.model.decoder!r}"
        raise BesagError(f"model.start = {name!r} ({kind.name}) is no {what}")
    _refuse_other_shift(recipe, shift_of(config), name)
    if block_length_of(config) is not None:
        delattr(config, BLOCK_KEY)  # how it will be asked is said by what it is trained with now
    stored = weights.read_weights(weights.weight_files(folder, name, allow_pickle=False), name)
    loading.refuse_without_room(stored, torch.float32, torch.device("cpu"), name)
    refuse_unknown(type(config), recipe.model.config)
    for key, value in recipe.model.config.items():
        setattr(config, key, value)
    return loading.read_network(stored, config, kind.kind, name, torch.float32, whole=not recipe.model.config)


def _refuse_other_shift(recipe: Recipe, shift: bool, name: str) -> None:
    """Refuse to train a network for another shift than the one that it is queried with afterwards."""
    trained = recipe.objective.options.get("shift") is True
    if shift and not trained:
        raise BesagError(
            f"model.start = {quoted(name)} predicts position i from the output at i − 1, and objective.name = "
            f"{recipe.objective.name!r} trains it to predict from the output at i: use 'alternate' with shift = true "
            "(and causal = 0 for masked steps alone), or retrain it without the shift: besag_shift = false in its "
            "config.json"
        )
    if trained and not shift and is_apart(recipe.adapt):
        raise BesagError(
            f"objective.options.shift = true with an adapter kept apart: model.start = {quoted(name)} is not shifted, "
            "and its configuration is not saved with the adapter. Use 'lora' with adapt.keep = 'merged'"
        )


def _new(recipe: Recipe, vocabulary: Vocabulary) -> Any:
    multiple = recipe.model.config.get(MULTIPLE, 1)
    if type(multiple) is not int or multiple < 1:
        raise BesagError(f"[model.config] {MULTIPLE} = {multiple!r}: a whole number, 1 or more, is needed")
    ids = {name: getattr(vocabulary.tokenizer, name, None) for name in SPECIAL}
    ids |= {} if recipe.model.decoder == "none" else decoders.special_tokens(vocabulary)
    return _made(recipe, {"vocab_size": -(-vocabulary.size // multiple) * multiple, **ids})


def _made(recipe: Recipe, settings: dict[str, Any]) -> Any:
    """A network of the recipe's family and config; what the config does not set is in `settings`."""
    import transformers

    auto: Any = transformers  # much of it has no types
    plain = recipe.model.decoder == "none"
    family, known = recipe.model.family, families.masked() if plain else families.decoders()
    if family not in known:
        guess, what = nearest(family, known), "masked language model" if plain else "encoder-decoder"
        where = f"in transformers {_version()} or besag"
        raise BesagError(f"there is no {what} of the family {family!r} {where}.{guess}")
    kind = families.configuration(family)
    wanted = {key: value for key, value in recipe.model.config.items() if key != MULTIPLE}
    refuse_unknown(kind, wanted)
    try:
        config = kind(
            **{"max_position_embeddings": recipe.data.max_length + ROOM, **_sizes(kind, wanted), **settings, **wanted}
        )
        return (auto.AutoModelForMaskedLM if plain else auto.AutoModelForSeq2SeqLM).from_config(config)
    except Exception as problem:  # each family trips over wrong settings in its own way
        why = " ".join(str(problem).split())[:200] or type(problem).__name__
        raise BesagError(f"[model.config] {quoted(wanted)} makes no {family}: {why}") from problem


def _sizes(kind: Any, wanted: dict[str, Any]) -> dict[str, float]:
    """The sizes that are not set, under the names that the family knows: those of a small network, not of its first."""
    own = _settings(kind)
    if kind().is_encoder_decoder:
        usual = decoders.usual(wanted.get("d_model", wanted.get("hidden_size")))
        return {name: size for name, size in usual.items() if name in own and not _said(kind, name, wanted)}
    names = {name: kind.attribute_map.get(name, name) for name in SIZES}
    return {
        names[name]: size
        for name, size in SIZES.items()
        if names[name] in own and name not in wanted and names[name] not in wanted
    }


def _said(kind: Any, name: str, wanted: dict[str, Any]) -> bool:
    """Does the recipe set it, under this name or another of the family's?"""
    return any(key == name or kind.attribute_map.get(key) == name for key in wanted)


def refuse_unknown(kind: Any, config: dict[str, Any]) -> None:
    """transformers takes any key in silence; here one that the family never reads is refused."""
    own = _settings(kind)
    for key in config:
        if key not in own:
            raise BesagError(f"[model.config] {quoted(key)} is no setting of {kind.__name__}.{nearest(key, own)}")


@lru_cache(maxsize=64)
def _settings(kind: Any) -> set[str]:
    """What a family reads of its configuration."""
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    own = fields | set(kind().to_dict()) | set(kind.attribute_map)
    return own | set(re.findall(r"[\"']([a-z][a-z0-9_]+)[\"']", inspect.getsource(kind)))


def _version() -> str:
    import transformers

    return str(transformers.__version__)


def can_be_ragged(model: Any, vocabulary: Vocabulary) -> bool:
    """Do sequences laid end to end say what each says by itself? Tried on three short ones, in float32 on the CPU.

    Some families look past the attention that can be replaced: a bias that they add to it, or a share of masks that
    they count over a whole row.
    """
    assert vocabulary.mask_id is not None
    assert vocabulary.pad_id is not None
    ordinary = [id for id in range(min(vocabulary.size, 1000)) if id not in vocabulary.special_ids] or [0]
    ids = torch.tensor([ordinary[place % len(ordinary)] for place in range(sum(TRIAL))])
    ids[1], ids[TRIAL[0] + 1] = vocabulary.mask_id, vocabulary.mask_id
    layout = Layout.of_lengths(torch.tensor(TRIAL))
    training, attention = model.training, model.config._attn_implementation
    said = []
    try:
        model.eval()
        for ragged in (False, True):
            encoder = Encoder(
                model, mask_id=vocabulary.mask_id, pad_id=vocabulary.pad_id, special_ids=vocabulary.special_ids,
                ragged=ragged,
            )  # fmt: skip
            with torch.no_grad():
                said.append(encoder.states(ids, layout))
    except Exception:  # whatever it trips over, it is run padded
        return False
    finally:
        model.train(training)
        model.config._attn_implementation = attention
    padded, end_to_end = said
    return torch.allclose(end_to_end, padded, rtol=1e-3, atol=1e-3 * float(padded.abs().max()))


def round_weights(module: torch.nn.Module) -> None:
    """Weights in bfloat16; tables that are no weights stay as they are."""
    for weight in module.parameters():
        weight.data = weight.data.to(torch.bfloat16)
