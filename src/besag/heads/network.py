"""A network with a head: the body of a masked one, and a few new weights that say the label.

The classes are those of transformers (`*ForSequenceClassification`, `*ForTokenClassification`), so that a finished
folder needs nothing of besag. New weights are a function of the seed alone. Refuses a head on a body of which a part
is missing.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal

import torch

from besag.conditionals import checkpoint as saved
from besag.conditionals import loading
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError, quoted
from besag.training.network.networks import found, seeded
from besag.vocabulary import Vocabulary

Kind = Literal["classify", "tag"]
AUTO = {"classify": "SEQUENCE", "tag": "TOKEN"}


def headed(start: str, kind: Kind, labels: Sequence[str], seed: int) -> tuple[Any, Vocabulary]:
    """The network, in float32 on the CPU, and its vocabulary."""
    masked = loading.load_conditionals(found(start), device="cpu", dtype="float32", name=start)
    if not isinstance(masked, Transformer):
        raise BesagError(
            f"model.start = {quoted(start)} is no masked language model, and a head needs to see both sides"
        )
    if masked.vocabulary.pad_id is None:
        raise BesagError(f"the tokenizer of {quoted(start)} has no padding token, which batches of texts need")
    config = copy.deepcopy(masked.model.config)
    name_labels(config, labels)
    config.architectures, config.dtype = None, torch.float32
    with saved.quiet(), seeded(seed):
        model = family(config, kind, start)(config)
    return graft(masked.model, model, start), masked.vocabulary


def name_labels(config: Any, labels: Sequence[str]) -> None:
    config.num_labels = len(labels)
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: number for number, label in enumerate(labels)}


def family(config: Any, kind: Kind, name: str) -> Any:
    """The class of transformers that has such a head."""
    from transformers.models.auto import modeling_auto

    import besag.heads.own_family  # noqa: F401 (known from here on)

    mappings: Any = modeling_auto
    mapping = getattr(mappings, f"MODEL_FOR_{AUTO[kind]}_CLASSIFICATION_MAPPING")
    if type(config) not in mapping:
        what = "a text" if kind == "classify" else "a token"
        raise BesagError(f"transformers has no label of {what} for the family {config.model_type!r} of {quoted(name)}")
    return mapping[type(config)]


def graft(masked: Any, model: Any, name: str) -> Any:
    """The weights of the masked network, wherever the other has the same: all of its body, but for a pooler."""
    own, given = model.state_dict(), masked.state_dict()
    alike = {key: weight for key, weight in given.items() if key in own and own[key].shape == weight.shape}
    body = f"{model.base_model_prefix}."
    missing = sorted(key for key in own if key.startswith(body) and key not in alike and "pooler" not in key.split("."))
    if missing or not alike:
        raise BesagError(f"{quoted(name)} lacks {len(missing)} weights of a {type(model).__name__}: {missing[:3]}")
    model.load_state_dict(alike, strict=False)
    model.besag_new = frozenset(own) - frozenset(alike)
    return model
