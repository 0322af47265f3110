"""The joint law of two hidden places, for many pairs at once, over the likeliest tokens of each.

    X, Y          the `candidates` likeliest tokens of the two places, both hidden
    A(x|y)        the first given the second, each y ∈ Y shown in turn, renormalised over X
    B(y|x)        the second given the first, each x ∈ X shown in turn, renormalised over Y
    q(x, y)       the joint whose conditionals are nearest to A and B (Arnold-Gokhale, `besag.joints.ag`)

2·candidates + 1 passes a pair. If the model's answers are those of one joint law, q is that law, given that both tokens
are in the sets.

X and Y depend on what else is shown and never on the tokens that stood at the two places, nor on those that are drawn:
so a step may draw from q, or propose from it, with no more to correct for than q itself.

Temperature and allowed tokens shape every answer; top_k and top_p cut X and Y alone: a cut of A or B would leave zeros
that cut the table into parts whose masses nothing says. A token of probability 0 is no candidate. Its line of the table
then holds a copy of the likeliest candidate, which shares weight and mass with it, so that all tables have one size and
the joint is what it is without the copies; in the end its cells have probability 0. Where an exact law leaves a line of
A or B without mass, or the joint open, the chain rule stands in, both orders mixed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from besag.checks import whole_number
from besag.conditionals.contract import Given, Questions
from besag.engine import Engine
from besag.errors import BesagError
from besag.joints.small_tables import arnold_gokhale
from besag.reductions import Chunk
from besag.samplers.drawing import AS_IT_IS, Drawing, allowed_at, answered, law_of, sample


class PairLaws(NamedTuple):
    """The laws of N pairs of places."""

    first: Tensor  # (N, k) candidate tokens of the first place
    second: Tensor  # (N, k)
    log_q: Tensor  # (N, k, k) float64, log-probabilities over first × second candidates, each table sums to 1
    lost: Tensor  # (N,) the mass of the two rows (both hidden) outside the candidates, the mean of the two
    passes: int  # forward passes a pair
    log_order: Tensor  # (N, k, k) of the pair drawn one place after the other, in random order; not renormalised

    def mutual_information(self) -> Tensor:
        """(N,) of the two places, in nats."""
        q = self.log_q
        ratio = q - q.logsumexp(2, keepdim=True) - q.logsumexp(1, keepdim=True)
        return torch.where(q > -torch.inf, q.exp() * ratio, 0.0).sum((1, 2)).clamp_min(0.0)

    def draw(self, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """(N,) tokens of the first and (N,) of the second place, from one number in (0, 1) a pair, (N,)."""
        return self._tokens(sample(self.log_q.flatten(1), uniform))

    def likeliest(self) -> tuple[Tensor, Tensor]:
        """The same, of the likeliest pair."""
        return self._tokens(self.log_q.flatten(1).argmax(1))

    def _tokens(self, cell: Tensor) -> tuple[Tensor, Tensor]:
        at, k = cell.to(self.first.device)[:, None], self.second.shape[1]  # (N, 1)
        return self.first.gather(1, at // k)[:, 0], self.second.gather(1, at % k)[:, 0]

    def cell(self, first: Tensor, second: Tensor) -> Tensor:
        """(N,) where these tokens, (N,) each, stand in the tables read line by line; −1: not both are candidates."""
        x, y = self.first == first[:, None], self.second == second[:, None]  # (N, k)
        number = x.long().argmax(1) * self.second.shape[1] + y.long().argmax(1)  # a copy stands after what it copies
        return number.masked_fill(~(x.any(1) & y.any(1)), -1).to(self.log_q.device)


def pair_laws(
    engine: Engine,
    ids: Tensor,
    row: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    candidates: int = 20,
    allowed: Tensor | None = None,
    drawing: Drawing = AS_IT_IS,
    given: Given | None = None,
) -> PairLaws:
    """The laws of places first[n] and second[n] of sequence row[n] of ids (S, L), both hidden, the rest as it stands.

    `allowed` and `given`, of the S sequences, are the canvas's. The answers are where the network is, in float64.
    """
    whole_number(candidates, "candidates", right="a place needs at least 1 token that may stand there")
    if bool((first == second).any()):
        raise BesagError(f"a pair has two places; here one is paired with itself: {first[first == second][0]}")
    device = engine.conditionals.device
    most = engine.conditionals.width if allowed is None else int(allowed.sum(-1).max())
    pairs, k = len(row), min(candidates, most)
    place = torch.stack([first.to(device), second.to(device)], 1)  # (N, 2)
    hide = ids.to(device)[row.to(device)].scatter(1, place, _mask(engine))  # (N, L)
    given = None if given is None else given.rows(row)
    if not pairs:
        nobody, nothing = place.new_empty(0, k), torch.empty(0, k, k, dtype=torch.float64, device=_home(device))
        return PairLaws(nobody, nobody, nothing, nothing[:, 0, 0], 2 * k + 1, nothing)
    tokens, alone = _candidates(engine, hide, place, k, allowed, drawing, given)  # (N, 2, k) each
    absent = alone == -torch.inf
    tokens = torch.where(absent.to(device), tokens[..., :1], tokens)  # an exact law cannot be shown the impossible
    whole, cut = _given(engine, hide, place, tokens, allowed, drawing, given)
    copies = 1 + absent.sum(2, keepdim=True)  # (N, 2, 1) of the likeliest candidate
    share = torch.zeros_like(alone)
    share[..., :1] = -copies.double().log()
    share = torch.where(absent, share[..., :1], share)  # (N, 2, k)
    log_a, log_b = whole[0] + share[:, 0, :, None], whole[1] + share[:, 1, None]  # (N, k, k) both [x, y]
    hidden = torch.where(absent, alone[..., :1], alone) + share
    log_q = _solve(log_a, log_b, hidden, share)
    gone = absent[:, 0, :, None] | absent[:, 1, None]  # (N, k, k)
    log_q = (log_q - share[:, 0, :, None] - share[:, 1, None]).masked_fill(gone, -torch.inf)
    total = log_q.logsumexp((1, 2), keepdim=True)
    if not bool(total.isfinite().all()):
        engine.check()  # NaN is told as what it is
        at = int((~total.flatten().isfinite()).nonzero()[0, 0])
        raise BesagError(
            f"the {k} likeliest tokens of place {int(first[at])} and of place {int(second[at])} hold no possible pair: "
            "give more candidates"
        )
    forth, back = alone[:, 0, :, None] + cut[1], alone[:, 1, None] + cut[0]
    log_order = (torch.logaddexp(forth, back) - math.log(2)).masked_fill(gone, -torch.inf)
    lost = (1 - alone.exp().sum(2)).clamp_min(0.0).mean(1)
    return PairLaws(tokens[:, 0], tokens[:, 1], log_q - total, lost, 2 * k + 1, log_order)


def _candidates(
    engine: Engine,
    hide: Tensor,
    place: Tensor,
    k: int,
    allowed: Tensor | None,
    drawing: Drawing,
    given: Given | None,
) -> tuple[Tensor, Tensor]:
    """(N, 2, k) the likeliest tokens of both places, both hidden, likeliest first, and their log-probabilities."""
    row = torch.arange(len(place)).repeat_interleave(2)
    questions = Questions(hide, row, place.flatten(), given=given)
    kept = answered(engine, questions, _Look("law", drawing, place.flatten(), allowed, k))
    engine.check()  # of a law that is none the likeliest tokens may be such as the network does not know
    tokens, law = (kept[name].view(-1, 2, kept[name].shape[1]) for name in ("tokens", "law"))
    return tokens, law.to(_home(law.device)).double()


def _given(
    engine: Engine,
    hide: Tensor,
    place: Tensor,
    tokens: Tensor,
    allowed: Tensor | None,
    drawing: Drawing,
    given: Given | None,
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """log p(first = x | second = y) and log p(second = y | first = x), (N, k, k) both [x, y]: uncut, and as drawn."""
    pairs, k = tokens.shape[0], tokens.shape[2]
    sequences = hide[:, None, None].repeat(1, 2, k, 1)  # (N, 2, k, L): shown at the second, then at the first place
    shown = place.flip(1)[:, :, None, None].expand(-1, -1, k, 1)
    sequences.scatter_(3, shown, tokens.flip(1)[..., None])
    asked = place[:, :, None].expand(-1, -1, k).flatten()  # (N·2k,)
    wanted = tokens[:, :, None].expand(-1, -1, k, -1).reshape(-1, k)  # (N·2k, k) the candidates of the place asked
    uncut = replace(drawing, top_k=None, top_p=None)
    each = torch.arange(len(asked))
    source = None if given is None else given.rows(each // (2 * k))
    questions = Questions(sequences.flatten(0, 2), each, asked, wanted, given=source)
    looks = [_Look("whole", uncut, asked, allowed), _Look("cut", drawing, asked, allowed)]
    kept = answered(engine, questions, looks[: 1 if drawing == uncut else 2])
    found = []
    for name in ("whole", "cut"):
        law = kept.get(name, kept["whole"])
        law = law.to(_home(law.device)).double().view(pairs, 2, k, k)  # [shown, asked]
        found.append((law[:, 0].mT, law[:, 1]))
    return found[0], found[1]


def _solve(log_a: Tensor, log_b: Tensor, hidden: Tensor, share: Tensor) -> Tensor:
    """(N, k, k) the joint, from the conditionals (N, k, k) and log p(x), log p(y), (N, 2, k), none renormalised."""
    order = torch.logaddexp(hidden[:, 0, :, None] + log_b, hidden[:, 1, None] + log_a)
    order = order - order.logsumexp((1, 2), keepdim=True)
    held_a, held_b = log_a.logsumexp(1, keepdim=True), log_b.logsumexp(2, keepdim=True)  # (N, 1, k), (N, k, 1)
    sound = (held_a.isfinite().all(2) & held_b.isfinite().all(1))[:, :, None]  # (N, 1, 1)
    flat = torch.full_like(log_a, -math.log(log_a.shape[1]))  # something solvable where there is nothing to solve
    log_a, log_b = torch.where(sound, log_a - held_a, flat), torch.where(sound, log_b - held_b, flat)
    start = torch.where(sound, order, 2 * flat)
    q = arnold_gokhale(log_a, log_b, start.logsumexp(2), start.logsumexp(1), (share[:, 0], share[:, 1]))
    return torch.where(sound & ~q.isnan().any(2, keepdim=True).any(1, keepdim=True), q, order)


@dataclass(frozen=True, eq=False)
class _Look:
    """The reduction: holds something for each ask, so it serves one call of `Engine.ask`."""

    name: str
    drawing: Drawing
    place: Tensor  # (M,)
    allowed: Tensor | None
    k: int | None = None  # so many of the likeliest tokens; None: the tokens that are asked about

    def __call__(self, chunk: Chunk) -> dict[str, Tensor]:
        allowed = allowed_at(self.allowed, self.place[chunk.asks], chunk.logits.device)
        law = law_of(chunk, self.drawing, allowed)  # (m, V)
        if self.k is not None:
            likeliest = law.topk(self.k)
            return {self.name: likeliest.values, "tokens": likeliest.indices}
        assert chunk.target is not None
        return {self.name: law.gather(1, chunk.target)}


def _home(device: torch.device) -> torch.device:
    return torch.device("cpu") if device.type == "mps" else device  # which has no float64


def _mask(engine: Engine) -> int:
    mask = engine.conditionals.vocabulary.mask_id
    if mask is None:
        raise BesagError(f"{engine.conditionals.name!r} knows no mask: the joint of two places needs a masked model")
    return mask
