"""Dependence-aware parallel decoding: in one pass, only places that have little to do with one another.

    D_ij        how much two hidden places depend on each other, given what is shown: a signal (`signals.py`)
    W(S)        Σ D_ij over the pairs within S: an estimate of what is lost by drawing S from one pass
    h, R        places still hidden, and passes left for them
    S           of the sets of ⌈h/R⌉ hidden places the one with the least
                W(S) + W(rest) / (R − 1) + entropy_weight · Σ_{i∈S} H_i
    x_i ~ p(x_i | what is shown)     for all i ∈ S, independently

The middle term looks ahead. The rest must be drawn too, in R − 1 passes; split among them at random, a pair of it falls
into one pass with probability 1/(R − 1), so W(rest)/(R − 1) is what the rest is expected to lose. A set that is spread
out itself but leaves clumps for the end is no good set. With two passes left this is a maximum cut of
the graph of dependences; a greedy choice, improved by swaps for as long as one helps, finds S. Of sets that lose
alike the surest places come first.

`rounds` gives the number of passes. `budget` leaves it open: R is then the least for which W(S) ≤ budget, so
independent places all go at once, and with budget=0 places that depend on all others go alone, or, with `pairs="ag"`,
together with the place that depends most on them, both from their Arnold-Gokhale joint (`pair_law.py`).

Signals: "distance" costs no pass and is a prior on text, not a measurement. "change" and "information" measure, and
cost as many passes as there are places, or pairs of places, each step; "attention" costs one and needs a network that
runs eager attention. Every pass is counted.

What it samples from. S depends on the shown tokens and the model's rows, never on a token that is drawn. So if the
conditionals are those of a joint law p,

    KL(p ‖ the law of the kernel) = Σ over steps of E[TC(S | shown)]

with TC the total correlation; it is zero if the places of each set are independent given what is shown, and so
whenever sets have one place (budget=0 where the signal misses no dependence), or are pairs drawn from an exact joint.
W(S) is a sum over pairs and no bound: three places of which each two are independent may still depend on one another.

`refine`: so many times, when nothing is hidden any more, places that repeat the place before them are hidden again,
both together, and decoded as above, by two passes where `rounds` counts. Only chains that stutter pay. The choice
looks at drawn tokens, so with it the law is that of a correction, and no statement about KL is made.

Not to be confused with `entropy_bound`, which bounds the loss of a set whatever its dependence is, nor with
`grouped`, which takes the surest places together, neighbours or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import torch
from torch import Tensor

from besag.checks import MOST_CANDIDATES, MOST_STEPS, whole_number
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.noise import Sampling
from besag.samplers.drawing import COLDEST, Drawing
from besag.samplers.kernel import AnyState, Canvas, Info, Noise, changes, hidden, register
from besag.samplers.kernels import signals
from besag.samplers.kernels.decoding import (
    Decoder,
    fill,
    most_hidden,
    never_the_mask,
)
from besag.samplers.kernels.pair_law import pair_laws
from besag.samplers.kernels.stutter import repeated

ROUNDS = 8  # unless something else is said
AGAIN = 2  # passes for places that are hidden again: those that repeat each other must not be drawn together
CELLS = 2**24  # numbers in the tables of dependence of one piece
GAIN = 1e-9  # a swap must lower the sum by more, so that rounding never swaps for ever


class AdaptiveState(NamedTuple):
    ids: Tensor  # (C, L)
    canvas: Canvas
    step: int
    left: Tensor  # (C,) on the host: passes for what is hidden now
    refined: Tensor  # (C,) on the host: how often places were hidden again


@register
@dataclass(frozen=True)
class Adaptive(Decoder):
    name = "adaptive"
    title = "several places at a time, chosen to depend little on one another"
    formula = "x_i ~ p(x_i | all that is shown) for all i ∈ S, S of little dependence within, and leaving little behind"
    law = "the joint, if the conditionals have one, but for the total correlation of its sets, 0 for sets of one"
    passes = "1 a step, `rounds` in all; more for signals that measure, for pairs and for refining"
    ends = True
    cite = ("li2024",)

    rounds: Annotated[int | None, "passes in all"] = None
    budget: Annotated[float | None, "most dependence within a set; leaves the number of passes open"] = None
    signal: Annotated[Literal["distance", "change", "information", "attention"], "how dependence is found"] = "distance"
    reach: Annotated[float, "of the signal distance, in tokens"] = 2.0
    entropy_weight: Annotated[float, "how much surer places come first"] = 0.05
    look_ahead: Annotated[bool, "weigh what is left for later passes"] = True
    pairs: Annotated[Literal["later", "ag"], "what becomes of two places that depend on each other"] = "later"
    candidates: Annotated[int, "tokens of each place of a pair"] = 20
    refine: Annotated[int, "how often stutter is decoded again"] = 0

    @property
    def effective_law(self) -> str:
        drawn = "that of a correction: stutters are drawn again" if self.refine else self.law
        return drawn if self.pick == "sample" else super().effective_law

    def __post_init__(self) -> None:
        if self.rounds is not None and self.budget is not None:
            raise BesagError(
                f"rounds={self.rounds!r} and budget={self.budget!r}: give the number of passes, or the dependence that "
                "a set may have, not both"
            )
        if self.rounds is not None:
            whole_number(self.rounds, "rounds", right="decode in at least 1 pass", most=MOST_STEPS)
        if self.budget is not None and not (0 <= self.budget <= 1 / COLDEST or self.budget == torch.inf):
            told = "give at least 0, in the unit of the signal; 0 is one by one"
            raise BesagError(f"budget={quoted(self.budget)}: {told}")
        if not 0 <= self.entropy_weight <= 1 / COLDEST:
            told = "give at least 0; 0 does not look at entropies"
            raise BesagError(f"entropy_weight={quoted(self.entropy_weight)}: {told}")
        whole_number(self.refine, "refine", 0, right="give how often, 0 or more", most=MOST_STEPS)
        right = "a place needs at least 1 token that may stand there"
        whole_number(self.candidates, "candidates", right=right, most=MOST_CANDIDATES)
        signals.distance(torch.zeros(1, 1, dtype=torch.bool), reach=self.reach)  # refuses a reach that makes no sense
        super().__post_init__()

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        left, hidden, passes, made = self.rounds or ROUNDS, n, 0, 0
        again = self.refine
        while (hidden or again) and made != steps:
            if not hidden:
                left, hidden, again = AGAIN, n, again - 1
            step, revealed = self._pass_and_reveals(hidden, left)
            passes, hidden, left, made = passes + step, hidden - revealed, max(1, left - 1), made + 1
        return passes * (length + source)

    def _pass_and_reveals(self, hidden: int, left: int) -> tuple[int, int]:
        """Return the most passes of a step on `hidden` positions, and the fewest positions that it reveals."""
        size = -(-hidden // left) if self.budget is None else 1
        passes, pair = 1, 2 * self.candidates + 1
        if hidden > 1 and not (left == 1 and self.budget is None and self.pairs == "later"):
            signals = {"change": hidden + 1, "information": pair * (hidden * (hidden - 1) // 2), "attention": 1}
            passes += signals.get(self.signal, 0)
        if self.pairs == "ag" and hidden > 1 and size == 1:
            return passes + pair, 2
        return passes, size

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> AdaptiveState:
        left = torch.full((len(canvas.ids),), self.rounds or ROUNDS)
        canvas = never_the_mask(canvas, engine.conditionals.width)
        return AdaptiveState(canvas.ids.clone(), canvas, 0, left, torch.zeros_like(left))

    def step(self, engine: Engine, noise: Noise, state: AdaptiveState) -> tuple[AdaptiveState, Info]:
        hides = hidden(state)  # (C, L)
        answers = fill(engine, noise, state, state.ids, hides, self.pick, self.how, measure="entropy")
        assert answers.turn is not None
        chosen, partner, within, measured = self._choose(engine, state, hides, answers.turn)
        token, log_prob, passes = answers.token, answers.log_prob, answers.passes + measured
        if self.pairs == "ag":
            chosen, token, log_prob, spent = self._pair(engine, noise, state, chosen, partner, token, log_prob)
            passes = passes + spent
        ids = torch.where(chosen, token, state.ids)
        done = state._replace(ids=ids, step=state.step + 1, left=(state.left - 1).clamp_min(1))
        after, again = self._refine(done)
        more = {
            "revealed": chosen.sum(1),
            "dependence": within,
            "log_prob": log_prob.masked_fill(~chosen, 0).sum(1),
            "hidden_again": again,
        }
        return after, Info(changes(state.ids, after.ids), passes, more)

    def steps(self, canvas: Canvas) -> int:
        most = most_hidden(canvas)
        if self.budget is not None:
            return most * (1 + self.refine)
        return min(self.rounds or ROUNDS, most) + AGAIN * self.refine

    def done(self, state: AnyState) -> bool:
        return not bool(hidden(state).any())  # what is to be refined is hidden already

    # ---- which places

    def _choose(
        self, engine: Engine, state: AdaptiveState, hides: Tensor, entropy: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(C, L) the set, (C,) the place that depends most on its first one, (C,) W(S), (C,) passes on the host."""
        most = max(1, CELLS // hides.shape[1] ** 2)
        parts = []
        for start in range(0, len(hides), most):  # the table of dependences is as wide as the text, twice
            piece = slice(start, start + most)
            here, left = hides[piece], state.left[piece].to(hides.device)
            at_once = (left == 1)[:, None] if self.budget is None and self.pairs == "later" else torch.zeros_like(here)
            found = self._dependence(engine, state, piece, here & ~at_once)
            strength = found.strength.to(entropy.dtype)
            height = torch.where(here, entropy[piece].nan_to_num(), 0)  # a NaN is reported by `Engine.check`
            if self.budget is None:
                chosen, within = spread_out(strength, height, here, left, self.entropy_weight, self.look_ahead)
            else:
                chosen, within = within_budget(
                    strength, height, here, self.budget, self.entropy_weight, self.look_ahead
                )
            first = chosen.long().argmax(1)[:, None, None].expand(-1, 1, hides.shape[1])
            ties = strength.gather(1, first)[:, 0].masked_fill(~here | chosen, -1)  # (c, L)
            parts.append((chosen, ties.argmax(1), within, found.passes))
        chosen, partner, within, passes = (torch.cat(column) for column in zip(*parts, strict=True))
        return chosen, partner, within, passes

    def _dependence(self, engine: Engine, state: AdaptiveState, piece: slice, hides: Tensor) -> signals.Dependence:
        """Between the places of hides (c, L), of some of the chains."""
        # Cut laws differ infinitely where a token is cut from one and not from the other, so they are not cut here.
        how: dict[str, Any] = {"drawing": Drawing(self.temperature)}
        ids, canvas = state.ids[piece], state.canvas
        how |= {"allowed": canvas.allowed, "given": None if canvas.given is None else canvas.given.rows(piece)}
        if self.signal == "change":
            return signals.change(engine, ids, hides, **how)
        if self.signal == "information":
            return signals.information(engine, ids, hides, candidates=self.candidates, **how)
        if self.signal == "attention":
            return signals.attention(engine, ids, hides)
        return signals.distance(hides, reach=self.reach)

    # ---- pairs, and what is hidden again

    def _pair(
        self,
        engine: Engine,
        noise: Noise,
        state: AdaptiveState,
        chosen: Tensor,
        partner: Tensor,
        token: Tensor,
        log_prob: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Where the set is one place and more are hidden: that place and its partner, from their joint."""
        hides = hidden(state)
        alone = (chosen.sum(1) == 1) & (hides.sum(1) > 1)
        spent = torch.zeros(len(chosen), dtype=torch.long)
        row = alone.nonzero()[:, 0]  # (N,)
        if not len(row):
            return chosen, token, log_prob, spent
        first, second = chosen[row].long().argmax(1), partner[row]
        laws = pair_laws(
            engine,
            state.ids,
            row,
            first,
            second,
            candidates=self.candidates,
            allowed=state.canvas.allowed,
            drawing=self.how,
            given=state.canvas.given,
        )
        sampled = self.pick == "sample"
        one, other = laws.draw(noise.rows(row).chains(Sampling.EXTRA, state.step)) if sampled else laws.likeliest()
        told = laws.log_q.flatten(1).gather(1, laws.cell(one, other)[:, None])[:, 0].to(log_prob)
        spent[row.cpu()] = laws.passes
        return (
            chosen.index_put((row, second), torch.ones_like(alone[row])),
            token.index_put((row, first), one).index_put((row, second), other),
            log_prob.index_put((row, first), told).index_put((row, second), torch.zeros_like(told)),
            spent,
        )

    def _refine(self, state: AdaptiveState) -> tuple[AdaptiveState, Tensor]:
        """Stutters hidden again, where nothing else is hidden and it is still allowed; and (C,) how many places."""
        again = torch.zeros_like(state.canvas.free)
        if self.refine:
            over = ~hidden(state).any(1) & (state.refined < self.refine).to(again.device)
            again = repeated(state.ids, state.canvas.free) & over[:, None]
            again[:, :-1] |= again[:, 1:].clone() & state.canvas.free[:, :-1]
        touched = again.any(1).cpu()
        return state._replace(
            ids=state.ids.masked_fill(again, state.canvas.mask_id),
            left=torch.where(touched, AGAIN, state.left),
            refined=state.refined + touched,
        ), again.sum(1)


# ---- sets


def spread_out(
    strength: Tensor, entropy: Tensor, among: Tensor, left: Tensor, entropy_weight: float, look_ahead: bool = True
) -> tuple[Tensor, Tensor]:
    """(C, L) of each chain ⌈h / left⌉ places of `among` (C, L), and (C,) the dependence within them.

    `strength` (C, L, L) is symmetric and 0 outside `among`, entropy (C, L), left (C,). Without `look_ahead` what the
    rest loses does not count.
    """
    rows = torch.arange(len(among), device=among.device)
    hidden_ones = among.sum(1)
    size = (hidden_ones + left - 1) // left  # (C,)
    meets = (left > 1) & look_ahead  # is there a pass in which two places of the rest may meet?
    share = torch.where(meets, 1 / (left - 1).clamp_min(1), 0).to(strength)[:, None]
    total, price = strength.sum(2), entropy_weight * entropy  # (C, L)
    chosen, inside = torch.zeros_like(among), torch.zeros_like(total)  # inside: Σ over the chosen of D
    for turn in range(int(size.max())):
        cost = price + inside - share * (total - inside)
        place = cost.masked_fill(~among | chosen, torch.inf).argmin(1)
        takes = turn < size
        chosen[rows, place] |= takes
        inside = inside + strength[rows, place] * takes[:, None]
    for _ in range(among.shape[1]):
        cost = price + inside - share * (total - inside)
        gain = cost[:, :, None] - cost[:, None] + (1 + share[:, None]) * strength  # (C, L, L) by [out, in]
        possible = chosen[:, :, None] & (among & ~chosen)[:, None]
        best, swap = gain.masked_fill(~possible, -torch.inf).flatten(1).max(1)
        better = best > GAIN
        if not bool(better.any()):
            break
        out, into = swap // among.shape[1], swap % among.shape[1]
        chosen[rows[better], out[better]] = False
        chosen[rows[better], into[better]] = True
        inside = inside + (strength[rows, into] - strength[rows, out]) * better[:, None]
    return chosen, torch.where(chosen, inside, 0).sum(1) / 2


def within_budget(
    strength: Tensor, entropy: Tensor, among: Tensor, budget: float, entropy_weight: float, look_ahead: bool
) -> tuple[Tensor, Tensor]:
    """(C, L) the set for the fewest passes that keep the dependence within a set to `budget`; and (C,) that."""
    most = int(among.sum(1).max())
    chosen, within = torch.zeros_like(among), torch.full_like(strength[:, 0, 0], torch.inf)
    for passes in range(1, most + 1):
        open_ = (within > budget).nonzero()[:, 0]  # (c,)
        if not len(open_):
            break
        left = torch.full_like(open_, passes)
        sets, loss = spread_out(strength[open_], entropy[open_], among[open_], left, entropy_weight, look_ahead)
        chosen[open_], within[open_] = sets, loss
    return chosen, within
