"""GPT-BERT (ltgoslo/gpt-bert), read from and written in its published format.

As LTG-BERT (`ltg_bert`), with the same embeddings, attention scores, gated layers and head, except for two things.
Attention has a gate, and a norm without weights before its last matrix,

    y = x + Wo norm(attend(q, k, v) ⊙ gelu(g)) + bo,         (v, g) = Wvg norm(x) + bvg

and (π_b, κ_b) are the two halves of Wqk LN(r_b) + bqk, each of which is split over the heads. After every sublayer s
(attention and gated layer alternate), its output is replaced by a learned sum over the embeddings and all outputs:

    x ← Σ_{j ≤ s} α_sj h_j          h_0: the embeddings,  h_j: the output of sublayer j before this sum

The model was trained to predict the token at i from the output at i − 1, which `besag_shift` declares.
"""

from typing import Any, ClassVar

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import initialization as init

from besag.family import ltg_bert
from besag.family.ltg_bert import GatedLayer, LtgBertConfig, LtgBertForMaskedLM, LtgBertModel, linear, norm


@strict
class GptBertConfig(LtgBertConfig):
    model_type: ClassVar[str] = "gpt_bert"

    intermediate_size: int = 2560
    layer_norm_eps: float = 1e-5
    besag_shift: bool = True


class Attention(ltg_bert.Attention):
    def __init__(self, config: GptBertConfig) -> None:
        super().__init__(config)
        width = config.hidden_size
        del self.in_proj_v
        self.in_proj_vg = linear(config, width, 2 * width)
        self.post_layer_norm = norm(config, width)

    def of_positions(self, rows: Tensor) -> tuple[Tensor, Tensor]:  # (2B − 1, H) -> two of (heads, 2B − 1, D)
        """Return what the rows of relative positions are as queries and as keys."""
        query, key = (self.split(part[None])[0] for part in self.in_proj_qk(rows).chunk(2, dim=-1))
        return query, key

    def forward(
        self, x: Tensor, relative: Any, attention_mask: Tensor | None = None, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None]:
        x = self.pre_layer_norm(x)
        q, k = map(self.split, self.in_proj_qk(x).chunk(2, dim=-1))
        value, gate = self.in_proj_vg(x).chunk(2, dim=-1)
        seen, weights = self.weighted(q, k, self.split(value), attention_mask, relative, **kwargs)
        return self.dropout(self.out_proj(self.post_layer_norm(seen * F.gelu(gate)))), weights


class Sums(nn.Module):
    """The learned sums after each sublayer; a new one is that sublayer's output alone."""

    def __init__(self, config: GptBertConfig) -> None:
        super().__init__()
        count = 2 * config.num_hidden_layers
        self.alphas = nn.ParameterList([nn.Parameter(torch.empty(number + 2)) for number in range(count)])

    def forward(self, states: list[Tensor]) -> Tensor:  # each (N, L, H)
        weights = self.alphas[len(states) - 2].unbind()
        total: Tensor = states[0] * weights[0]
        for state, weight in zip(states[1:], weights[1:], strict=True):
            total = total + state * weight
        return total


class Step(nn.Module):
    """One layer: attention and gated layer with the sums after them. Its weights are elsewhere, in published order."""

    def forward(self, x: Tensor, parts: Any, states: list[Tensor], **kwargs: Any) -> Tensor:  # (N, L, H)
        attention, gated, sums = parts
        states.append(x + attention(x, **kwargs)[0])
        x = sums(states)
        states.append(x + gated(x))
        after: Tensor = sums(states)
        return after


class Layers(nn.Module):
    def __init__(self, config: GptBertConfig) -> None:
        super().__init__()
        numbers = range(1, config.num_hidden_layers + 1)
        self.attention_layers = nn.ModuleList([Attention(config) for _ in numbers])
        self.mlp_layers = nn.ModuleList([GatedLayer(config, number) for number in numbers])
        self.dwa_modules = Sums(config)
        self.step = Step()

    def forward(self, x: Tensor, relative: Any, attention_mask: Tensor | None = None, **kwargs: Any) -> Tensor:
        states = [x]
        for attention, gated in zip(self.attention_layers, self.mlp_layers, strict=True):
            parts = (attention, gated, self.dwa_modules)
            x = self.step(x, parts, states, relative=relative, attention_mask=attention_mask, **kwargs)
        return x


class GptBertPreTrainedModel(ltg_bert.LtgBertPreTrainedModel):
    config_class = GptBertConfig
    _can_record_outputs = {"hidden_states": Step, "attentions": Attention}  # noqa: RUF012

    @torch.no_grad()
    def _init_weights(self, module: Any) -> None:
        """Initialise sums with their last state alone, and other parts as LTG-BERT's."""
        if not isinstance(module, nn.ParameterList):  # transformers passes over modules without weights of their own
            super()._init_weights(module)
            return
        for weight in module:
            last = torch.zeros_like(weight)
            last[-1] = 1.0
            init.copy_(weight, last)


class GptBertModel(GptBertPreTrainedModel, LtgBertModel):
    """The encoder: x after the last layer, (N, L, H)."""

    layers = Layers


class GptBertForMaskedLM(GptBertPreTrainedModel, LtgBertForMaskedLM):
    """The masked language model: logits (N, L, V), those at i − 1 for the token at i."""

    body = GptBertModel


ltg_bert.register_names("GptBertForMaskedLM")
