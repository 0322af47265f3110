"""A pre-norm encoder with rotary positions and gated layers, and three additions that are paid for by a lower loss.

With h_0 = norm(embedding of the token) and x = h_0, each layer turns x (H,) at every place into

    y = x + Wo [2 sigmoid(G norm(x) + b) ⊙ attend(q, k, v)]        q, k, v = Wqkv norm(x)
    x ← y + Wo' [act(u) ⊙ v'],  (u, v') = Wi norm(y)

and after block b of `mix_every` layers (the last may have fewer) h_b is this x, and

    x ← Σ_{j ≤ b} w_bj h_j

What the head reads is norm(x). q and k of each head are divided by their root mean square and then turned by
their place (`qk_norm`); the gate has one number a head (`gate`) and begins at 1; w begins at (0, …, 0, 1)
(`layer_weights`). So a new network says what it would say without gate and layer weights. Without all three it is
ModernBERT with global attention alone, under the same names: layer 0 has no norm before its attention, norms have no
bias, and the table of tokens alone has one, where it answers.

Attention goes through transformers' interface, with whatever a batch says about itself. Nothing here depends on
numbers that are on the device, so a pass can be recorded and compiled. Refuses to know losses and layouts.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import BaseModelOutput, MaskedLMOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import capture_outputs

from besag.family.configuration import BesagConfig

CUT = 2.0  # standard deviations beyond which no initial weight lies

Turns = tuple[Tensor, Tensor]  # cosine and sine of each place's angles, (N or 1, L, 1, 1, D/2) in float32


def linear(inputs: int, outputs: int, std: float, bias: bool = False) -> Any:
    """One that says with which deviation it begins: transformers asks each module for itself, not what holds it."""
    made: Any = nn.Linear(inputs, outputs, bias=bias)
    made.std = std
    return made


def smaller(config: BesagConfig) -> float:
    """Whatever adds to the residual stream 2n times begins with a √(2n)-th."""
    return float(config.initializer_range / (2 * config.num_hidden_layers) ** 0.5)


def norm(config: BesagConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.hidden_size, eps=config.norm_eps, bias=False)


def turns(config: BesagConfig, position: Tensor) -> Turns:
    """Of the numbers (N or 1, L) that places have: pair d of D/2 turns by position · θ^(−2d/D).

    Made anew in each pass, since a table would be rounded with the weights.
    """
    size = config.hidden_size // config.num_attention_heads
    pair = torch.arange(0, size, 2, device=position.device, dtype=torch.float32)
    angle = position[..., None].float() * config.rope_theta ** (-pair / size)  # (N or 1, L, D/2)
    angle = angle[:, :, None, None]
    return angle.cos(), angle.sin()


def turned(x: Tensor, by: Turns) -> Tensor:  # (N, L, 2, heads, D)
    """Number d and number d + D/2 are a pair. In float32 throughout, rounded once."""
    cos, sin = by
    one, other = x.chunk(2, dim=-1)
    return torch.cat((one * cos - other * sin, other * cos + one * sin), dim=-1).to(x.dtype)


def eager_attention_forward(  # transformers looks for this name, to know that attention can be replaced
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """softmax(c Q Kᵀ) V with its weights, for those who want to see them."""
    scores = query @ key.mT * scaling  # (N, heads, L, L)
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
    return (weights @ value).transpose(1, 2), weights


class Embeddings(nn.Module):
    def __init__(self, config: BesagConfig) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.norm = norm(config)

    def forward(self, input_ids: Tensor | None = None, inputs_embeds: Tensor | None = None) -> Tensor:  # (N, L, H)
        states: Tensor = self.norm(self.tok_embeddings(input_ids) if inputs_embeds is None else inputs_embeds)
        return states


class Attention(nn.Module):
    is_causal = False

    def __init__(self, config: BesagConfig) -> None:
        super().__init__()
        self.config: Any = config
        self.heads = config.num_attention_heads
        self.size = config.hidden_size // self.heads  # D
        self.Wqkv = linear(config.hidden_size, 3 * config.hidden_size, config.initializer_range)
        self.Wo = linear(config.hidden_size, config.hidden_size, smaller(config))
        self.gate = linear(config.hidden_size, self.heads, 0.0, bias=True) if config.gate else None

    def forward(
        self, x: Tensor, by: Turns, attention_mask: Tensor | None = None, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None]:  # (N, L, H)
        qkv = self.Wqkv(x).unflatten(-1, (3, self.heads, self.size))  # (N, L, 3, heads, D)
        qk = qkv[:, :, :2]
        if self.config.qk_norm:
            qk = F.rms_norm(qk, (self.size,), eps=self.config.norm_eps)
        q, k = turned(qk, by).unbind(2)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        parts = [part.transpose(1, 2) for part in (q, k, qkv[:, :, 2])]  # (N, heads, L, D)
        seen, weights = attend(self, *parts, attention_mask, dropout=0.0, scaling=self.size**-0.5, **kwargs)
        if self.gate is not None:
            seen = seen * (2 * self.gate(x).sigmoid())[..., None]  # (N, L, heads, D)
        return self.Wo(seen.flatten(-2)), weights


class GatedLayer(nn.Module):
    def __init__(self, config: BesagConfig) -> None:
        super().__init__()
        self.Wi = linear(config.hidden_size, 2 * config.intermediate_size, config.initializer_range)
        self.Wo = linear(config.intermediate_size, config.hidden_size, smaller(config))
        self.act = ACT2FN[config.hidden_activation]

    def forward(self, x: Tensor) -> Tensor:
        u, v = self.Wi(x).chunk(2, dim=-1)
        wide: Tensor = self.Wo(self.act(u) * v)
        return wide


class Layer(nn.Module):
    def __init__(self, config: BesagConfig, first: bool) -> None:
        super().__init__()
        self.attn_norm = nn.Identity() if first else norm(config)  # embeddings are normed already
        self.attn = Attention(config)
        self.mlp_norm = norm(config)
        self.mlp = GatedLayer(config)

    def forward(
        self, x: Tensor, attention_mask: Tensor | None = None, position_embeddings: Any = None, **kwargs: Any
    ) -> Tensor:  # (N, L, H)
        x = x + self.attn(self.attn_norm(x), position_embeddings, attention_mask, **kwargs)[0]
        after: Tensor = x + self.mlp(self.mlp_norm(x))
        return after


class LayerWeights(nn.Module):
    """Σ_j w_j h_j. A sum in place, in the order of layers: few copies, and the last state, the largest, comes last."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(count))

    def forward(self, states: list[Tensor]) -> Tensor:  # each (N, L, H)
        weights = self.weight.unbind()
        total = states[0] * weights[0]
        for state, weight in zip(states[1:], weights[1:], strict=True):
            total.addcmul_(state, weight)
        return total


class Head(nn.Module):
    def __init__(self, config: BesagConfig) -> None:
        super().__init__()
        self.dense = linear(config.hidden_size, config.hidden_size, smaller(config))
        self.act = ACT2FN[config.head_activation]
        self.norm = norm(config)

    def forward(self, x: Tensor) -> Tensor:
        states: Tensor = self.norm(self.act(self.dense(x)))
        return states


class BesagPreTrainedModel(PreTrainedModel):
    config_class = BesagConfig
    base_model_prefix = "model"
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _can_record_outputs = {"hidden_states": Layer, "attentions": Attention}  # noqa: RUF012

    @torch.no_grad()
    def _init_weights(self, module: Any) -> None:
        """Normal weights without tails; a gate begins at 1, a sum over layers with the last one alone."""
        if isinstance(module, nn.Linear | nn.Embedding):
            std = getattr(module, "std", self.config.initializer_range)
            if std > 0:
                init.trunc_normal_(module.weight, std=std, a=-CUT * std, b=CUT * std)
            else:
                init.zeros_(module.weight)
            bias: Any = getattr(module, "bias", None)
            if bias is not None:
                init.zeros_(bias)
        elif isinstance(module, LayerWeights):
            last = torch.zeros_like(module.weight)
            last[-1] = 1.0
            init.copy_(module.weight, last)
        else:
            super()._init_weights(module)


class BesagModel(BesagPreTrainedModel):
    """What reads the tokens: norm(x_n), (N, L, H)."""

    def __init__(self, config: BesagConfig) -> None:
        super().__init__(config)
        depth = config.num_hidden_layers
        blocks = -(-depth // config.mix_every) if config.layer_weights else 0
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList([Layer(config, first=index == 0) for index in range(depth)])
        self.mixes = nn.ModuleList([LayerWeights(block + 2) for block in range(blocks)])
        self.final_norm = norm(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings.tok_embeddings

    def set_input_embeddings(self, value: Any) -> None:
        self.embeddings.tok_embeddings = value

    @capture_outputs
    def forward(
        self,
        input_ids: Tensor | None = None,  # (N, L)
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **kwargs: Any,
    ) -> BaseModelOutput:
        x = self.embeddings(input_ids, inputs_embeds)  # (N, L, H)
        if position_ids is None:
            position_ids = torch.arange(x.shape[1], device=x.device)[None]
        config: Any = self.config
        by = turns(config, position_ids)
        mask = create_bidirectional_mask(config, x, attention_mask)
        states = [x]
        for done, layer in enumerate(self.layers, 1):
            x = layer(x, attention_mask=mask, position_embeddings=by, **kwargs)
            if config.layer_weights and (done % config.mix_every == 0 or done == len(self.layers)):
                states.append(x)
                x = self.mixes[len(states) - 2](states)
        return BaseModelOutput(last_hidden_state=self.final_norm(x))


class BesagForMaskedLM(BesagPreTrainedModel):
    """What stands at each place, as logits (N, L, V)."""

    _tied_weights_keys = {"decoder.weight": "model.embeddings.tok_embeddings.weight"}  # noqa: RUF012

    def __init__(self, config: BesagConfig) -> None:
        super().__init__(config)
        self.model = BesagModel(config)
        self.head = Head(config)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()

    def get_output_embeddings(self) -> nn.Module:
        return self.decoder

    def set_output_embeddings(self, new_embeddings: Any) -> None:
        self.decoder = new_embeddings

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> MaskedLMOutput:
        read = self.model(input_ids, attention_mask, position_ids, inputs_embeds, **kwargs)
        logits = self.decoder(self.head(read[0]))
        loss = None if labels is None else self.loss_function(logits, labels, vocab_size=self.config.vocab_size)
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=read.hidden_states, attentions=read.attentions)
