"""RetroMAE: one vector must hold the text. A decoder of one layer rebuilds every token from it, most others hidden.

    h   = encoder(x_∖K) at the first place                   K: the law's masks, of a low rate
    q_i = h + s_i                                            a question at every place i; s_i a sinusoid, no token
    c_j = e(x_j) + s_j                                       the text itself, by the network's own embeddings
    i sees h, and of the other j each with the chance 1 − hide: the noise of (i, j) decides, so another mask for each i
    loss = Σ_{i ∈ K} −log p(x_i | x_∖K)
         + weight · Σ_passages |K| · mean_i −log softmax(head(decoder(q_i; h, c_seen(i))))[x_i]    over all free i

So one layer can copy little, and what it lacks must come from h. This is the enhanced decoding of the publication:
every token is asked, each from a context of its own, and none sees itself. (A passage's rebuilding counts as its asked
tokens do, so that the loss does not depend on what shares its batch.)

The decoder is thrown away. What comes out is the encoder: a masked model, whose first state is an embedding.
"""

from __future__ import annotations

import math
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch
from besag.training.network.decoder import by_heads
from besag.training.network.encoder import Encoder
from besag.training.objectives import draws
from besag.training.objectives.electra import by_passage
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, predict
from besag.training.objectives.sharing import generator_for


@OBJECTIVES.register
class RetroMAE(Objective):
    name = "retromae"
    title = "a sentence embedding from which one layer rebuilds the text (RetroMAE)"
    cite = ("xiao2022",)

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        hide: Annotated[float, "share of the other tokens that each question of the decoder does not see"] = 0.5,
        weight: Annotated[float, "of rebuilding"] = 1.0,
    ) -> None:
        super().__init__(encoder, seed=seed)
        if not 0 <= hide <= 1:
            raise BesagError(f"hide = {hide!r} of the objective 'retromae' is a share of the tokens, from 0 to 1")
        if not (math.isfinite(weight) and weight > 0):
            raise BesagError(f"weight = {weight!r} of the objective 'retromae' must be a number above 0")
        self.hide, self.weight = hide, weight
        config, narrow = encoder.model.config, encoder.model.get_input_embeddings().weight.shape[1]
        generator = generator_for(seed, Training.RETROMAE_WEIGHTS)
        decoder = OneLayer(config.hidden_size, narrow, config.num_attention_heads, generator)
        self.decoder = decoder.to(device=encoder.model.device, dtype=encoder.model.dtype)

    def forward(self, batch: Batch) -> Loss:
        states = self.encoder.states(batch.inputs, batch.layout)  # (T, H)
        losses, guesses = predict(self.encoder, states, batch)
        rebuilt = self.rebuilt(self.embedding(states, batch), batch)[batch.free]  # (F, H)
        missed = by_passage(self.encoder.losses(rebuilt, batch.ids[batch.free]), batch)
        masked = (losses * batch.weight).sum()
        count = batch.weight.sum().clamp_min(1e-9)
        logs = {"masked_loss": masked.detach() / count, "rebuild_loss": missed.detach() / count}
        return Loss(masked + self.weight * missed, logs, guesses)

    def embedding(self, states: Tensor, batch: Batch) -> Tensor:  # (T, H) -> (R, H)
        """Of each passage: its first state."""
        return states[batch.layout.bounds[:-1].long().clamp(max=len(states) - 1)]  # nobody asks of an empty passage

    def rebuilt(self, embedding: Tensor, batch: Batch) -> Tensor:  # (R, H) -> (T, H)
        """What the decoder makes of each place, from the embeddings and what that place sees of the text."""
        layout = batch.layout
        at = (layout.row, layout.column)
        tokens = self.decoder.widen(self.encoder.model.get_input_embeddings()(batch.ids))  # (T, H)
        text = tokens.new_zeros(layout.rows, layout.longest, tokens.shape[-1]).index_put(at, tokens)
        text = torch.cat([embedding.to(text.dtype)[:, None], text[:, 1:]], 1)  # h stands where the first token stood
        number = layout.position.new_zeros(text.shape[:2]).index_put(at, layout.position)
        found: Tensor = self.decoder(embedding, text, number, self.seen(batch))[at]
        return found

    def seen(self, batch: Batch) -> Tensor:  # (R, L, L) bool
        """Which columns each question sees: h in the first one always, its own never."""
        layout = batch.layout
        column = torch.arange(layout.longest, device=batch.ids.device)
        noise = draws.uniform(
            self.seed, Training.RETROMAE_SEEN, batch.draw[:, None, None], column[:, None], column
        )  # (R, L, L)
        real = column < layout.bounds.diff()[:, None]  # (R, L)
        seen = (noise >= self.hide) & real[:, None, :] & (column[:, None] != column)
        return seen | (column == 0)


class OneLayer(nn.Module):
    """One layer of a transformer whose questions are not what it reads."""

    def __init__(self, width: int, narrow: int, heads: int, generator: torch.Generator) -> None:
        super().__init__()
        self.heads = heads
        self.widen = nn.Identity() if narrow == width else nn.Linear(narrow, width)  # a narrow table of embeddings
        self.before_query, self.before_key, self.before_mlp, self.norm = (nn.LayerNorm(width) for _ in range(4))
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02, generator=generator)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, embedding: Tensor, text: Tensor, number: Tensor, seen: Tensor) -> Tensor:
        """(R, H), (R, L, H), (R, L) places, (R, L, L) bool -> (R, L, H)."""
        place = sinusoids(number, text.shape[-1]).to(text.dtype)  # (R, L, H)
        asks, reads = self.before_query(embedding)[:, None] + place, self.before_key(text) + place
        mixed = self.query(asks), self.key(reads), self.value(reads)
        query, key, value = (by_heads(part, self.heads) for part in mixed)  # (R, heads, L, D)
        read = F.scaled_dot_product_attention(query, key, value, attn_mask=seen[:, None])
        states = asks + self.out(read.transpose(1, 2).flatten(2))
        normed: Tensor = self.norm(states + self.down(F.gelu(self.up(self.before_mlp(states)))))
        return normed


def sinusoids(number: Tensor, width: int) -> Tensor:  # (…,) -> (…, width)
    """Where a token stands, as sines and cosines of falling speed (Vaswani et al. 2017)."""
    pairs = -(-width // 2)
    speed = 10_000.0 ** -(torch.arange(pairs, device=number.device) / pairs)  # radians a place
    angle = number[..., None] * speed
    return torch.cat([angle.sin(), angle.cos()], -1)[..., :width]
