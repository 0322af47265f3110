"""A small transformer on ragged states: pre-norm, rotary positions, bidirectional. Trained beside a network, then
thrown away. Knows no tokens: states in, states out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from besag.training.network.attention import ragged_attention
from besag.training.network.batch import Layout

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # q, k, v (B, heads, N, D) -> (B, N, heads, D)


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed = nn.Linear(width, 3 * width)  # queries, keys, values
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, states: Tensor, angle: Tensor, attend: Attend) -> Tensor:  # (B, N, H), (B, 1, N, D/2)
        mixed = self.mixed(self.before_attention(states)).unflatten(-1, (3, self.heads, -1))  # (B, N, 3, heads, D)
        query, key, value = (part.transpose(1, 2) for part in mixed.unbind(2))  # (B, heads, N, D)
        read = attend(rotate(query, angle), rotate(key, angle), value)
        states = states + self.out(read.flatten(2))
        states = states + self.down(F.gelu(self.up(self.before_mlp(states))))
        return states


class Decoder(nn.Module):
    """`depth` blocks and a norm. `generator` draws the weights, so that a seed gives one decoder."""

    def __init__(self, width: int, heads: int, depth: int, generator: torch.Generator, spread: float = 0.02) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.pairs = width // heads // 2  # of numbers that turn together, D/2
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                last = name.endswith(("out.weight", "down.weight"))  # what adds to the states, 2·depth times
                nn.init.normal_(parameter, std=spread / (2 * depth) ** (0.5 * last), generator=generator)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, states: Tensor, layout: Layout, ragged: bool) -> Tensor:  # (T, H)
        """Every token sees its own sequence; run end to end where `ragged`, otherwise padded."""
        if ragged:

            def within(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
                ends: dict[str, Any] = {"cu_seq_lens_q": layout.bounds, "max_length_q": layout.longest}
                return ragged_attention(None, query, key, value, **ends)[0]

            return self._blocks(states[None], layout.position[None], within)[0]
        at = (layout.row, layout.column)
        whole = states.new_zeros(layout.rows, layout.longest, states.shape[-1]).index_put(at, states)
        position = layout.position.new_zeros(whole.shape[:2]).index_put(at, layout.position)
        real = torch.zeros_like(position, dtype=torch.bool)
        real[at] = True
        seen = (real | ~real.any(-1, keepdim=True))[:, None, None, :]  # an empty row sees its padding, not nothing

        def among(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(query, key, value, attn_mask=seen).transpose(1, 2)

        return self._blocks(whole, position, among)[at]

    def _blocks(self, states: Tensor, position: Tensor, attend: Attend) -> Tensor:
        speed = 10_000.0 ** -(torch.arange(self.pairs, device=position.device) / self.pairs)  # radians a place
        angle = position[:, None, :, None] * speed  # (B, 1, N, D/2), in float32 whatever the weights are in
        for block in self.blocks:
            states = block(states, angle, attend)
        normed: Tensor = self.norm(states)
        return normed


def by_heads(states: Tensor, heads: int) -> Tensor:  # (R, L, H) -> (R, heads, L, H / heads)
    return states.view(*states.shape[:-1], heads, -1).transpose(1, 2)


def rotate(states: Tensor, angle: Tensor) -> Tensor:  # (B, heads, N, D), (B, 1, N, D/2)
    """Turn the d-th and the (D/2 + d)-th number of each state, as a point of the plane, by its angle."""
    left, right = states.float().chunk(2, -1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([left * cos - right * sin, left * sin + right * cos], -1).to(states.dtype)
