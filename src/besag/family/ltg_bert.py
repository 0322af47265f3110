"""LTG-BERT (ltgoslo/ltg-bert), read from and written in its published format.

With norm(x) = (x − mean x) / √(var x + ε), without weights, and x = norm(embedding of the token), every layer computes

    y = x + LN(Wo attend(q, k, v) + bo)           (q, k) = Wqk norm(x) + bqk,  v = Wv norm(x) + bv
    x ← y + W4 norm(u ⊙ gelu(w)),                 (u, w) = W1 norm(y)

where LN is a layer norm with weights. Attention adds to q_i · k_j two products with the relative position i − j, which
is one of 2B − 1 learned rows r (`position_bucket_size` B):

    s_ij = (q_i · k_j + q_i · κ_b + π_b · k_j) / √(3D),   (π_b, κ_b) of head h = rows 2hD … 2(h+1)D of Wqk LN(r_b) + bqk

The row is b = B − 1 + i − j for |i − j| ≤ B/2; beyond that |i − j| is counted in logarithmic steps, up to B − 1 at the
longest distance. The head is E norm(gelu(W1 norm(x) + b1)) + b5 with the matrix E of the embeddings. Annotations are
types and not strings, because `strict` checks every setting against its own.
"""

from math import log, sqrt
from typing import Any, ClassVar

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.conversion_mapping import register_checkpoint_conversion_mapping
from transformers.core_model_loading import WeightRenaming
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import BaseModelOutput, MaskedLMOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import capture_outputs

from besag.family.network import CUT, eager_attention_forward

SIZES = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
)  # fmt: skip


@strict
class LtgBertConfig(PreTrainedConfig):
    model_type: ClassVar[str] = "ltg_bert"

    vocab_size: int = 16_384
    hidden_size: int = 768
    intermediate_size: int = 2048
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    max_position_embeddings: int = 512
    position_bucket_size: int = 32
    layer_norm_eps: float = 1e-7
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    initializer_range: float | None = None  # √(2 / 5H) where it is not set
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 4

    def validate_architecture(self) -> None:
        for name in SIZES:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)} is invalid: 1 or more is needed")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size = {self.hidden_size} is not a multiple of num_attention_heads = "
                f"{self.num_attention_heads}"
            )
        least = self.position_bucket_size // 2 + 2
        if self.position_bucket_size < 2 or self.max_position_embeddings < least:
            raise ValueError(
                f"position_bucket_size = {self.position_bucket_size} with max_position_embeddings = "
                f"{self.max_position_embeddings} is invalid: 2 or more with at least {least} positions is needed"
            )


def linear(config: LtgBertConfig, inputs: int, outputs: int, bias: bool = True, scale: float = 1.0) -> Any:
    """Return a layer that carries the deviation of its initial weights."""
    made: Any = nn.Linear(inputs, outputs, bias=bias)
    made.std = scale * deviation(config)
    return made


def deviation(config: LtgBertConfig) -> float:
    return sqrt(0.4 / config.hidden_size) if config.initializer_range is None else config.initializer_range


def norm(config: LtgBertConfig, width: int, weights: bool = False) -> nn.LayerNorm:
    return nn.LayerNorm(width, eps=config.layer_norm_eps, elementwise_affine=weights)


def buckets(config: LtgBertConfig) -> Tensor:
    """Return the bucket of every distance 0 … max_position_embeddings − 1, on the CPU."""
    middle, longest = config.position_bucket_size // 2, config.max_position_embeddings - 1
    distance = torch.arange(longest + 1, device="cpu")
    beyond = torch.log(distance.clamp(min=middle) / middle) / log(longest / middle) * (middle - 1)
    return torch.where(distance <= middle, distance, beyond.ceil().long() + middle)


class GeGLU(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        u, w = x.chunk(2, dim=-1)
        gated: Tensor = u * F.gelu(w, approximate="tanh")
        return gated


class Embeddings(nn.Module):
    """Token embeddings, and the rows of relative positions, both normed."""

    def __init__(self, config: LtgBertConfig) -> None:
        super().__init__()
        self.word_embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.word_layer_norm = norm(config, config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.relative_embedding = nn.Parameter(torch.empty(2 * config.position_bucket_size - 1, config.hidden_size))
        self.relative_layer_norm = norm(config, config.hidden_size, weights=True)
        self.register_buffer("bucket", buckets(config), persistent=False)

    def forward(self, input_ids: Tensor | None, inputs_embeds: Tensor | None) -> Tensor:  # (N, L, H)
        embedded = self.word_embedding(input_ids) if inputs_embeds is None else inputs_embeds
        states: Tensor = self.dropout(self.word_layer_norm(embedded))
        return states

    def relative(self, position: Tensor) -> tuple[Tensor, Tensor]:  # (N or 1, L) -> (2B − 1, H), (N or 1, 1, L, L)
        """Return the normed rows of relative positions, and the row of every pair i, j."""
        ahead = position[:, :, None] - position[:, None, :]
        table: Any = self.bucket
        bucket = table[ahead.abs().clamp(max=len(table) - 1)] * ahead.sign()
        rows: Tensor = self.dropout(self.relative_layer_norm(self.relative_embedding))
        return rows, (bucket + len(rows) // 2)[:, None]


class Attention(nn.Module):
    is_causal = False

    def __init__(self, config: LtgBertConfig) -> None:
        super().__init__()
        self.config: Any = config
        self.heads = config.num_attention_heads
        self.size = config.hidden_size // self.heads  # D
        width = config.hidden_size
        self.in_proj_qk = linear(config, width, 2 * width)
        self.in_proj_v = linear(config, width, width)
        self.out_proj = linear(config, width, width)
        self.pre_layer_norm = norm(config, width)
        self.post_layer_norm = norm(config, width, weights=True)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def split(self, x: Tensor) -> Tensor:  # (N, L, H) -> (N, heads, L, D)
        parts: Tensor = x.unflatten(-1, (self.heads, self.size)).transpose(1, 2)
        return parts

    def of_positions(self, rows: Tensor) -> tuple[Tensor, Tensor]:  # (2B − 1, H) -> two of (heads, 2B − 1, D)
        """Return what the rows of relative positions are as queries and as keys."""
        query, key = self.in_proj_qk(rows).unflatten(-1, (self.heads, 2, self.size)).permute(2, 1, 0, 3)
        return query, key

    def bias(self, q: Tensor, k: Tensor, relative: tuple[Tensor, Tensor]) -> Tensor:  # (N, heads, L, L)
        """Return the two products with relative positions, unscaled."""
        rows, index = relative
        query, key = self.of_positions(rows)
        index = index.expand(*q.shape[:2], -1, -1)
        of_keys = (q @ key.mT).gather(3, index)
        of_queries = (k @ query.mT).gather(3, index.mT)  # for k_j, the row of i − j at i
        return of_keys + of_queries.mT

    def weighted(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, relative: tuple[Tensor, Tensor], **kwargs: Any
    ) -> tuple[Tensor, Tensor | None]:  # (N, L, H)
        scale = (3 * self.size) ** -0.5
        bias = self.bias(q, k, relative) * scale
        if mask is not None:
            least = torch.finfo(bias.dtype).min
            bias = bias.masked_fill(~mask, least) if mask.dtype == torch.bool else bias + mask
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        dropout = self.config.attention_probs_dropout_prob if self.training else 0.0
        seen, weights = attend(self, q, k, v, bias, dropout=dropout, scaling=scale, **kwargs)
        return seen.flatten(-2), weights

    def forward(
        self, x: Tensor, relative: Any, attention_mask: Tensor | None = None, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None]:
        x = self.pre_layer_norm(x)
        q, k = map(self.split, self.in_proj_qk(x).chunk(2, dim=-1))
        seen, weights = self.weighted(q, k, self.split(self.in_proj_v(x)), attention_mask, relative, **kwargs)
        return self.dropout(self.post_layer_norm(self.out_proj(seen))), weights


class GatedLayer(nn.Module):
    def __init__(self, config: LtgBertConfig, number: int) -> None:
        super().__init__()
        scale = (2 * number) ** -0.5
        width, inner = config.hidden_size, config.intermediate_size
        self.mlp = nn.Sequential(
            norm(config, width),
            linear(config, width, 2 * inner, bias=False, scale=scale),
            GeGLU(),
            norm(config, inner),
            linear(config, inner, width, bias=False, scale=scale),
            nn.Dropout(config.hidden_dropout_prob),
        )

    def forward(self, x: Tensor) -> Tensor:
        wide: Tensor = self.mlp(x)
        return wide


class Layer(nn.Module):
    def __init__(self, config: LtgBertConfig, number: int) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.mlp = GatedLayer(config, number)

    def forward(self, x: Tensor, relative: Any, attention_mask: Tensor | None = None, **kwargs: Any) -> Tensor:
        x = x + self.attention(x, relative, attention_mask, **kwargs)[0]
        after: Tensor = x + self.mlp(x)
        return after


class Layers(nn.Module):
    def __init__(self, config: LtgBertConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(config, number) for number in range(1, config.num_hidden_layers + 1)])

    def forward(self, x: Tensor, relative: Any, attention_mask: Tensor | None = None, **kwargs: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, relative, attention_mask, **kwargs)
        return x


class Head(nn.Module):
    def __init__(self, config: LtgBertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.nonlinearity = nn.Sequential(
            norm(config, width),
            linear(config, width, width),
            nn.GELU(),
            norm(config, width),
            nn.Dropout(config.hidden_dropout_prob),
            linear(config, width, config.vocab_size),
        )

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.nonlinearity(x)
        return logits


class LtgBertPreTrainedModel(PreTrainedModel):
    config_class = LtgBertConfig
    base_model_prefix = "model"
    _supports_sdpa = True
    _can_record_outputs = {"hidden_states": Layer, "attentions": Attention}  # noqa: RUF012
    _keys_to_ignore_on_load_unexpected = [r"position_indices$"]  # noqa: RUF012 - made from the configuration here

    @torch.no_grad()
    def _init_weights(self, module: Any) -> None:
        """Initialise matrices with normal weights without tails, and the table of buckets."""
        config: Any = self.config
        part: Any = module  # of a type that isinstance does not narrow
        std = getattr(module, "std", deviation(config))
        if isinstance(module, nn.Linear | nn.Embedding):
            init.trunc_normal_(module.weight, std=std, a=-CUT * std, b=CUT * std)
            if getattr(part, "bias", None) is not None:
                init.zeros_(part.bias)
        elif isinstance(module, Embeddings):
            init.trunc_normal_(module.relative_embedding, std=std, a=-CUT * std, b=CUT * std)
            init.copy_(part.bucket, buckets(config))
        elif not isinstance(module, nn.LayerNorm) or module.elementwise_affine:
            super()._init_weights(module)


class LtgBertModel(LtgBertPreTrainedModel):
    """The encoder: x after the last layer, (N, L, H)."""

    layers: ClassVar[Any] = Layers

    def __init__(self, config: LtgBertConfig) -> None:
        super().__init__(config)
        self.embedding = Embeddings(config)
        self.transformer = self.layers(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding.word_embedding

    def set_input_embeddings(self, value: Any) -> None:
        self.embedding.word_embedding = value

    @capture_outputs
    def forward(
        self,
        input_ids: Tensor | None = None,  # (N, L)
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **kwargs: Any,
    ) -> BaseModelOutput:
        x = self.embedding(input_ids, inputs_embeds)
        if position_ids is None:
            position_ids = torch.arange(x.shape[1], device=x.device)[None]
        config: Any = self.config
        mask = create_bidirectional_mask(config, x, attention_mask)
        states = self.transformer(x, self.embedding.relative(position_ids), mask, **kwargs)
        return BaseModelOutput(last_hidden_state=states)


class LtgBertForMaskedLM(LtgBertPreTrainedModel):
    """The masked language model: logits (N, L, V)."""

    _tied_weights_keys = {  # noqa: RUF012
        "classifier.nonlinearity.5.weight": "model.embedding.word_embedding.weight"
    }

    body: ClassVar[Any] = LtgBertModel

    def __init__(self, config: LtgBertConfig) -> None:
        super().__init__(config)
        self.model = self.body(config)
        self.classifier = Head(config)
        self.post_init()

    def get_output_embeddings(self) -> nn.Module:
        return self.classifier.nonlinearity[5]

    def set_output_embeddings(self, new_embeddings: Any) -> None:
        self.classifier.nonlinearity[5] = new_embeddings

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
        logits = self.classifier(read[0])
        loss = None if labels is None else self.loss_function(logits, labels, vocab_size=self.config.vocab_size)
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=read.hidden_states, attentions=read.attentions)


def register_names(name: str) -> None:
    """Register the published names of a class: the encoder's weights lie at the top, without `model.` before them."""
    renamings: list[Any] = [WeightRenaming(f"^{part}.", f"^model.{part}.") for part in ("embedding", "transformer")]
    register_checkpoint_conversion_mapping(name, renamings, overwrite=True)


register_names("LtgBertForMaskedLM")
