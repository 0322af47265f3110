"""A network run layer by layer: embeddings, then any stretch of its layers, on tokens that may change in between.

Knows how a few families are put together, by name; another gets an error that says which can. Over all layers it is the
network's own forward pass, to rounding. Knows no loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from besag.conditionals.families import LIKE_BERT
from besag.errors import BesagError, nearest
from besag.family.network import turns
from besag.training.network.batch import Layout

if TYPE_CHECKING:
    from besag.training.network.encoder import Encoder

GLOBAL, LOCAL = "full_attention", "sliding_attention"  # what transformers calls the two kinds of layers


class Parts(NamedTuple):
    """A network's own modules, in the order in which they run."""

    embed: Callable[[Tensor, Tensor], Tensor]  # ids, numbers (1, T) -> (1, T, H)
    layers: list[tuple[str, Any]]  # the kind of attention, and the module
    rotate: Callable[[Tensor, Tensor, str], Any] | None  # states, numbers, kind -> what layers turn by
    finish: Callable[[Tensor], Tensor]  # after the last layer


def _modernbert(body: Any) -> Parts:
    layers = [(layer.attention_type, layer) for layer in body.layers]
    return Parts(lambda ids, _: body.embeddings(input_ids=ids), layers, body.rotary_emb, body.final_norm)


def _besag(body: Any) -> Parts:
    if body.config.layer_weights:
        raise BesagError(
            "besag cannot run a network of the family 'besag' layer by layer where each layer reads all that came "
            "before: set layer_weights = false in [model.config]"
        )
    rotate = lambda _, number, __: turns(body.config, number)  # noqa: E731
    embed = lambda ids, _: body.embeddings(ids)  # noqa: E731
    return Parts(embed, [(GLOBAL, layer) for layer in body.layers], rotate, body.final_norm)


def _neobert(body: Any) -> Parts:
    rotate = lambda _, number, __: turns(body.config, number)  # noqa: E731
    embed = lambda ids, _: body.encoder(ids)  # noqa: E731
    return Parts(embed, [(GLOBAL, layer) for layer in body.transformer_encoder], rotate, body.layer_norm)


def _bert(body: Any) -> Parts:
    project = getattr(body, "embeddings_project", torch.nn.Identity())  # electra: from a narrow table
    embed = lambda ids, number: project(body.embeddings(input_ids=ids, position_ids=number))  # noqa: E731
    finish = getattr(body.encoder, "LayerNorm", torch.nn.Identity())  # XLM-R XL, whose layers normalise first
    return Parts(embed, [(GLOBAL, layer) for layer in body.encoder.layer], None, finish)


def _distilbert(body: Any) -> Parts:
    embed = lambda ids, number: body.embeddings(input_ids=ids, position_ids=number)  # noqa: E731
    return Parts(embed, [(GLOBAL, layer) for layer in body.transformer.layer], None, torch.nn.Identity())


def _albert(body: Any) -> Parts:
    widen, groups, depth = body.encoder.embedding_hidden_mapping_in, body.encoder.albert_layer_groups, _depth(body)
    embed = lambda ids, number: widen(body.embeddings(input_ids=ids, position_ids=number))  # noqa: E731
    return Parts(embed, [(GLOBAL, groups[i * len(groups) // depth]) for i in range(depth)], None, torch.nn.Identity())


def _depth(body: Any) -> int:
    return int(body.config.num_hidden_layers)


FAMILIES: Mapping[str, Callable[[Any], Parts]] = {
    "modernbert": _modernbert,
    "besag": _besag,
    **dict.fromkeys(LIKE_BERT, _bert),
    "distilbert": _distilbert,
    "albert": _albert,
    "neobert": _neobert,
}


class Layered:
    """An encoder's network in parts. Holds no weights of its own, so that nothing is trained or saved twice."""

    def __init__(self, encoder: Encoder) -> None:
        family = encoder.model.config.model_type
        if family not in FAMILIES:
            raise BesagError(
                f"besag cannot run a network of the family {family!r} layer by layer.{nearest(family, FAMILIES)} "
                f"It can: {', '.join(FAMILIES)}"
            )
        self.encoder = encoder

    @property
    def parts(self) -> Parts:
        """Taken anew each time: a copy of the encoder must run its own weights."""
        return FAMILIES[self.encoder.model.config.model_type](self.encoder.body)

    @property
    def depth(self) -> int:
        return len(self.parts.layers)

    def embed(self, ids: Tensor, position: Tensor) -> Tensor:  # (T,), (T,) -> (T, H)
        """What the first layer reads. Tokens stand alone here, so sequences need no telling apart."""
        return self.parts.embed(ids[None], position[None] + self.encoder.offset)[0]

    def run(self, states: Tensor, layout: Layout, first: int = 0, last: int | None = None) -> Tensor:  # (T, H)
        """Layers first … last−1 on states (T, H); the norm at the network's end goes with its last layer."""
        parts = self.parts
        last = len(parts.layers) if last is None else last
        if not 0 <= first <= last <= len(parts.layers):
            raise BesagError(f"a network of {len(parts.layers)} layers has no layers {first} to {last}")
        kinds = {kind for kind, _ in parts.layers[first:last]}
        if self.encoder.ragged:
            whole, number, extra = states[None], layout.position[None], self._ends(layout)
            masks: Mapping[str, Any] = {GLOBAL: None, LOCAL: None}
        else:
            at = (layout.row, layout.column)
            whole = states.new_zeros(layout.rows, layout.longest, states.shape[-1]).index_put(at, states)
            number = layout.position.new_zeros(whole.shape[:2]).index_put(at, layout.position)
            extra, masks = {}, self._masks(whole, at, kinds)
        rotate = parts.rotate
        turns = {kind: rotate(whole, number + self.encoder.offset, kind) for kind in kinds} if rotate else {}
        for kind, layer in parts.layers[first:last]:
            turned = {"position_embeddings": turns[kind]} if turns else {}
            whole = layer(whole, attention_mask=masks[kind], **turned, **extra)
        if last == len(parts.layers):
            whole = parts.finish(whole)
        return whole[0] if self.encoder.ragged else whole[at]

    def _ends(self, layout: Layout) -> dict[str, Any]:
        return {"cu_seq_lens_q": layout.bounds, "max_length_q": layout.longest}

    def _masks(self, whole: Tensor, at: tuple[Tensor, Tensor], kinds: set[str]) -> dict[str, Any]:
        """Every token sees its own sequence, in the form that the network's attention wants it."""
        from transformers.masking_utils import create_bidirectional_mask, create_bidirectional_sliding_window_mask

        real = torch.zeros(whole.shape[:2], dtype=torch.long, device=whole.device)
        real[at] = 1
        config = self.encoder.model.config
        masks: dict[str, Any] = {GLOBAL: create_bidirectional_mask(config, whole, real)}
        if LOCAL in kinds:
            masks[LOCAL] = create_bidirectional_sliding_window_mask(config, whole, real)
        return masks
