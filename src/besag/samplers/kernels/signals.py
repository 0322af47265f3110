"""Signals of dependence: how much do two hidden places tell of each other, given what is shown?

    distance      exp(−(|i − j| − 1) / reach): asks nobody; neighbours depend most
    change        how far place j's row moves when place i is revealed, the mean of both directions:
                  KL(p(x_j | shown, x_i) ‖ p(x_j | shown)) in nats, or their total variation
                  one pass for each place revealed, and one with none
    information   the mutual information of the Arnold-Gokhale joint over the likeliest tokens of both, in nats
                  2·candidates + 1 passes a pair
    attention     the weight with which the network looks from one place to the other, the mean over layers and heads
                  and over both directions, times the length: 1 if it looked everywhere alike; one pass

What is wanted is the conditional mutual information I(x_i; x_j | shown): what is lost, in nats, by drawing both from
one pass. `information` is that number if the conditionals are those of a joint law and all tokens are candidates. For
a joint law `change` in KL is that number too in expectation over x_i, so with a token that is *drawn* it is an
unbiased estimate from one draw; with the likeliest token it has no noise and answers a narrower question. `distance`
and `attention` are weights of no unit. Attention says where a network looks, not what it makes of it; how
well it ranks pairs is a matter of measurement (docs/generation/adaptive.md).

None of these looks at a token that is about to be drawn: only `change` with drawn tokens looks at tokens that are
drawn for it alone. So sets of places that are chosen by them leave the chain rule as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from besag.conditionals.contract import Given, Questions, takes_source
from besag.engine import Engine
from besag.errors import BesagError, nearest, quoted
from besag.reductions import Chunk
from besag.samplers.drawing import AS_IT_IS, COLDEST, Drawing, allowed_at, answered, draw, law_of
from besag.samplers.kernels.pair_law import pair_laws

Measure = Literal["kl", "tv"]
MEASURES = ("kl", "tv")
HELD = 2**25  # numbers of rows with nothing revealed that are held at a time


class Dependence(NamedTuple):
    strength: Tensor  # (C, L, L) symmetric, on the device of the ids; 0 but for two different places that were asked
    passes: Tensor  # (C,) on the host


def distance(hides: Tensor, *, reach: float = 2.0) -> Dependence:
    """From hides (C, L) alone: 1 for neighbours, and less by a factor of e for every `reach` places more."""
    if not COLDEST <= reach <= 1 / COLDEST:
        raise BesagError(
            f"reach={quoted(reach)}: give the number of places, above 0, over which dependence falls e-fold"
        )
    at = torch.arange(hides.shape[1], device=hides.device)
    apart = (at[:, None] - at).abs()  # (L, L)
    weight = torch.exp((1 - apart.clamp(min=1)) / reach)  # a place itself, 0 apart, would be infinite
    weight = weight.clamp_min(torch.finfo(weight.dtype).tiny)  # far away it is small, and never none
    return Dependence(_off_diagonal(weight, hides), torch.zeros(len(hides), dtype=torch.long))


def change(
    engine: Engine,
    ids: Tensor,
    hides: Tensor,
    *,
    measure: Measure = "kl",
    uniform: Tensor | None = None,
    drawing: Drawing = AS_IT_IS,
    allowed: Tensor | None = None,
    given: Given | None = None,
) -> Dependence:
    """Of ids (C, L), among the places of hides (C, L), which hold the mask.

    Each place is revealed with its likeliest token, or with one drawn at `uniform` (C, L). Other hidden places stay
    hidden and are not asked about, so few places cost few passes. `given` is the source of each chain, (C,).
    """
    if measure not in MEASURES:
        raise BesagError(f"measure={measure!r}: give 'kl' or 'tv'.{nearest(str(measure), MEASURES)}")
    device, count, length = ids.device, *ids.shape
    asked = hides.cpu()
    number = asked.sum(1)  # (C,)
    strength = torch.zeros(count, length, length, dtype=_precision(engine), device=device)
    most = max(1, HELD // (engine.conditionals.width * max(1, int(number.max()))))
    several = torch.nonzero(number > 1)[:, 0]
    for start in range(0, len(several), most):  # a piece at a time: rows are as wide as the vocabulary
        chains = several[start : start + most]
        here = asked[chains]  # (c, L)
        row, place = here.nonzero(as_tuple=True)  # (M,) places revealed, sorted by chain
        noise = None if uniform is None else uniform[chains[row], place]
        source = [None if given is None else given.rows(which) for which in (chains, chains[row])]
        before = draw(
            engine, ids[chains.to(device)], row, place, noise, drawing=drawing, allowed=allowed, want=("row",),
            given=source[0],
        )  # fmt: skip
        assert before.row is not None
        at = torch.arange(len(place), device=device), place.to(device)
        revealed = ids[chains[row].to(device)].index_put(at, before.token)  # (M, L) a copy of the chain for each
        sequence = (here.flatten().cumsum(0) - 1).view(here.shape)  # (c, L) which copy
        pair = here[:, :, None] & here[:, None] & ~torch.eye(length, dtype=torch.bool)
        row, first, second = pair.nonzero(as_tuple=True)  # (P,) each, sorted by chain and first place
        looks = _Moved(measure, drawing, second, allowed, sequence[row, second], before.row)
        questions = Questions(revealed, sequence[row, first], second, given=source[1])
        moved = answered(engine, questions, looks)["moved"]
        index = chains[row].to(device), first.to(device), second.to(device)
        strength.index_put_(index, moved.to(strength.dtype))
    return Dependence((strength + strength.mT) / 2, (number + 1) * (number > 1))


def information(
    engine: Engine,
    ids: Tensor,
    hides: Tensor,
    *,
    candidates: int = 20,
    drawing: Drawing = AS_IT_IS,
    allowed: Tensor | None = None,
    given: Given | None = None,
) -> Dependence:
    """Of all pairs of the places of hides (C, L), which hold the mask in ids (C, L); `given` as in `change`."""
    count, length = ids.shape
    asked = hides.cpu()
    row, first, second = (asked[:, :, None] & asked[:, None]).triu(1).nonzero(as_tuple=True)  # (N,) each
    laws = pair_laws(
        engine, ids, row, first, second, candidates=candidates, allowed=allowed, drawing=drawing, given=given
    )
    nats = laws.mutual_information().to(ids.device, _precision(engine))
    strength = nats.new_zeros(count, length, length)
    index = (row.to(ids.device), first.to(ids.device), second.to(ids.device))
    strength = strength.index_put(index, nats)
    return Dependence(strength + strength.mT, laws.passes * torch.bincount(row, minlength=count))


def attention(engine: Engine, ids: Tensor, hides: Tensor) -> Dependence:
    """Between the places of hides (C, L), by a network with `model.set_attn_implementation("eager")`."""
    network = _with_attentions(engine)
    asked = hides.cpu().sum(1) > 1
    weight = torch.zeros(*ids.shape, ids.shape[1], device=ids.device)
    most = max(1, engine.batch_tokens // ids.shape[1])
    several = torch.nonzero(asked)[:, 0].to(ids.device)
    for start in range(0, len(several), most):
        here = several[start : start + most]
        with torch.inference_mode():
            layers = network(input_ids=ids[here], output_attentions=True).attentions
        if not layers or any(layer is None for layer in layers):
            raise BesagError(_NO_ATTENTIONS.format(engine.conditionals.name, type(network).__name__))
        mean = torch.stack([layer.float().mean(1) for layer in layers]).mean(0)  # (c, L, L)
        weight[here] = (mean + mean.mT) * (ids.shape[1] / 2)
    return Dependence(_off_diagonal(weight, hides), asked.long())


_NO_ATTENTIONS = (
    "{!r} ({}) does not say where it attends to. A transformer does once it computes attention plainly: "
    "lm.model.set_attn_implementation('eager')"
)


def _with_attentions(engine: Engine) -> Any:
    conditionals = engine.conditionals
    network = getattr(conditionals, "model", None)
    if takes_source(conditionals):
        raise BesagError(f"{conditionals.name!r} attends to its source too: take another signal than its attention")
    config = getattr(network, "config", None)
    if getattr(config, "_attn_implementation", None) != "eager":
        raise BesagError(_NO_ATTENTIONS.format(conditionals.name, type(network or conditionals).__name__))
    return network


def _off_diagonal(weight: Tensor, hides: Tensor) -> Tensor:
    """(C, L, L) 0 but for two different places of hides (C, L)."""
    both = hides[:, :, None] & hides[:, None]
    return weight * (both & ~torch.eye(hides.shape[1], dtype=torch.bool, device=hides.device))


def _precision(engine: Engine) -> torch.dtype:
    return torch.float64 if engine.conditionals.dtype == torch.float64 else torch.float32


@dataclass(frozen=True, eq=False)
class _Moved:
    """The reduction: how far a row is from an earlier one, for each ask; so it serves one call of `Engine.ask`."""

    measure: Measure
    drawing: Drawing
    place: Tensor  # (P,)
    allowed: Tensor | None
    which: Tensor  # (P,) which of the earlier rows
    before: Tensor  # (M, V) log-probabilities

    def __call__(self, chunk: Chunk) -> dict[str, Tensor]:
        device, asks = chunk.logits.device, chunk.asks
        after = law_of(chunk, self.drawing, allowed_at(self.allowed, self.place[asks], device))  # (m, V)
        before = self.before[self.which[asks].to(device)]
        if self.measure == "tv":
            return {"moved": (after.exp() - before.exp()).abs().sum(1) / 2}
        # Where top_k or top_p cut a token before that they keep now, the divergence is infinite, and means it.
        terms = torch.where(after > -torch.inf, after.exp() * (after - before), 0.0)
        return {"moved": terms.sum(1).clamp_min(0.0)}
