"""The kernel against the plain mathematics: on CUDA where there is one, else in Triton's interpreter on the CPU."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch

THERE = find_spec("triton") is not None
if THERE and not torch.cuda.is_available() and "triton" not in sys.modules:
    os.environ["TRITON_INTERPRET"] = "1"  # Triton decides at its own import whether to interpret
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not THERE or (DEVICE == "cpu" and not INTERPRETED), reason="needs Triton, and CUDA or TRITON_INTERPRET=1"
    ),
]


@pytest.mark.parametrize(("window", "causal"), [(None, False), (4, False), (None, True)])
def test_values_and_gradients_are_those_of_masked_attention(window: int | None, causal: bool) -> None:
    from besag.training.network.attention import ragged_attention  # imports Triton
    from besag.training.network.short_attention import short_attention
    from besag.training.network.tiles import best_order, cut

    torch.manual_seed(0)
    sizes = np.array([5, 31, 1, 17, 100, 28, 90])
    order = best_order(sizes)
    ends = cut(sizes[order])
    lengths = torch.tensor(sizes)[order]
    total = int(lengths.sum())
    row = torch.repeat_interleave(torch.arange(len(sizes)), lengths).to(DEVICE)
    tiles = torch.tensor([*ends, total, total], dtype=torch.int32, device=DEVICE)  # two are empty
    bounds = torch.tensor([0, *lengths.cumsum(0).tolist()], dtype=torch.int32, device=DEVICE)

    dtype, close = (torch.bfloat16, 2e-2) if DEVICE == "cuda" else (torch.float32, 1e-5)
    whole = torch.randn(1, total, 3, 2, 16, device=DEVICE, requires_grad=True)
    query, key, value = (part.transpose(1, 2) for part in whole.unbind(2))  # (1, heads, T, D)
    plain, _ = ragged_attention(
        None, query, key, value, scaling=0.3, sliding_window=window, cu_seq_lens_q=bounds, max_length_q=100,
        besag_causal=causal,
    )  # fmt: skip
    reach = -1 if window is None else window - 1
    flat = [part[0].transpose(0, 1).to(dtype) for part in (query, key, value)]
    short = short_attention(*flat, tiles, row, 0.3, reach, 0 if causal else reach)
    slope = torch.randn_like(short)
    [expected] = torch.autograd.grad((plain[0] * slope).sum(), whole, retain_graph=True)
    [found] = torch.autograd.grad((short * slope).sum(), whole)
    torch.testing.assert_close(short.float(), plain[0], atol=close, rtol=close)
    torch.testing.assert_close(found, expected, atol=5 * close, rtol=5 * close)
