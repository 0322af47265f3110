"""MAE-LM: the encoder never sees a mask. A decoder, thrown away afterwards, fills the gaps.

    h_S = encoder(x_S at its own places)                        S = ∖K, what is shown
    g   = decoder(h_S, and a learned vector m at each i ∈ K)    with rotary positions
    loss = −Σ_{i ∈ K} log softmax(head(g_i))[x_i]

Spending width on [MASK] leaves less of it for real tokens (Meng et al.); here none is spent. Hidden places with the
mask token are left out of the encoder; those that the replacement policy shows as another token, or as they are, are
seen and asked where they stand.

What comes out is an *encoder*. It was never shown a mask and its head was only ever used behind the decoder, so scoring
with masks means nothing: `purpose` is "encode". `mlm_share` > 0 gives that share of the passages (by noise) to plain
masked modelling in the same pass: masks from the first layer on, the head right behind the encoder. Then the network
can be scored, the better the larger the share, and `purpose` is "score".
"""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor, nn

from besag.checks import whole_number
from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch, Layout
from besag.training.network.decoder import Decoder
from besag.training.network.encoder import Encoder
from besag.training.network.places import require_numbered_places
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, predict
from besag.training.objectives.sharing import check_share, generator_for, plain_rows, shown_alone


@OBJECTIVES.register
class MAE(Objective):
    name = "mae"
    title = "an encoder that never sees a mask, and a decoder to throw away (MAE-LM)"
    cite = ("meng2024",)
    mask_shown = True

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        layers: Annotated[int, "of the decoder"] = 4,
        mlm_share: Annotated[float, "of the passages that are plain masked modelling"] = 0.0,
    ) -> None:
        super().__init__(encoder, seed=seed)
        whole_number(layers, "layers of the objective 'mae'", most=1000)
        self.mlm_share = check_share(self.name, mlm_share)
        require_numbered_places(encoder, self.name)
        config = encoder.model.config
        if config.hidden_size % (2 * config.num_attention_heads):
            raise BesagError(
                f"the decoder of 'mae' turns numbers in pairs, so hidden_size = {config.hidden_size} must be a "
                f"multiple of 2 × {config.num_attention_heads} heads"
            )
        generator = generator_for(seed, Training.MAE_WEIGHTS)
        decoder = Decoder(config.hidden_size, config.num_attention_heads, layers, generator)
        gap = torch.empty(config.hidden_size).normal_(std=0.02, generator=generator)
        self.decoder = decoder.to(device=encoder.model.device, dtype=encoder.model.dtype)
        self.gap = nn.Parameter(gap.to(device=encoder.model.device, dtype=encoder.model.dtype))

    @property
    def purpose(self) -> str:
        return "score" if self.mlm_share > 0 else "encode"

    def forward(self, batch: Batch) -> Loss:
        plain = plain_rows(batch, self.mlm_share, self.seed, Training.MAE_SHARE)  # (R,)
        shown, layout = shown_alone(self.encoder, batch, plain)
        encoded = self.encoder.states(batch.inputs[shown], layout)  # (S, H)
        whole = self.gap.to(encoded.dtype).repeat(len(shown), 1).index_put((shown.nonzero()[:, 0],), encoded)
        losses, guesses = predict(self.encoder, self._decode(whole, batch.layout, ~plain[batch.layout.row]), batch)
        return Loss((losses * batch.weight).sum(), {}, guesses)

    def _decode(self, states: Tensor, layout: Layout, which: Tensor) -> Tensor:  # (T, H)
        """The decoder's states at `which` (T,), whole passages; elsewhere the encoder's own."""
        where = which.nonzero()[:, 0]
        if not len(where):  # every process must still give every weight a gradient
            return states + 0.0 * sum(parameter.sum() for parameter in self.decoder.parameters())
        decoded = self.decoder(states[where], layout.kept(which), self.encoder.ragged)
        return states.index_put((where,), decoded.to(states.dtype))
