"""LLaDA-MoE (inclusionAI), read from and written in its published format: a masked model with a choice of experts.

With norm(x) = g ⊙ x / √(mean x² + ε) and x = the embedding of each token (H,), every layer computes

    y = x + Wo attend(q, k, v)                 q = turn(norm(Wq z)), k = turn(norm(Wk z)), v = Wv z,  z = norm(x)
    x ← y + Σ_{e ∈ top k of w} w_e f_e(z'),    w = softmax(R z') + b in float32,  z' = norm(y),
                                               f_e(z) = Wd (silu(Wg z) ⊙ Wu z)

where q and k are normed head by head and every token attends to both sides. The weights w_e are not renormalised over
the chosen experts, and a bias b (absent from most files) is part of them. A layer may have one dense f instead
(`moe_layer_freq` 0) or another f, shared by all tokens, in addition to the experts. The head is a matrix on norm(x).

The parts here also serve `llada2_moe`. Annotations are types and not strings, because `strict` checks every setting
against its own.
"""

from typing import Any, ClassVar

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import BaseModelOutput, MaskedLMOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import capture_outputs

from besag.family.network import Turns, eager_attention_forward, turned

SIZES = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "num_experts",
    "num_experts_per_tok", "max_position_embeddings",
)  # fmt: skip


def check_sizes(config: Any, head: int) -> None:
    """Raise ValueError, quoting the value, for sizes of which no network can be built."""
    for name in SIZES:
        value = getattr(config, name)
        if value is not None and value < 1:
            raise ValueError(f"{name} = {value} is invalid: 1 or more is needed")
    if config.num_attention_heads % key_heads(config):
        raise ValueError(
            f"num_attention_heads = {config.num_attention_heads} is not a multiple of num_key_value_heads = "
            f"{config.num_key_value_heads}"
        )
    if config.num_experts_per_tok > config.num_experts:
        raise ValueError(
            f"num_experts_per_tok = {config.num_experts_per_tok} is more than num_experts = {config.num_experts}"
        )
    rotated = int(head * config.partial_rotary_factor)
    if not 0 < rotated <= head or rotated % 2:
        raise ValueError(
            f"partial_rotary_factor = {config.partial_rotary_factor} of heads of {head} numbers is invalid: an even "
            f"number of them, at most {head}, is needed"
        )


def key_heads(config: Any) -> int:
    """Return the number of keys and values: as many as heads where it is not set."""
    return int(config.num_key_value_heads or config.num_attention_heads)


def check_fixed(config: Any, fixed: dict[str, tuple[Any, ...]]) -> None:
    """Raise ValueError, quoting the value, for settings that are not among those computed here."""
    for name, values in fixed.items():
        if getattr(config, name) not in values:
            known = " or ".join(map(repr, values))
            raise ValueError(f"{name} = {getattr(config, name)!r} is not supported: only {known} is")


@strict
class LLaDAMoEConfig(PreTrainedConfig):
    model_type: ClassVar[str] = "llada_moe"
    attribute_map: ClassVar[dict[str, str]] = {
        "intermediate_size": "expert_intermediate_size", "besag_mask_token_id": "mask_token_id",
    }  # fmt: skip
    FIXED: ClassVar[dict[str, tuple[Any, ...]]] = {
        "clip_qkv": (None,), "rope_scaling": (None,), "norm_topk_prob": (None, False),
        "moe_router_score_function": (None, "softmax"), "routed_scaling_factor": (1,),
    }  # fmt: skip

    vocab_size: int = 157_184
    hidden_size: int = 2048
    dense_intermediate_size: int = 8192
    expert_intermediate_size: int = 1024
    shared_expert_intermediate_size: int | None = None
    num_hidden_layers: int = 16
    num_attention_heads: int = 16
    num_key_value_heads: int | None = None  # as many as heads
    num_experts: int = 64
    num_experts_per_tok: int = 8
    moe_layer_freq: list[int] | None = None  # of each layer: 0 is dense; every layer has experts where it is not set
    moe_router_enable_expert_bias: bool | None = False
    moe_router_score_function: str | None = "softmax"
    norm_topk_prob: bool | None = None
    routed_scaling_factor: float | int | None = 1
    qk_layernorm: bool | None = True
    attention_bias: bool = False
    clip_qkv: float | int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 8192
    rope_theta: float | int = 50_000.0
    rope_scaling: dict[str, Any] | None = None
    partial_rotary_factor: float | int = 1
    rms_norm_eps: float = 1e-5
    initializer_range: float = 0.02
    tie_word_embeddings: bool = False
    pad_token_id: int | None = None
    mask_token_id: int | None = 156_895  # for a tokenizer that names none

    def validate_architecture(self) -> None:
        check_sizes(self, self.head_dim)
        check_fixed(self, self.FIXED)
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size = {self.hidden_size} is not a multiple of num_attention_heads = "
                f"{self.num_attention_heads}"
            )
        if self.moe_layer_freq is not None and len(self.moe_layer_freq) != self.num_hidden_layers:
            raise ValueError(
                f"moe_layer_freq = {self.moe_layer_freq} is invalid: {self.num_hidden_layers} numbers are needed, one "
                f"a layer"
            )

    @property
    def head_dim(self) -> int:
        return self.hidden_size // max(self.num_attention_heads, 1)


def turns(config: Any, position: Tensor) -> Turns:
    """Return cosine and sine of the angles of the rotated numbers of a head, at positions (N or 1, L)."""
    size = int(config.head_dim * config.partial_rotary_factor)
    pair = torch.arange(0, size, 2, device=position.device, dtype=torch.float32)
    angle = position[..., None].float() * config.rope_theta ** (-pair / size)  # (N or 1, L, size / 2)
    angle = angle[:, :, None]
    return angle.cos(), angle.sin()


def rotate(x: Tensor, by: Turns) -> Tensor:  # (N, L, heads, D)
    """Return x with the first numbers of each head rotated, and the others as they are."""
    size = 2 * by[0].shape[-1]
    return torch.cat((turned(x[..., :size], by), x[..., size:]), dim=-1)


def attend(
    module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, Tensor | None]:  # (N, L, heads or fewer, D) -> (N, L, H)
    """Return attention over the heads, of which several may share a key and a value."""
    config: Any = module.config
    shared = q.shape[2] // k.shape[2]
    q, k, v = (part.transpose(1, 2) for part in (q, k, v))  # (N, heads, L, D)
    if shared > 1:
        k, v = k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1)
    function = ALL_ATTENTION_FUNCTIONS.get_interface(config._attn_implementation, eager_attention_forward)
    seen, weights = function(module, q, k, v, mask, dropout=0.0, scaling=q.shape[-1] ** -0.5, **kwargs)
    return seen.flatten(-2), weights


class GatedLayer(nn.Module):
    def __init__(self, config: Any, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, inner, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, inner, bias=False)
        self.down_proj = nn.Linear(inner, config.hidden_size, bias=False)
        self.act = ACT2FN[config.hidden_act]

    def forward(self, x: Tensor) -> Tensor:
        wide: Tensor = self.down_proj(self.act(self.gate_proj(x)) * self.up_proj(x))
        return wide


def of_experts(experts: nn.ModuleList, x: Tensor, chosen: Tensor, weight: Tensor) -> Tensor:  # (T, H), (T, k) twice
    """Return Σ w_e f_e(x) over the chosen experts of each token, every expert run once on all tokens that chose it."""
    total = torch.zeros_like(x)
    for number, expert in enumerate(experts):
        token, rank = torch.where(chosen == number)
        if len(token):
            total = total.index_add(0, token, (expert(x[token]) * weight[token, rank, None]).to(x.dtype))
    return total


class Attention(nn.Module):
    is_causal = False

    def __init__(self, config: LLaDAMoEConfig) -> None:
        super().__init__()
        self.config: Any = config
        width, size, bias = config.hidden_size, config.head_dim, config.attention_bias
        keys = key_heads(config)
        self.size = size  # D
        self.q_proj = nn.Linear(width, config.num_attention_heads * size, bias=bias)
        self.k_proj = nn.Linear(width, keys * size, bias=bias)
        self.v_proj = nn.Linear(width, keys * size, bias=bias)
        self.o_proj = nn.Linear(width, width, bias=bias)
        self.q_norm = nn.RMSNorm(size, eps=config.rms_norm_eps) if config.qk_layernorm else nn.Identity()
        self.k_norm = nn.RMSNorm(size, eps=config.rms_norm_eps) if config.qk_layernorm else nn.Identity()

    def forward(
        self, x: Tensor, by: Turns, attention_mask: Tensor | None = None, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None]:  # (N, L, H)
        q, k, v = (part(x).unflatten(-1, (-1, self.size)) for part in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotate(self.q_norm(q), by), rotate(self.k_norm(k), by)
        seen, weights = attend(self, q, k, v, attention_mask, **kwargs)
        return self.o_proj(seen), weights


class Experts(nn.Module):
    def __init__(self, config: LLaDAMoEConfig) -> None:
        super().__init__()
        count, inner = config.num_experts, config.expert_intermediate_size
        self.chosen = config.num_experts_per_tok
        self.gate = nn.Linear(config.hidden_size, count, bias=False)
        self.experts = nn.ModuleList([GatedLayer(config, inner) for _ in range(count)])
        # A parameter and no buffer, so that a file without it is rejected.
        self.expert_bias = nn.Parameter(torch.zeros(count)) if config.moe_router_enable_expert_bias else None

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2)  # (T, H)
        weight = self.gate(rows).softmax(dim=-1, dtype=torch.float32)
        if self.expert_bias is not None:
            weight = weight + self.expert_bias
        weight, chosen = weight.topk(self.chosen, dim=-1)
        return of_experts(self.experts, rows, chosen, weight.to(rows.dtype)).view(x.shape)


class Layer(nn.Module):
    def __init__(self, config: LLaDAMoEConfig, index: int) -> None:
        super().__init__()
        dense = config.moe_layer_freq is not None and config.moe_layer_freq[index] == 0
        shared = None if dense else config.shared_expert_intermediate_size
        self.self_attn = Attention(config)
        self.mlp = GatedLayer(config, config.dense_intermediate_size) if dense else Experts(config)
        self.shared_expert = None if shared is None else GatedLayer(config, shared)
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(
        self, x: Tensor, attention_mask: Tensor | None = None, position_embeddings: Any = None, **kwargs: Any
    ) -> Tensor:  # (N, L, H)
        x = x + self.self_attn(self.input_layernorm(x), position_embeddings, attention_mask, **kwargs)[0]
        normal = self.post_attention_layernorm(x)
        added: Tensor = self.mlp(normal)
        return x + (added if self.shared_expert is None else added + self.shared_expert(normal))


class ExpertsPreTrainedModel(PreTrainedModel):
    base_model_prefix = "model"
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _keep_in_fp32_modules_strict = ["expert_bias"]  # noqa: RUF012 - it is compared with scores in float32

    @classmethod
    def _can_set_attn_implementation(cls) -> bool:
        """Return True: transformers looks for the call in a class's file, and `llada2_moe` calls `attend` here."""
        return True

    @torch.no_grad()
    def _init_weights(self, module: Any) -> None:
        """Initialise matrices with normal weights and biases of experts with 0."""
        config: Any = self.config
        super()._init_weights(module)
        bias: Any = getattr(module, "expert_bias", None)
        weight: Any = getattr(module, "weight", None)
        if bias is not None:
            init.zeros_(bias)
            if weight is not None:  # a router that is one part
                init.normal_(weight, std=config.initializer_range)


class ExpertsModel(ExpertsPreTrainedModel):
    embeddings: ClassVar[str] = "embed_tokens"  # what the published files call the table
    layer: ClassVar[Any] = Layer

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.add_module(self.embeddings, nn.Embedding(config.vocab_size, config.hidden_size))
        self.layers = nn.ModuleList([self.layer(config, index) for index in range(config.num_hidden_layers)])
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        table: nn.Module = self.get_submodule(self.embeddings)
        return table

    def set_input_embeddings(self, value: Any) -> None:
        setattr(self, self.embeddings, value)

    @capture_outputs
    def forward(
        self,
        input_ids: Tensor | None = None,  # (N, L)
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **kwargs: Any,
    ) -> BaseModelOutput:
        x = self.get_input_embeddings()(input_ids) if inputs_embeds is None else inputs_embeds  # (N, L, H)
        if position_ids is None:
            position_ids = torch.arange(x.shape[1], device=x.device)[None]
        config: Any = self.config
        by = turns(config, position_ids)
        mask = create_bidirectional_mask(config, x, attention_mask)
        for layer in self.layers:
            x = layer(x, attention_mask=mask, position_embeddings=by, **kwargs)
        return BaseModelOutput(last_hidden_state=self.norm(x))


class ExpertsModelLM(ExpertsPreTrainedModel):
    body: ClassVar[Any] = None

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.model = self.body(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def get_output_embeddings(self) -> nn.Module:
        head: nn.Module = self.lm_head
        return head

    def set_output_embeddings(self, new_embeddings: Any) -> None:
        self.lm_head = new_embeddings

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
        logits = self.lm_head(read[0])
        loss = None if labels is None else self.loss_function(logits, labels, vocab_size=self.config.vocab_size)
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=read.hidden_states, attentions=read.attentions)


class LLaDAMoEPreTrainedModel(ExpertsPreTrainedModel):
    config_class = LLaDAMoEConfig
    _can_record_outputs = {"hidden_states": Layer, "attentions": Attention}  # noqa: RUF012


class LLaDAMoEModel(ExpertsModel, LLaDAMoEPreTrainedModel):
    """The encoder: norm(x) of the last layer, (N, L, H)."""


class LLaDAMoEModelLM(ExpertsModelLM, LLaDAMoEPreTrainedModel):
    """The masked language model: logits (N, L, V)."""

    body = LLaDAMoEModel
