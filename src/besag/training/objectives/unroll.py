"""Training for refinement: the network mends a corrupted text, then mends what it made of it (SUNDAE, PaDIR).

    loss = (1/S) Σ_{s<S} mean_i −log p(x_i at i | x⁽ˢ⁾),     x⁽⁰⁾ a corruption of x, x⁽ˢ⁺¹⁾ the answers to x⁽ˢ⁾

The true token is asked at every free place, corrupted or not; no gradient runs through the drawn tokens. A share
α ~ U(0, 1) of each passage is corrupted, evenly spread over the passages of a batch.

- SUNDAE, the default: corrupted tokens become uniformly random ones (`corrupt="random"`), answers are sampled.
- PaDIR: `corrupt="mask"` (a corrupted token stays with probability `correct`, is random with probability `random`, else
  masked), `feed="argmax"`, and `first="corrupted"` to ask only about corrupted tokens in the first stage.

A network trained so answers about places that it *sees*: such an answer is what it would put there, not a conditional
probability given the rest. By default it is never shown a mask, so scores that hide places mean nothing: `purpose` is
"encode", and "score" under mask noise. Special tokens are never corrupted, drawn or asked for. `masks` is False. Logits
of every free token are kept, S times over: batches must be smaller than those of `mlm`. The total is mean × Σ
batch.weight.
"""

from __future__ import annotations

from math import inf
from typing import Annotated, Literal

import torch
from torch import Tensor

from besag.checks import whole_number
from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder
from besag.training.objectives import draws
from besag.training.objectives.mdlm import per_token, predictions
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective
from besag.vocabulary import Vocabulary


@OBJECTIVES.register
class Unroll(Objective):
    name = "unroll"
    title = "mending a corrupted text, then what was made of it (SUNDAE, PaDIR)"
    cite = ("savinov2022",)
    masks = False
    translates = True

    ordinary: Tensor  # (V,) bool: may be drawn

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        stages: Annotated[int, "how often the network mends"] = 2,
        corrupt: Annotated[Literal["random", "mask"], "into random tokens, or masks"] = "random",
        feed: Annotated[Literal["sample", "argmax"], "what the next stage is given"] = "sample",
        first: Annotated[Literal["all", "corrupted"], "what the first stage is asked about"] = "all",
        correct: Annotated[float, "chance of a corrupted token to stay (mask noise)"] = 0.1,
        random: Annotated[float, "chance of a corrupted token to be random (mask noise)"] = 0.1,
        temperature: Annotated[float, "of the sampled answers"] = 1.0,
    ) -> None:
        super().__init__(encoder, seed=seed)
        whole_number(stages, "stages", most=100)
        if min(correct, random) < 0 or correct + random > 1:
            raise BesagError(f"correct={correct!r} and random={random!r} are probabilities that leave 1 − their sum")
        if not 0 < temperature < inf:
            raise BesagError(f"temperature={temperature!r}: above 0; feed='argmax' takes the likeliest token")
        self.stages, self.corrupt, self.feed, self.first = stages, corrupt, feed, first
        self.correct, self.random, self.temperature = correct, random, temperature
        self.register_buffer("ordinary", torch.ones(encoder.width, dtype=torch.bool), persistent=False)
        self.ordinary[sorted({*encoder.special_ids, encoder.mask_id})] = False

    @property
    def purpose(self) -> str:
        return "score" if self.corrupt == "mask" else "encode"

    def meet(self, vocabulary: Vocabulary) -> None:
        """A network may be wider than its vocabulary; what is no token is not drawn."""
        self.ordinary[vocabulary.size :] = False

    def forward(self, batch: Batch) -> Loss:
        places = batch.free.nonzero()[:, 0]  # (N,)
        target = batch.ids[places]
        inputs, corrupted = self.corrupted(batch)
        stages: list[Tensor] = []
        for stage in range(self.stages):
            logits = self.encoder.logits(self.encoder.states(inputs, batch.layout)[places])  # (N, V)
            losses = self.encoder.nll(logits, target)
            counts = corrupted[places].float() if stage == 0 and self.first == "corrupted" else torch.ones_like(losses)
            stages.append((losses * counts).sum() / counts.sum().clamp(min=1))
            if stage + 1 < self.stages:
                inputs = batch.ids.index_put((places,), self.chosen(logits.detach(), places, batch, stage))
        mean = torch.stack(stages).mean()
        logs = {f"stage_{number + 1}_loss": loss.detach() for number, loss in enumerate(stages)}
        return Loss(per_token(mean, batch, 1), logs, predictions(self.encoder, target, losses, logits))

    def corrupted(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(T,) the first input, (T,) which of its tokens were chosen (some are shown as they were)."""
        draw, column = batch.draw[batch.layout.row], batch.layout.column  # (T,)
        share = draws.spread(self.seed, Training.UNROLL_SHARE, batch.draw)[batch.layout.row]
        chosen = batch.free & (draws.uniform(self.seed, Training.UNROLL_CORRUPT, draw, column) < share)
        tokens = self.ordinary.nonzero()[:, 0]
        drawn = tokens[(draws.uniform(self.seed, Training.UNROLL_TOKEN, draw, column) * len(tokens)).long()]
        if self.corrupt == "mask":
            kind = draws.uniform(self.seed, Training.UNROLL_KIND, draw, column)
            drawn = torch.where(kind < self.correct + self.random, drawn, self.encoder.mask_id)
            drawn = torch.where(kind < self.correct, batch.ids, drawn)
        return torch.where(chosen, drawn, batch.ids), chosen

    def chosen(self, logits: Tensor, places: Tensor, batch: Batch, stage: int) -> Tensor:  # (N,)
        """What the next stage is shown: the likeliest or a drawn ordinary token at each place."""
        possible = logits.float().masked_fill(~self.ordinary, -inf)
        if self.feed == "argmax":
            return possible.argmax(-1)
        row = batch.layout.row[places]
        point = draws.uniform(
            self.seed, Training.UNROLL_SAMPLE, batch.draw[row], batch.layout.column[places], stage
        )  # (N,)
        return draws.tokens(possible / self.temperature, point)
