"""Speculative decoding: draft all hidden places in one pass, verify them from left to right in one batch.

    y_j ~ q_j = p(x_j | what is shown)                 for the hidden places 1 … k from left to right, in one pass
    p_j       = p(x_j | what is shown, y_1 … y_{j−1})      for all j, in one batch of k − 1 questions (p_1 is q_1)
    y_j stays with probability min(1, p_j(y_j) / q_j(y_j)), as long as all before it stayed;
    the first that does not is drawn again, from (p_j − q_j)₊ / Σ (p_j − q_j)₊; those after it stay hidden

A token stays with min(p_j, q_j) in all, and the second draw has what is missing to p_j: each place has the law p_j,
whatever q_j is (Leviathan et al. 2023). So a filling has the law of `ordered` from left to right, on any conditionals.
A step takes two passes one after the other, its questions side by side in the second, and reveals two places at least
(the first always stays, the second stays or is drawn again): never more such passes than `ordered` has (Guo and Ermon
2025), and fewer the less the places depend on each other. Forward passes in all are more: k a step.

With `pick="argmax"` a token stays if it is also the likeliest of p_j: the text of `ordered`, bit by bit.

Every draft is asked about, also behind one that will fall: an exact table that gives such a text no probability at all
refuses, as it refuses `grouped`. Not to be confused with `grouped`, which verifies nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from besag.checks import MOST_PLACES, whole_number
from besag.engine import Engine
from besag.hardware import send
from besag.noise import Sampling
from besag.reductions import invert
from besag.samplers.drawing import Drawn, draw
from besag.samplers.kernel import Canvas, Info, Noise, State, changes, hidden, register
from besag.samplers.kernels.decoding import Decoder, foremost, most_hidden


@register
@dataclass(frozen=True)
class Speculative(Decoder):
    name = "speculative"
    title = "all hidden places drafted in one pass, verified from left to right in one batch"
    formula = "y_j ~ q_j stays with min(1, p_j(y_j) / q_j(y_j)); the first that does not is drawn from (p_j − q_j)₊"
    law = "the chain rule from left to right, as of `ordered`; the joint, if the conditionals have one"
    passes = "k a step for k drafted places, 2 of them one after the other; at most n such for n hidden places"
    ends = True
    cite = ("leviathan2023", "guo2025")

    ahead: Annotated[int | None, "most places that are drafted in a step; none: all that are hidden"] = None

    def __post_init__(self) -> None:
        if self.ahead is not None:
            whole_number(self.ahead, "ahead", right="draft at least 1 place, or None to draft all", most=MOST_PLACES)
        super().__post_init__()

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        drafts = [min(self.ahead or n, left) for left in range(n, 0, -1 if self.ahead == 1 else -2)]
        return sum(drafts[:steps]) * (length + source)

    def step(self, engine: Engine, noise: Noise, state: State) -> tuple[State, Info]:
        ids, device, hides = state.ids, state.ids.device, hidden(state).cpu()
        drafted = foremost(torch.arange(ids.shape[1]).expand(hides.shape), hides, self.ahead or ids.shape[1])  # (C, L)
        row, place = drafted.nonzero(as_tuple=True)  # (M,) each, chain by chain from left to right
        asked = drafted.any(1)  # (C,)
        uniform = noise.asks(Sampling.DRAW, state.step, row, place) if self.pick == "sample" else None
        among = (asked.cumsum(0) - 1)[row]
        draft = self._asked(engine, state, ids[send(asked, device)], among, place, uniform, asked)
        token, log_prob, stays = self._verified(engine, noise, state, drafted, draft)  # (M,) each
        at = send(row, device), send(place, device)
        falls = torch.zeros(ids.shape, dtype=torch.long, device=device).index_put(at, (~stays).long())
        revealed = send(drafted, device) & (falls.cumsum(1) - falls == 0)  # up to the first that fell, and that one
        after = torch.where(revealed, ids.index_put(at, token), ids)
        told = torch.zeros(ids.shape, dtype=log_prob.dtype, device=device).index_put(at, log_prob)
        passes = drafted.sum(1)  # (C,)
        more = {
            "revealed": revealed.sum(1),
            "sequential": passes.clamp(max=2),  # one after the other
            "log_prob": told.masked_fill(~revealed, 0).sum(1),
        }
        return State(after, state.canvas, state.step + 1), Info(changes(ids, after), passes, more)

    def _verified(
        self, engine: Engine, noise: Noise, state: State, drafted: Tensor, draft: Drawn
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(M,) the token of each drafted place, if all before it stay; its log-probability; does the draft stay?"""
        device, (row, place) = state.ids.device, drafted.nonzero(as_tuple=True)
        stays = torch.ones(len(row), dtype=torch.bool, device=device)
        later = 1 + (row[1:] == row[:-1]).nonzero()[:, 0]  # (N,) all but the first of each chain
        if not len(later):
            return draft.token, draft.log_prob, stays
        chain, last = row[later], place[later]
        unknown = drafted[chain] & (torch.arange(drafted.shape[1]) >= last[:, None])  # (N, L) when it is its turn
        filled = state.ids.index_put((send(row, device), send(place, device)), draft.token)
        shown = filled[send(chain, device)].masked_fill(send(unknown, device), state.canvas.mask_id)
        answer = self._asked(engine, state, shown, torch.arange(len(later)), last, None, chain)
        assert answer.row is not None
        assert draft.row is not None
        at = send(later, device)
        if self.pick == "argmax":
            kept, now = answer.token == draft.token[at], answer.token
        else:
            keep, again = (noise.asks(each, state.step, chain, last) for each in (Sampling.ACCEPT, Sampling.EXTRA))
            kept, now = judged(answer.row, draft.row[at], draft.token[at], keep, again)
        stays[at] = kept
        log_prob = answer.row.gather(1, now[:, None])[:, 0]
        return draft.token.index_put((at,), now), draft.log_prob.index_put((at,), log_prob), stays

    def _asked(
        self, engine: Engine, state: State, shown: Tensor, row: Tensor, place: Tensor, uniform: Tensor | None,
        chains: Tensor,
    ) -> Drawn:  # fmt: skip
        canvas = state.canvas
        return draw(
            engine, shown, row, place, uniform, drawing=self.how, allowed=canvas.allowed, want=("row",),
            given=canvas.given_to(chains),
        )  # fmt: skip

    def steps(self, canvas: Canvas) -> int:
        return -(-most_hidden(canvas) // min(self.ahead or 2, 2))


def judged(target: Tensor, draft: Tensor, token: Tensor, keep: Tensor, again: Tensor) -> tuple[Tensor, Tensor]:
    """(m,) which tokens, drawn from laws `draft` (m, V), stay under `target` (m, V); (m,) the tokens then.

    Both laws are log-probabilities; `keep` and `again` (m,) are the noise of the decisions and of the second draws.
    """
    p, q = target.double().exp(), draft.double().exp()
    at = token[:, None]
    stays = send(keep, p.device) * q.gather(1, at)[:, 0] < p.gather(1, at)[:, 0]
    missing = (p - q).clamp(min=0)
    missing = missing.where(missing.sum(1, keepdim=True) > 0, p)  # the laws are the same, but for rounding
    return stays, torch.where(stays, token, invert(missing, again))
