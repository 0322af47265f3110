"""3ML: masks come late. The first k layers run on shown tokens alone, the others on everything.

    h = layers_{0…k−1}(x_∖K at its own places)
    g = layers_{k…}(h, and the embedding of [MASK] at each place of K)
    loss = −Σ_{i ∈ K} log softmax(head(g_i))[x_i]

With half of the tokens hidden the first k layers cost half; that is the point, so take a high rate and a large k (the
paper hides 50% and leaves few layers after the masks). Hidden places that the replacement policy shows as another
token, or as they are, are there from the start.

The network that comes out is used as any other: masks from the first layer on, which its first k layers have never
met. So with `mlm_share` = 0 it is a network for fine-tuning, and its masked scores are those of a network used
otherwise than it was trained: `purpose` is "encode". `mlm_share` > 0 shows that share of the passages (by noise) with
masks from the first layer on, in the same pass, and `purpose` is "score".

Needs a network that besag can run layer by layer (besag.training.network.layers).
"""

from __future__ import annotations

from typing import Annotated

import torch

from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder
from besag.training.network.layers import Layered
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, predict
from besag.training.objectives.sharing import check_share, plain_rows, shown_alone


@OBJECTIVES.register
class LateMask(Objective):
    name = "late_mask"
    title = "masks come late: the first layers run on shown tokens alone (3ML)"
    cite = ("liao2022",)
    mask_shown = True

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        after: Annotated[int | None, "layers before the masks come; if none, three quarters"] = None,
        mlm_share: Annotated[float, "of the passages with masks from the first layer on"] = 0.0,
    ) -> None:
        """`after`: how many layers run before the masks come; three quarters of them if not given."""
        super().__init__(encoder, seed=seed)
        self.layered = Layered(encoder)
        depth = self.layered.depth
        self.after = depth * 3 // 4 if after is None else after
        if not 0 <= self.after < depth:
            raise BesagError(
                f"masks cannot come after {after} of {depth} layers: the objective 'late_mask' takes after = 0 to "
                f"{depth - 1}"
            )
        self.mlm_share = check_share(self.name, mlm_share)

    @property
    def purpose(self) -> str:
        return "score" if self.mlm_share > 0 or self.after == 0 else "encode"

    def forward(self, batch: Batch) -> Loss:
        shown, layout = shown_alone(
            self.encoder, batch, plain_rows(batch, self.mlm_share, self.seed, Training.LATE_MASK_SHARE)
        )
        embedded = self.layered.embed(batch.inputs, batch.layout.position)  # (T, H)
        early = self.layered.run(embedded[shown], layout, 0, self.after)
        whole = embedded.to(torch.promote_types(embedded.dtype, early.dtype))
        whole = whole.index_put((shown.nonzero()[:, 0],), early.to(whole.dtype))
        states = self.layered.run(whole, batch.layout, self.after)
        losses, guesses = predict(self.encoder, states, batch)
        return Loss((losses * batch.weight).sum(), {}, guesses)
