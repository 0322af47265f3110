"""NeoBERT (chandar-lab/NeoBERT), read from and written in its published format.

With x = the embedding of each token (H,), every layer computes

    y = x + Wo attend(q, k, v)                    q, k, v of head h = rows 3hD … 3(h+1)D of Wqkv norm(x)
    x ← y + W3 [silu(u) ⊙ w],  (u, w) = W12 norm(y)

with norm(x) = g ⊙ x / √(mean x² + ε). Numbers 2d and 2d + 1 of q and k are one pair, rotated by position · θ^(−2d/D).
The head is affine in norm(x) of the last layer; its matrix is not that of the embeddings. The published configuration
counts `intermediate_size` before it is reduced to two thirds, rounded up to a multiple of 8. Annotations are types and
not strings, because `strict` checks every setting against its own.
"""

from typing import Any, ClassVar

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import BaseModelOutput, MaskedLMOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import capture_outputs

from besag.family.network import Turns, eager_attention_forward, turns

# Settings of the released model; with others the published code computes differently.
PUBLISHED: dict[str, Any] = {"rms_norm": True, "rope": True, "ngpt": False}


@strict
class NeoBERTConfig(PreTrainedConfig):
    model_type: ClassVar[str] = "neobert"
    attribute_map: ClassVar[dict[str, str]] = {"max_position_embeddings": "max_length"}

    vocab_size: int = 30_522
    hidden_size: int = 768
    num_hidden_layers: int = 28
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_length: int = 4096
    norm_eps: float = 1e-5
    rope_theta: float = 10_000.0
    hidden_act: str = "SwiGLU"
    rms_norm: bool = True
    rope: bool = True
    ngpt: bool = False
    embedding_init_range: float = 0.02
    decoder_init_range: float = 0.02
    tie_word_embeddings: bool = False
    pad_token_id: int | None = 0

    @property
    def inner_size(self) -> int:
        """Return the width of the gated layers: two thirds of `intermediate_size`, rounded up to a multiple of 8."""
        return -(-(2 * self.intermediate_size // 3) // 8) * 8

    def validate_architecture(self) -> None:
        for name in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "max_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)} is invalid: 1 or more is needed")
        if self.intermediate_size < 2:
            raise ValueError(f"intermediate_size = {self.intermediate_size} is invalid: 2 or more is needed")
        if self.hidden_size % (2 * self.num_attention_heads):
            raise ValueError(
                f"hidden_size = {self.hidden_size} does not give {self.num_attention_heads} heads an even number each: "
                f"a multiple of {2 * self.num_attention_heads} is needed"
            )
        if self.hidden_act.lower() != "swiglu":
            raise ValueError(f"hidden_act = {self.hidden_act!r} is not supported: only 'SwiGLU' is")
        for name, value in PUBLISHED.items():
            if getattr(self, name) is not value:
                raise ValueError(f"{name} = {getattr(self, name)} is not supported: only {value} is")


def rotate(x: Tensor, by: Turns) -> Tensor:  # (N, L, heads, 2, D)
    """Return x with its adjacent pairs rotated, in float32, rounded once."""
    cos, sin = by
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2).to(x.dtype)


class GatedLayer(nn.Module):
    def __init__(self, config: NeoBERTConfig) -> None:
        super().__init__()
        inner = config.inner_size
        self.w12 = nn.Linear(config.hidden_size, 2 * inner, bias=False)
        self.w3 = nn.Linear(inner, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        u, w = self.w12(x).chunk(2, dim=-1)
        wide: Tensor = self.w3(F.silu(u) * w)
        return wide


class Attention(nn.Module):
    """The product of attention weights and values. Its matrices are the layer's, as in the published files."""

    is_causal = False

    def __init__(self, config: NeoBERTConfig) -> None:
        super().__init__()
        self.config: Any = config

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, attention_mask: Tensor | None, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None]:  # (N, L, heads, D)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        parts = [part.transpose(1, 2) for part in (q, k, v)]  # (N, heads, L, D)
        found: tuple[Tensor, Tensor | None]
        found = attend(self, *parts, attention_mask, dropout=0.0, scaling=q.shape[-1] ** -0.5, **kwargs)
        return found


class Layer(nn.Module):
    def __init__(self, config: NeoBERTConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.heads = config.num_attention_heads
        self.size = config.hidden_size // self.heads  # D
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size, bias=False)
        self.wo = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.ffn = GatedLayer(config)
        self.attention_norm = nn.RMSNorm(config.hidden_size, eps=config.norm_eps)
        self.ffn_norm = nn.RMSNorm(config.hidden_size, eps=config.norm_eps)

    def forward(
        self, x: Tensor, attention_mask: Tensor | None = None, position_embeddings: Any = None, **kwargs: Any
    ) -> Tensor:  # (N, L, H)
        qkv = self.qkv(self.attention_norm(x)).unflatten(-1, (self.heads, 3, self.size))  # (N, L, heads, 3, D)
        q, k = rotate(qkv[:, :, :, :2], position_embeddings).unbind(3)
        x = x + self.wo(self.attention(q, k, qkv[:, :, :, 2], attention_mask, **kwargs)[0].flatten(-2))
        after: Tensor = x + self.ffn(self.ffn_norm(x))
        return after


class NeoBERTPreTrainedModel(PreTrainedModel):
    config_class = NeoBERTConfig
    base_model_prefix = "model"
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _can_record_outputs = {"hidden_states": Layer, "attentions": Attention}  # noqa: RUF012

    @torch.no_grad()
    def _init_weights(self, module: Any) -> None:
        """Initialise a module with the uniform distributions that the configuration names."""
        config: Any = self.config
        if isinstance(module, nn.Linear):
            init.uniform_(module.weight, -config.decoder_init_range, config.decoder_init_range)
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.uniform_(module.weight, -config.embedding_init_range, config.embedding_init_range)
        else:
            super()._init_weights(module)


class NeoBERT(NeoBERTPreTrainedModel):
    """The encoder: norm(x) of the last layer, (N, L, H)."""

    def __init__(self, config: NeoBERTConfig) -> None:
        super().__init__(config)
        self.encoder = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        self.transformer_encoder = nn.ModuleList([Layer(config) for _ in range(config.num_hidden_layers)])
        self.layer_norm = nn.RMSNorm(config.hidden_size, eps=config.norm_eps)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder

    def set_input_embeddings(self, value: Any) -> None:
        self.encoder = value

    @capture_outputs
    def forward(
        self,
        input_ids: Tensor | None = None,  # (N, L)
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **kwargs: Any,
    ) -> BaseModelOutput:
        x = self.encoder(input_ids) if inputs_embeds is None else inputs_embeds  # (N, L, H)
        if position_ids is None:
            position_ids = torch.arange(x.shape[1], device=x.device)[None]
        config: Any = self.config
        by = turns(config, position_ids)
        mask = create_bidirectional_mask(config, x, attention_mask)
        for layer in self.transformer_encoder:
            x = layer(x, attention_mask=mask, position_embeddings=by, **kwargs)
        return BaseModelOutput(last_hidden_state=self.layer_norm(x))


class NeoBERTLMHead(NeoBERTPreTrainedModel):
    """The masked language model: logits (N, L, V)."""

    def __init__(self, config: NeoBERTConfig) -> None:
        super().__init__(config)
        self.model = NeoBERT(config)
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
        logits = self.decoder(read[0])
        loss = None if labels is None else self.loss_function(logits, labels, vocab_size=self.config.vocab_size)
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=read.hidden_states, attentions=read.attentions)
