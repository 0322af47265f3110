"""Causal and masked language modelling by turns, in one network (AntLM; GPT-BERT; first causal, then masked).

A causal step shows the whole text, lets each token see what stands before it, and asks it for the next one. A masked
step is `mlm`. Which of the two a step is follows from batch.step and batch.progress alone:

    alternate   each period begins with its causal share; a period is a share of the run, or `steps` steps
    phases      the run is one period: causal up to the share `causal` of it, masked from there on

With `lead`, every step of that first share of the run is causal, whatever the pattern says.

In a causal step the head at place i − 1 answers about place i, in a masked step that at i itself. `shift` lets it
answer about i from i − 1 in both (masked next-token prediction, GPT-BERT): the steps then differ in who sees whom and
in what is hidden, and the head learns one thing. The configuration declares it (`besag_shift`), so a saved network is
queried as it was trained: the output at position i − 1 is its prediction for i. Position 0 is never a target.

In a causal step every free token is a target but one that begins its sequence; special tokens are never targets, and
what the law hid is not used. The number of targets is then not Σ batch.weight, by which the run divides, so the total
is mean × Σ weight. That is exact for one batch; over accumulated batches and processes it is a mean of means weighted
by Σ weight, which under a constant rate lies nearly in proportion to the number of targets.
"""

from __future__ import annotations

from typing import Annotated, Literal

from besag.conditionals.published import SHIFT_KEY
from besag.errors import BesagError
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder
from besag.training.objectives.mdlm import per_token
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, predict


@OBJECTIVES.register
class Alternate(Objective):
    name = "alternate"
    title = "causal and masked language modelling by turns (AntLM, GPT-BERT)"
    cite = ("yu2024", "charpentier2024", "gisserot2025")

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        pattern: Annotated[Literal["alternate", "phases"], "turns all along, or two phases"] = "alternate",
        causal: Annotated[float, "share of causal steps"] = 0.5,
        period: Annotated[float, "share of the run that a period is"] = 0.1,
        steps: Annotated[int | None, "steps of a period, instead of a share"] = None,
        lead: Annotated[float, "share of the run, at its beginning, in which every step is causal"] = 0.0,
        shift: Annotated[bool, "masked steps, too, ask the place before the hidden one"] = False,
    ) -> None:
        super().__init__(encoder, seed=seed)
        if not 0 <= causal <= 1:
            raise BesagError(f"causal={causal!r}: the share of causal steps lies between 0 and 1")
        if not 0 < period <= 1:
            raise BesagError(f"period={period!r}: a share of the run, above 0 and at most 1; steps= counts in steps")
        if steps is not None and steps < 1:
            raise BesagError(f"steps={steps!r}: a period has at least one step")
        if not 0 <= lead <= 1:
            raise BesagError(
                f"lead={lead!r} is invalid: the share of the run that is causal alone lies between 0 and 1"
            )
        self.pattern, self.causal, self.period, self.steps = pattern, causal, period, steps
        self.lead, self.shift = lead, shift
        if shift:
            setattr(encoder.model.config, SHIFT_KEY, True)

    @property
    def purpose(self) -> str:
        """What the network can be used for: without a masked step it never learns to predict at a mask."""
        return "encode" if self.causal == 1 or self.lead == 1 else "score"

    def is_causal(self, step: int, progress: float) -> bool:
        if progress < self.lead:
            return True
        if self.pattern == "phases":
            return progress < self.causal
        if self.steps is not None:
            return step % self.steps < self.causal * self.steps
        return progress / self.period % 1 < self.causal

    def forward(self, batch: Batch) -> Loss:
        return self._causal(batch) if self.is_causal(batch.step, batch.progress) else self._masked(batch)

    def _masked(self, batch: Batch) -> Loss:
        states, weight = self.encoder.states(batch.inputs, batch.layout), batch.weight
        if self.shift:  # each place has the state of the one before it, but that none stands before the first
            states, weight = states.roll(1, 0), weight * (batch.layout.column[batch.asked] > 0)
        losses, guesses = predict(self.encoder, states, batch)
        total = (losses * weight).sum()
        return Loss(total, {"masked_loss": (total / batch.weight.sum().clamp(min=1)).detach()}, guesses)

    def _causal(self, batch: Batch) -> Loss:
        target = (batch.free & (batch.layout.column > 0)).nonzero()[:, 0]  # (M,)
        states = self.encoder.states(batch.ids, batch.layout, causal=True)  # (T, H)
        losses = self.encoder.losses(states[target - 1], batch.ids[target])
        total, mean = per_token(losses.sum(), batch, len(target)), losses.detach().sum() / max(len(target), 1)
        return Loss(total, {"causal_loss": mean})
