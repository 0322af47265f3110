"""Hide what the network looks at, in this text: attention-guided masking by place (AttMask, Kakogeorgiou et al. 2022).

    a_i = attention that place i of the text receives from all its places, when the network reads it whole
    K   = of the n free places k = rate · n: the most attended, or drawn one after the other in proportion to a_i^power
    loss = −Σ_{i ∈ K} log p(x_i | x_∖K)

The first pass has no gradient and no dropout. The same word is hidden where it is looked at and shown where it is not:
no table over the vocabulary is kept. `masks` is False: the rate is an option here, and the recipe's law is not used.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from torch import Tensor

from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder
from besag.training.network.received import attention_received
from besag.training.objectives import draws
from besag.training.objectives.mdlm import lowest, per_token, predictions, sizes
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, cross_entropy

LEAST = 1e-3  # of an equal share: what nothing looks at is still hidden now and then


@OBJECTIVES.register
class AttentionGuided(Objective):
    name = "attention_guided"
    title = "hidden tokens, hidden where the network looks (AttMask)"
    cite = ("kakogeorgiou2022",)
    masks = False
    attends: ClassVar[bool] = True

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        rate: Annotated[float, "share of a passage that is hidden"] = 0.3,
        pick: Annotated[Literal["sample", "top"], "in proportion to attention, or the most attended"] = "sample",
        power: Annotated[float, "of the attention; negative hides what is not attended to"] = 1.0,
    ) -> None:
        super().__init__(encoder, seed=seed)
        if not 0 < rate <= 1:
            raise BesagError(f"rate={rate!r}: a share of the tokens, above 0 and at most 1")
        self.rate, self.pick, self.power = rate, pick, power

    def forward(self, batch: Batch) -> Loss:
        hidden = self.hidden(batch, attention_received(self.encoder, batch))
        asked = hidden.nonzero()[:, 0]  # (M,)
        target = batch.ids[asked]
        states = self.encoder.states(batch.ids.masked_fill(hidden, self.encoder.mask_id), batch.layout)
        logits = self.encoder.logits(states[asked])
        losses = cross_entropy(logits, target)
        return Loss(per_token(losses.sum(), batch, len(asked)), {}, predictions(self.encoder, target, losses, logits))

    def hidden(self, batch: Batch, received: Tensor) -> Tensor:
        """(T,) bool: what is hidden where each place receives so much attention (T,)."""
        layout, row = batch.layout, batch.layout.row
        weight = received.double().clamp(min=LEAST) ** self.power
        if self.pick == "top":
            turn = 1 / weight
        else:  # a race: the next place is always drawn in proportion to the weights of those that are left
            uniform = draws.uniform(self.seed, Training.ATTENTION_GUIDED, batch.draw[row], layout.column)
            turn = -uniform.log() / weight
        wanted = self.rate * sizes(batch.free, layout)  # (R,)
        up = draws.uniform(self.seed, Training.ATTENTION_ROUNDING, batch.draw) < wanted - wanted.floor()
        return lowest(turn / (1 + turn), batch.free, layout, (wanted.floor() + up).clamp(min=1))
