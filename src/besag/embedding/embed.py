"""A vector for each text: the mean over its tokens of what a layer of the network makes of them.

    e(x) = 1/n Σ_i h_i^(l)(x),        special tokens are shown and do not count

Nothing is hidden: these are states of the text as it is, not answers about places. Layer 0 is the table of tokens, the
last one what the head of the network reads. Refuses texts that the network cannot see whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from besag.characters import is_text
from besag.checks import checked
from besag.conditionals.configuration import block_length_of
from besag.conditionals.network import Network
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.results.status import Status

Vectors = NDArray[np.float32]


@checked
def embed(
    engine: Engine, texts: str | Sequence[str], layer: int | None = None, *, pool: Literal["mean", "first"] = "mean"
) -> Vectors:
    """(N, H) for N texts, (H,) for one. `layer`: negative from the end, the last if not given."""
    conditionals = _network(engine)
    many = [texts] if isinstance(texts, str) else list(texts)
    encoded = conditionals.vocabulary.encode(many)
    most = conditionals.max_length
    for text, one in zip(many, encoded, strict=True):
        if one.special.all():
            raise BesagError(f"{quoted(text)} has no token: there is nothing to make a vector of")
        if most is not None and len(one.ids) > most:
            raise BesagError(f"{quoted(text)} has {len(one.ids):,} tokens, and {most:,} are seen: cut it into parts")
    order = sorted(range(len(many)), key=lambda row: -len(encoded[row].ids))
    number = _layer(conditionals, layer)
    found = np.empty((len(many), _width(conditionals.model)), np.float32)

    def run(start: int, stop: int) -> None:
        rows = order[start:stop]
        ids = [encoded[row].ids for row in rows]
        counted = [~encoded[row].special for row in rows]
        if pool == "first":
            counted = [np.arange(len(one)) == 0 for one in ids]
        step = len(rows) if conditionals.pads else 1
        for at in range(0, len(rows), step):
            some = slice(at, at + step)
            found[rows[some]] = _pooled(conditionals, ids[some], counted[some], number)

    engine.in_batches(np.array([len(encoded[row].ids) for row in order]), run)
    return found[0] if isinstance(texts, str) else found


def statuses(engine: Engine, texts: Sequence[str]) -> list[Status]:
    """Return for each text whether `embed` makes a vector of it, or why not."""
    most, good = engine.conditionals.max_length, [is_text(text) for text in texts]
    read = iter(engine.conditionals.vocabulary.encode([text for text, one in zip(texts, good, strict=True) if one]))
    found = []
    for one in good:
        if not one:
            found.append(Status.UNDECODABLE)
            continue
        encoded = next(read)
        long = most is not None and len(encoded.ids) > most
        found.append(Status.EMPTY if encoded.special.all() else Status.LONG if long else Status.OK)
    return found


def dimensions(engine: Engine) -> int:
    """Return the length of a vector."""
    return _width(_network(engine).model)


def _network(engine: Engine) -> Network:
    conditionals = engine.conditionals
    if not isinstance(conditionals, Network):
        raise BesagError(f"{conditionals.name!r} has no states of its own: only a network makes vectors of texts")
    if block_length_of(conditionals.model.config) is not None:
        raise BesagError(
            f"{conditionals.name!r} was trained block after block, and never saw a text whole: take another network"
        )
    return conditionals


def _layer(conditionals: Network, layer: int | None) -> int:
    depth = int(conditionals.model.config.num_hidden_layers)
    number = depth if layer is None else layer + depth + 1 if layer < 0 else layer
    if not 0 <= number <= depth:
        raise BesagError(f"layer={layer}: {conditionals.name!r} has the layers 0 (the tokens) to {depth}")
    return number


def _width(model: Any) -> int:
    return (
        int(model.get_input_embeddings().weight.shape[1])
        if not hasattr(model.config, "hidden_size")
        else int(model.config.hidden_size)
    )


@torch.inference_mode()
def _pooled(conditionals: Network, ids: list[Any], counted: list[Any], layer: int) -> Vectors:
    """(N, H) the mean of the counted states of some sequences, longest first, padded where they differ."""
    longest, model = len(ids[0]), conditionals.model
    pad = conditionals.vocabulary.pad_id or 0
    table = np.full((len(ids), longest), pad)
    mask, share = np.zeros_like(table), np.zeros(table.shape, np.float32)
    for row, (own, counts) in enumerate(zip(ids, counted, strict=True)):
        table[row, : len(own)], mask[row, : len(own)], share[row, : len(own)] = own, 1, counts / counts.sum()
    tokens, seen, weight = (torch.from_numpy(part).to(conditionals.device) for part in (table, mask, share))
    body = model._modules[model.base_model_prefix]
    last = layer == int(model.config.num_hidden_layers)
    answer = body(input_ids=tokens, attention_mask=seen, output_hidden_states=not last)
    states = answer[0] if last else answer.hidden_states[layer]  # (N, L, H)
    return np.asarray((states.float() * weight[:, :, None]).sum(1).cpu().numpy(), np.float32)
