"""LLaDA2-MoE (inclusionAI, LLaDA2.0 and 2.1), read from and written in its published format.

As LLaDA-MoE (`llada_moe`), with one matrix for all queries, then keys, then values; with only the first half of each
head rotated (`partial_rotary_factor`); and with another choice of experts. In float32,

    s = σ(R z'),   t = s + b                                 b: a bias that takes part in the choice alone
    kept groups    = the `topk_group` of `n_group` groups of experts whose two largest t have the largest sum
    chosen experts = the `num_experts_per_tok` largest t within the kept groups
    x ← y + γ Σ_{e chosen} s_e f_e(z') / Σ_{e chosen} s_e + f_shared(z')          γ: `routed_scaling_factor`

The first `first_k_dense_replace` layers have one dense f. The model was trained block after block, aligned to the first
token: a token attends to its own block and those before. besag queries it in the same way (`besag_block_length`, 32
where a file does not give it); the module by itself attends to both sides, or by the mask that it is given.
"""

from typing import Any, ClassVar

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedConfig

from besag.family.llada_moe import (
    ExpertsModel,
    ExpertsModelLM,
    ExpertsPreTrainedModel,
    GatedLayer,
    attend,
    check_fixed,
    check_sizes,
    key_heads,
    of_experts,
    rotate,
)  # fmt: skip
from besag.family.network import Turns


@strict
class LLaDA2MoeConfig(PreTrainedConfig):
    model_type: ClassVar[str] = "llada2_moe"
    attribute_map: ClassVar[dict[str, str]] = {"besag_mask_token_id": "mask_token_id"}
    FIXED: ClassVar[dict[str, tuple[Any, ...]]] = {
        "rope_scaling": (None,), "norm_head": (False,), "use_sliding_window": (False,), "score_function": ("sigmoid",),
        "moe_router_enable_expert_bias": (True,), "norm_topk_prob": (True,),
    }  # fmt: skip

    vocab_size: int = 157_184
    hidden_size: int = 2048
    intermediate_size: int = 5120
    moe_intermediate_size: int = 512
    num_hidden_layers: int = 20
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 4
    head_dim: int | None = 128
    num_experts: int = 256
    num_experts_per_tok: int = 8
    num_shared_experts: int | None = 1
    n_group: int = 8
    topk_group: int = 4
    routed_scaling_factor: float | int = 2.5
    first_k_dense_replace: int = 1
    score_function: str = "sigmoid"
    moe_router_enable_expert_bias: bool = True
    norm_topk_prob: bool = True
    use_qk_norm: bool = True
    use_qkv_bias: bool = False
    use_bias: bool = False
    norm_head: bool = False
    use_sliding_window: bool = False
    hidden_act: str = "silu"
    max_position_embeddings: int = 32_768
    rope_theta: float | int = 600_000.0
    rope_scaling: dict[str, Any] | None = None
    partial_rotary_factor: float | int = 0.5
    rms_norm_eps: float = 1e-6
    initializer_range: float = 0.02
    tie_word_embeddings: bool = False
    pad_token_id: int | None = None
    mask_token_id: int | None = 156_895  # for a tokenizer that names none
    besag_block_length: int | None = 32

    def __post_init__(self, **kwargs: Any) -> None:
        if self.head_dim is None:
            self.head_dim = self.hidden_size // max(self.num_attention_heads, 1)
        super().__post_init__(**kwargs)

    def validate_architecture(self) -> None:
        check_sizes(self, self.head_dim or 0)
        check_fixed(self, self.FIXED)
        group = self.num_experts / max(self.n_group, 1)
        if group < 2 or group % 1:
            raise ValueError(
                f"n_group = {self.n_group} is invalid: num_experts = {self.num_experts} must make as many groups of 2 "
                f"or more"
            )
        if not 1 <= self.topk_group <= self.n_group or self.topk_group * group < self.num_experts_per_tok:
            raise ValueError(
                f"topk_group = {self.topk_group} of n_group = {self.n_group} groups is invalid: at most as many, with "
                f"num_experts_per_tok = {self.num_experts_per_tok} experts or more, are needed"
            )


class Attention(nn.Module):
    is_causal = False

    def __init__(self, config: LLaDA2MoeConfig) -> None:
        super().__init__()
        self.config: Any = config
        size: Any = config.head_dim
        keys = key_heads(config)
        self.parts = (config.num_attention_heads, keys, keys)
        self.size = size  # D
        self.query_key_value = nn.Linear(config.hidden_size, sum(self.parts) * size, bias=config.use_qkv_bias)
        self.dense = nn.Linear(config.num_attention_heads * size, config.hidden_size, bias=config.use_bias)
        self.query_layernorm = nn.RMSNorm(size, eps=config.rms_norm_eps) if config.use_qk_norm else nn.Identity()
        self.key_layernorm = nn.RMSNorm(size, eps=config.rms_norm_eps) if config.use_qk_norm else nn.Identity()

    def forward(
        self, x: Tensor, by: Turns, attention_mask: Tensor | None = None, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None]:  # (N, L, H)
        q, k, v = self.query_key_value(x).unflatten(-1, (-1, self.size)).split(self.parts, dim=2)
        q, k = rotate(self.query_layernorm(q), by), rotate(self.key_layernorm(k), by)
        seen, weights = attend(self, q, k, v, attention_mask, **kwargs)
        return self.dense(seen), weights


class Router(nn.Module):
    def __init__(self, config: LLaDA2MoeConfig) -> None:
        super().__init__()
        self.config: Any = config
        self.weight = nn.Parameter(torch.empty(config.num_experts, config.hidden_size))
        # A parameter and no buffer, so that a file without it is rejected. The choice has no gradient.
        self.expert_bias = nn.Parameter(torch.zeros(config.num_experts))

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:  # (T, H) -> (T, k) twice
        """Return the chosen experts of each token, and their weights in float32."""
        config = self.config
        scores = F.linear(rows.float(), self.weight.float()).sigmoid()
        groups = (scores + self.expert_bias).unflatten(-1, (config.n_group, -1))  # (T, groups, experts of one)
        kept = groups.topk(2, dim=-1).values.sum(-1).topk(config.topk_group, dim=-1).indices
        left_out = torch.ones_like(groups[..., 0], dtype=torch.bool).scatter(1, kept, False)
        chosen = groups.masked_fill(left_out[..., None], -torch.inf).flatten(1).topk(config.num_experts_per_tok).indices
        weight = scores.gather(1, chosen)
        if config.num_experts_per_tok > 1:
            weight = weight / (weight.sum(-1, keepdim=True) + 1e-20)
        return chosen, weight * config.routed_scaling_factor


class Experts(nn.Module):
    def __init__(self, config: LLaDA2MoeConfig) -> None:
        super().__init__()
        inner, shared = config.moe_intermediate_size, config.num_shared_experts
        self.gate = Router(config)
        self.experts = nn.ModuleList([GatedLayer(config, inner) for _ in range(config.num_experts)])
        self.shared_experts = GatedLayer(config, inner * shared) if shared else None

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2)  # (T, H)
        added = of_experts(self.experts, rows, *self.gate(rows)).view(x.shape)
        return added if self.shared_experts is None else added + self.shared_experts(x)


class Layer(nn.Module):
    def __init__(self, config: LLaDA2MoeConfig, index: int) -> None:
        super().__init__()
        dense = index < config.first_k_dense_replace
        self.attention = Attention(config)
        self.mlp = GatedLayer(config, config.intermediate_size) if dense else Experts(config)
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(
        self, x: Tensor, attention_mask: Tensor | None = None, position_embeddings: Any = None, **kwargs: Any
    ) -> Tensor:  # (N, L, H)
        x = x + self.attention(self.input_layernorm(x), position_embeddings, attention_mask, **kwargs)[0]
        after: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return after


class LLaDA2MoePreTrainedModel(ExpertsPreTrainedModel):
    config_class = LLaDA2MoeConfig
    _can_record_outputs = {"hidden_states": Layer, "attentions": Attention}  # noqa: RUF012


class LLaDA2MoeModel(ExpertsModel, LLaDA2MoePreTrainedModel):
    """The encoder: norm(x) of the last layer, (N, L, H)."""

    embeddings = "word_embeddings"
    layer = Layer


class LLaDA2MoeModelLM(ExpertsModelLM, LLaDA2MoePreTrainedModel):
    """The masked language model: logits (N, L, V)."""

    body = LLaDA2MoeModel
