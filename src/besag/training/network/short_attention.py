"""Attention for many short sequences laid end to end: one program holds one head of a tile of whole sequences.

With at most 128 tokens in a tile (`tiles.py`), scores and their gradient fit into registers, so a pass reads each
operand once, writes each result once, and the backward pass takes the softmax again in place of storing anything:

    P = softmax(c Q Kᵀ),  O = P V
    dV = Pᵀ dO,  dP = dO Vᵀ,  dS = P ∘ (dP − rowsum(P ∘ dP)),  dQ = c dS K,  dK = c dSᵀ Q

On an H200 this is several times as fast as the flash kernel, which is built for long sequences. Triton is optional;
`AVAILABLE` says whether it is there.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from besag.training.network.tiles import TILE

AVAILABLE = find_spec("triton") is not None and torch.version.hip is None

if AVAILABLE:
    import triton
    import triton.language as tl

    @triton.jit
    def _tile(  # type: ignore[no-untyped-def]
        base, first, head, token_step, head_step, rows, count, SIZE: tl.constexpr, DEPTH: tl.constexpr
    ):
        """Where the rows of one sequence and head lie, and which of them exist."""
        depth = tl.arange(0, DEPTH)
        at = base + (first + rows)[:, None].to(tl.int64) * token_step + head * head_step + depth[None, :]
        return at, (rows < count)[:, None] & (depth < SIZE)[None, :]

    @triton.jit
    def _weights(q, k, owner_at, first, rows, count, scale, before, after, LENGTH: tl.constexpr):  # type: ignore[no-untyped-def]
        """P (LENGTH, LENGTH): softmax over the keys that a query sees, those of its own sequence."""
        columns = tl.arange(0, LENGTH)
        ahead = columns[None, :] - rows[:, None]
        of_query = tl.load(owner_at + first + rows, mask=rows < count, other=-1)
        of_key = tl.load(owner_at + first + columns, mask=columns < count, other=-2)
        seen = (of_query[:, None] == of_key[None, :]) & (ahead >= -before) & (ahead <= after)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(seen, scores, -1.0e30)
        weights = tl.exp(scores - tl.max(scores, 1)[:, None])
        weights = tl.where(seen, weights, 0.0)
        return weights / tl.maximum(tl.sum(weights, 1), 1.0e-30)[:, None]

    @triton.jit
    def _forward(  # type: ignore[no-untyped-def]
        q_at, k_at, v_at, o_at, tiles, owner_at, scale, before, after,
        q_token, q_head, k_token, k_head, v_token, v_head, o_token, o_head,
        SIZE: tl.constexpr, DEPTH: tl.constexpr, LENGTH: tl.constexpr,
    ):  # fmt: skip
        tile, head = tl.program_id(0), tl.program_id(1)
        first = tl.load(tiles + tile)
        count = tl.load(tiles + tile + 1) - first
        if count > 0:
            rows = tl.arange(0, LENGTH)
            at, real = _tile(q_at, first, head, q_token, q_head, rows, count, SIZE, DEPTH)
            q = tl.load(at, mask=real, other=0.0)
            at, real = _tile(k_at, first, head, k_token, k_head, rows, count, SIZE, DEPTH)
            k = tl.load(at, mask=real, other=0.0)
            at, real = _tile(v_at, first, head, v_token, v_head, rows, count, SIZE, DEPTH)
            v = tl.load(at, mask=real, other=0.0)
            weights = _weights(q, k, owner_at, first, rows, count, scale, before, after, LENGTH)
            o = tl.dot(weights.to(v.dtype), v)
            at, real = _tile(o_at, first, head, o_token, o_head, rows, count, SIZE, DEPTH)
            tl.store(at, o.to(v.dtype), mask=real)

    @triton.jit
    def _backward(  # type: ignore[no-untyped-def]
        q_at, k_at, v_at, do_at, dq_at, dk_at, dv_at, tiles, owner_at, scale, before, after,
        q_token, q_head, k_token, k_head, v_token, v_head, do_token, do_head, d_token, d_head,
        SIZE: tl.constexpr, DEPTH: tl.constexpr, LENGTH: tl.constexpr,
    ):  # fmt: skip
        tile, head = tl.program_id(0), tl.program_id(1)
        first = tl.load(tiles + tile)
        count = tl.load(tiles + tile + 1) - first
        if count > 0:
            rows = tl.arange(0, LENGTH)
            at, real = _tile(q_at, first, head, q_token, q_head, rows, count, SIZE, DEPTH)
            q = tl.load(at, mask=real, other=0.0)
            at, real = _tile(k_at, first, head, k_token, k_head, rows, count, SIZE, DEPTH)
            k = tl.load(at, mask=real, other=0.0)
            weights = _weights(q, k, owner_at, first, rows, count, scale, before, after, LENGTH)
            at, real = _tile(do_at, first, head, do_token, do_head, rows, count, SIZE, DEPTH)
            do = tl.load(at, mask=real, other=0.0)
            dv = tl.dot(tl.trans(weights.to(do.dtype)), do)
            out, real = _tile(dv_at, first, head, d_token, d_head, rows, count, SIZE, DEPTH)
            tl.store(out, dv.to(do.dtype), mask=real)
            at, real = _tile(v_at, first, head, v_token, v_head, rows, count, SIZE, DEPTH)
            v = tl.load(at, mask=real, other=0.0)
            slope = tl.dot(do, tl.trans(v))
            slope = weights * (slope - tl.sum(weights * slope, 1)[:, None]) * scale
            slope = slope.to(q.dtype)
            dq = tl.dot(slope, k)
            out, real = _tile(dq_at, first, head, d_token, d_head, rows, count, SIZE, DEPTH)
            tl.store(out, dq.to(q.dtype), mask=real)
            dk = tl.dot(tl.trans(slope), q)
            out, real = _tile(dk_at, first, head, d_token, d_head, rows, count, SIZE, DEPTH)
            tl.store(out, dk.to(q.dtype), mask=real)


def _shape(q: Tensor) -> dict[str, Any]:
    return {
        "SIZE": q.shape[2],
        "DEPTH": max(16, 1 << (q.shape[2] - 1).bit_length()),
        "LENGTH": TILE,
        "num_warps": 8,
        "num_stages": 1,
    }


def _steps(*parts: Tensor) -> list[int]:
    return [step for part in parts for step in part.stride()[:2]]


def _last_dense(part: Tensor) -> Tensor:
    return part if part.stride(2) == 1 else part.contiguous()


@torch.library.custom_op("besag::short_attention", mutates_args=())
def _attend(
    q: Tensor, k: Tensor, v: Tensor, tiles: Tensor, row: Tensor, scale: float, before: int, after: int
) -> Tensor:
    q, k, v = map(_last_dense, (q, k, v))
    o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    grid = (len(tiles) - 1, q.shape[1])
    _forward[grid](q, k, v, o, tiles, row, scale, before, after, *_steps(q, k, v, o), **_shape(q))
    return o


@_attend.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, tiles: Tensor, row: Tensor, scale: float, before: int, after: int) -> Tensor:
    return torch.empty(q.shape, dtype=q.dtype, device=q.device)


@torch.library.custom_op("besag::short_attention_backward", mutates_args=())
def _slopes(
    do: Tensor, q: Tensor, k: Tensor, v: Tensor, tiles: Tensor, row: Tensor, scale: float, before: int, after: int
) -> Tensor:
    do, q, k, v = map(_last_dense, (do, q, k, v))
    out = torch.empty((3, *q.shape), dtype=q.dtype, device=q.device)
    grid = (len(tiles) - 1, q.shape[1])
    steps = _steps(q, k, v, do, out[0])
    _backward[grid](q, k, v, do, out[0], out[1], out[2], tiles, row, scale, before, after, *steps, **_shape(q))
    return out


@_slopes.register_fake
def _(
    do: Tensor, q: Tensor, k: Tensor, v: Tensor, tiles: Tensor, row: Tensor, scale: float, before: int, after: int
) -> Tensor:
    return torch.empty((3, *q.shape), dtype=q.dtype, device=q.device)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.scale, ctx.before, ctx.after = inputs
    ctx.save_for_backward(*tensors)


def _derive(ctx: Any, do: Tensor) -> tuple[Any, ...]:
    slopes = _slopes(do, *ctx.saved_tensors, ctx.scale, ctx.before, ctx.after)
    return *slopes.unbind(0), None, None, None, None, None


_attend.register_autograd(_derive, setup_context=_keep)


def short_attention(
    q: Tensor, k: Tensor, v: Tensor, tiles: Tensor, row: Tensor, scale: float, before: int = -1, after: int = -1
) -> Tensor:
    """(T, heads, D) of queries, keys and values; token t is of sequence row[t]; tile g is tokens tiles[g] …
    tiles[g+1]−1, whole sequences and at most 128 tokens of them.

    A query sees `before` tokens of its sequence on its left and `after` on its right; −1: all of them.
    """
    seen: Tensor = _attend(q, k, v, tiles, row, scale, *(TILE if reach < 0 else reach for reach in (before, after)))
    return seen
