"""Masked diffusion (MDLM): a bound on −log p(x | n), so a loss that is also a likelihood.

At time t every token has been masked with probability 1 − α(t), here α(t) = 1 − t. Going back, a masked token is
revealed at the rate −α̇/(1 − α) = 1/t and is then drawn from the network's answer. This gives

    −log p(x | n) ≤ ∫₀¹ E (1/t) Σ_{i masked} −log p(x_i | x_t) dt
                  = Σ_{k=1}^n E_{|K|=k} (1/k) Σ_{i∈K} −log p(x_i | x_∖K)

The right side is the chain rule averaged over all orders. Two ways to draw the masks have this same mean:

- `independent`: t ∈ (floor, 1), each token masked with probability t, weight 1/t. Leaving out (0, floor) costs a bias
  of order floor; without a floor the variance is infinite, as ∫ dt / t is.
- `counted`: k ∈ {1 … n}, a uniform subset of k tokens, weight n/k. No bias, and the smaller variance.

SUBS: the mask is never an answer (its logit is −∞, the rest is renormalised) and a shown token is carried over, so its
loss is zero. The answer needs no time beside the text: the number of masks tells it. `masks` is False: whatever law the
recipe names is not used. Where the batch asks about every free token with weight 1 the total is the sum of bounds over
passages, and the run's division makes it nats a token; otherwise it is scaled to that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf, sqrt
from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor

from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.objectives import draws
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, Predicted, cross_entropy


@OBJECTIVES.register
class MDLM(Objective):
    name = "mdlm"
    title = "masked diffusion: a bound on the likelihood (MDLM)"
    cite = ("sahoo2024",)
    masks = False

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        hide: Annotated[Literal["independent", "counted"], "each token by itself, or a number of them"] = "independent",
        floor: Annotated[float, "least time that is drawn"] = 1e-3,
        subs: Annotated[bool, "the mask is never an answer"] = True,
    ) -> None:
        super().__init__(encoder, seed=seed)
        self.hide, self.floor, self.subs = hide, checked_floor(floor), subs

    def forward(self, batch: Batch) -> Loss:
        hidden, weight = self.corrupt(batch.free, batch.layout, batch.draw)
        asked = hidden.nonzero()[:, 0]  # (M,)
        target = batch.ids[asked]
        states = self.encoder.states(batch.ids.masked_fill(hidden, self.encoder.mask_id), batch.layout)
        logits = self.encoder.logits(states[asked])
        logits = without(logits, self.encoder.mask_id) if self.subs else logits
        losses = cross_entropy(logits, target)
        total = per_token((losses * weight[asked]).sum(), batch)
        logs = {"masked_loss": losses.detach().sum() / max(len(asked), 1)}
        return Loss(total, logs, predictions(self.encoder, target, losses, logits))

    def corrupt(self, free: Tensor, layout: Layout, draw: Tensor) -> tuple[Tensor, Tensor]:
        """(T,) which tokens are masked, (T,) the weight of each that is."""
        row = layout.row
        time = draws.spread(self.seed, Training.MDLM_TIME, draw)  # (R,)
        noise = draws.uniform(self.seed, Training.MDLM_HIDE, draw[row], layout.column)  # (T,)
        if self.hide == "counted":
            return counted(time, noise, free, layout)
        time = self.floor + (1 - self.floor) * time
        return free & (noise < time[row]), (1 / time[row]).float()


def checked_floor(floor: float) -> float:
    if not 0 <= floor < 1:
        raise BesagError(f"floor={floor!r}: the smallest time is at least 0 and below 1")
    return floor


def counted(time: Tensor, noise: Tensor, free: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """A uniform subset of k = ⌈time · n⌉ of the n free tokens of each sequence, with the weight n/k, both (T,)."""
    size = sizes(free, layout)  # (R,)
    count = (time * size).ceil().clamp(min=1).minimum(size)
    return lowest(noise, free, layout, count), (size / count.clamp(min=1))[layout.row].float()


def lowest(noise: Tensor, free: Tensor, layout: Layout, count: Tensor) -> Tensor:
    """(T,) bool: of the free tokens of each sequence the `count` (R,) with the smallest noise."""
    return free & (ranks(noise, free, layout) < count[layout.row])


def ranks(noise: Tensor, free: Tensor, layout: Layout) -> Tensor:
    """(T,) how many free tokens of its sequence have a smaller noise; a token that is not free comes after them."""
    order = (2.0 * layout.row + torch.where(free, noise, 1.5)).argsort()  # sequence by sequence, smallest noise first
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order), device=order.device)
    return rank - layout.bounds[layout.row].long()


def sizes(free: Tensor, layout: Layout) -> Tensor:
    """(R,) how many tokens of each sequence may be hidden."""
    return torch.zeros(layout.rows, dtype=torch.int64, device=free.device).index_add_(0, layout.row, free.long())


def without(logits: Tensor, id: int) -> Tensor:
    """The same logits, in float32, with one answer made impossible."""
    possible = logits.clone() if logits.dtype == torch.float32 else logits.float()
    possible[:, id] = -inf
    return possible


def per_token(total: Tensor, batch: Batch, count: Tensor | int | None = None) -> Tensor:
    """A sum over `count` tokens (if not given: the free ones) as the run wants it, per unit of Σ batch.weight."""
    count = batch.free.sum() if count is None else count
    return total * (batch.weight.sum() / (count.clamp(min=1) if isinstance(count, Tensor) else max(count, 1)))


def predictions(encoder: Encoder, target: Tensor, losses: Tensor, logits: Tensor) -> Predicted | None:
    """How each target was predicted, if anybody wants to know."""
    if not encoder.watched:
        return None
    return Predicted(target, losses.detach(), logits.detach().argmax(-1) == target)


class Bound(NamedTuple):
    """A bound on −log p(x | n): an upper one on what exact coding would take."""

    nats: float  # a token
    error: float  # its standard error over the drawn masks (not over texts)
    tokens: int

    @classmethod
    def together(cls, bounds: Iterable[Bound]) -> Bound:
        """The bound of all these texts."""
        parts = list(bounds)
        tokens = sum(part.tokens for part in parts)
        if not tokens:
            raise BesagError("there is no bound of no tokens")
        nats = sum(part.nats * part.tokens for part in parts) / tokens
        return cls(nats, sqrt(sum((part.error * part.tokens) ** 2 for part in parts)) / tokens, tokens)


def nelbo(
    encoder: Encoder, ids: Tensor, layout: Layout, *, free: Tensor | None = None, samples: int = 16, seed: int = 0
) -> Bound:
    """The masked-diffusion bound of these sequences (T,), with SUBS, by `samples` passes over them.

    Each pass draws one count and one subset a sequence (`counted`), with times that lie evenly over the sequences;
    passes are independent, so their spread is the standard error. `free` (T,) are the tokens whose probability is
    bounded; if not given, all but the encoder's special tokens. The encoder answers without dropout.
    """
    free = text_of(encoder, ids) if free is None else free
    draw = torch.arange(layout.rows, device=ids.device)

    def once(sample: int) -> Tensor:
        shift = draws.uniform(seed, Training.MDLM_BOUND_TIME, torch.tensor(sample))
        time = (draws.spread(seed, Training.MDLM_BOUND_TIME, draw) + shift.to(ids.device)) % 1
        noise = draws.uniform(seed, Training.MDLM_BOUND_HIDE, layout.row, layout.column, sample)
        hidden, weight = counted(time, noise, free, layout)
        asked = hidden.nonzero()[:, 0]
        states = encoder.states(ids.masked_fill(hidden, encoder.mask_id), layout)
        losses = cross_entropy(without(encoder.logits(states[asked]), encoder.mask_id), ids[asked])
        return (losses.double() * weight[asked]).sum()

    return bounded(encoder, int(free.sum()), samples, once)


def text_of(encoder: Encoder, ids: Tensor) -> Tensor:
    """(T,) bool: all but the encoder's special tokens."""
    special = torch.tensor(sorted({*encoder.special_ids, encoder.mask_id}), device=ids.device)
    return ~torch.isin(ids, special)


def bounded(encoder: Encoder, tokens: int, samples: int, once: Callable[[int], Tensor]) -> Bound:
    """The mean of so many passes, each the bound of so many tokens in nats; the encoder is left as it was."""
    if samples < 2:
        raise BesagError(f"samples={samples!r}: a standard error needs at least 2")
    if not tokens:
        raise BesagError("there is no bound of no tokens: these sequences hold special tokens alone")
    training = encoder.training
    encoder.eval()
    try:
        with torch.no_grad():
            drawn = torch.stack([once(sample) / tokens for sample in range(samples)])
    finally:
        encoder.train(training)
    return Bound(float(drawn.mean()), float(drawn.std()) / sqrt(samples), tokens)
