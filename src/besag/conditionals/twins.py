"""A hidden twin beside each asked place: one pass that shows the whole text and still asks about every token of it.

    x₁ … x_L                 the text, shown; it sees itself and no twin
    m_i, for asked places i  the mask token, standing where x_i stands; sees itself and every x_j but x_i

A twin answers as the masked place would, but for one thing: what it reads of x_j in the second layer and above was
computed with x_i in view. In a network of one layer nothing is: there its answer is p(x_i | x_∖i). So it is whenever
x_i is the mask itself, in a network of any depth: by that a network is tried here, since no family's word is taken for
how it counts positions or what it does with a mask of its own. Knows no batch and no method.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from besag.conditionals.contract import Questions
from besag.conditionals.network import first_position, gap
from besag.conditionals.split import Reader

TWINS = "twins"  # the name, in a question's context, of the wish to be answered by twins
NEEDED = frozenset({"attention_mask", "position_ids"})


def states(read: Reader, questions: Questions, mask_id: int, start: int) -> Tensor:  # (M, H)
    """What the twins of the asked places come to, in one pass over the text and them."""
    ids, row, place = questions.ids, questions.row, questions.place
    (count, length), first = ids.shape, int(place.min())
    twinned = torch.arange(first, int(place.max()) + 1, device=ids.device)  # (m,) columns, the same of all sequences
    own = length + torch.arange(len(twinned), device=ids.device)
    positions = start + torch.cat([torch.arange(length, device=ids.device), twinned])  # (L + m,)
    hidden = torch.ones(len(positions), len(positions), dtype=torch.bool, device=ids.device)
    hidden[:, :length] = False
    hidden[own, twinned], hidden[own, own] = True, False
    dtype = next(weight.dtype for weight in read.module.parameters() if weight.is_floating_point())
    attention = torch.zeros(hidden.shape, dtype=dtype, device=ids.device)
    attention = attention.masked_fill(hidden, torch.finfo(dtype).min).expand(count, 1, -1, -1)
    both = torch.cat([ids, ids.new_full((count, len(twinned)), mask_id)], 1)  # (N, L + m)
    context = {"attention_mask": attention, "position_ids": positions.expand(count, -1)}
    return read(both, context)[row, length + place - first]


def borne(read: Reader, model: Any, probe: Tensor, mask_id: int, tolerance: float) -> bool:
    """Does the twin of each masked place of the probe, (N, L), answer as that place itself does?"""
    layers = set(getattr(model.config, "layer_types", None) or ["full_attention"])
    if not read.accepts >= NEEDED or layers != {"full_attention"}:  # a window would be counted from where a twin stands
        return False
    place = torch.arange(probe.shape[1], device=probe.device)
    ids = probe[:1].repeat(len(place), 1)
    ids[place, place] = mask_id
    try:
        twins = states(read, Questions(ids=ids, row=place, place=place), mask_id, first_position(model))
    except Exception:  # each family trips over a mask of four dimensions in its own way
        return False
    return gap(twins, read(ids)[place, place]) <= tolerance
