"""Attention among the tokens of one sequence, for sequences laid end to end: nothing is padded, nothing leaks over.

Registered with transformers under `NAME`; any family whose attention goes through that interface can be run so. On CUDA
short sequences in tiles have a kernel of their own, others take the flash kernel for ragged batches; elsewhere it is
the same mathematics with a mask.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AttentionInterface

from besag.training.network import short_attention

NAME = "besag_ragged"


def ragged_attention(
    module: Any,
    query: Tensor,  # (1, heads, T, D)
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int | None = None,
    besag_causal: bool = False,
    besag_tiles: Tensor | None = None,
    besag_row: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:  # (1, T, heads, D)
    """Every token sees its own sequence (the part before it, if causal), at most `sliding_window` − 1 tokens away."""
    if cu_seq_lens_q is None or max_length_q is None:  # a padded batch with a pattern of its own: Encoder.states(seen=)
        answer = F.scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, dropout_p=dropout, scale=scaling
        )
        return answer.transpose(1, 2), None
    reach = -1 if sliding_window is None else sliding_window - 1
    window = (reach, 0 if besag_causal else reach)
    if query.is_cuda and query.dtype != torch.float32:
        q, k, v = [part[0].transpose(0, 1) for part in (query, key, value)]  # (T, heads, D)
        if short_attention.AVAILABLE and besag_tiles is not None and besag_row is not None:
            scale = query.shape[-1] ** -0.5 if scaling is None else scaling
            near = short_attention.short_attention(q, k, v, besag_tiles, besag_row, scale, window[0], window[1])
            return near[None], None
        from torch.nn.attention.varlen import varlen_attn

        attend: Any = varlen_attn
        ends = (cu_seq_lens_q, cu_seq_lens_q, max_length_q, max_length_q)
        return attend(q, k, v, *ends, scale=scaling, window_size=window)[None], None
    row = torch.searchsorted(cu_seq_lens_q[1:], torch.arange(query.shape[2], device=query.device), right=True)
    seen = row[:, None] == row[None, :]
    ahead = torch.arange(len(row), device=row.device)[None, :] - torch.arange(len(row), device=row.device)[:, None]
    if window[0] >= 0:
        seen = seen & (ahead >= -window[0])
    if window[1] >= 0:
        seen = seen & (ahead <= window[1])
    answer = F.scaled_dot_product_attention(query, key, value, attn_mask=seen, dropout_p=dropout, scale=scaling)
    return answer.transpose(1, 2), None


AttentionInterface.register(NAME, ragged_attention)
