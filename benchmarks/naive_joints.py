"""Joints of two places the published way, written from its description: what besag's seconds are compared with.

Batches of 256 conditioning tokens, logits of all positions of which one is kept, all conditionals and every joint as
dense V × V tables, Arnold-Gokhale by 40 steps in probability space with the joint stored, all divergences as dense
expressions. Knows torch and a network's forward pass, and nothing of besag. float32, as published; where a probability
underflows, logs of 0 turn the reverse and Jensen-Shannon divergences into nan, as they do there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

T = TypeVar("T")
Clock = Callable[[str, Callable[[], Any]], Any]  # runs a step under its name

BATCH = 256
STEPS = 40


class Measured(NamedTuple):
    """Named as in besag.joints.metrics."""

    pair_nll: float
    unary_nll: float
    gold_forward: float
    gold_reverse: float
    gold_jsd: float
    all_forward: float
    all_reverse: float
    all_jsd: float


class Tables(NamedTuple):
    logits_a: Tensor  # (V, V) logit of a = x given b = y, indexed [x, y]
    logits_b: Tensor  # (V, V) logit of b = y given a = x
    hidden_a: Tensor  # (V,) logits with both places hidden
    hidden_b: Tensor  # (V,)


@torch.inference_mode()
def study(
    model: Any, ids: np.ndarray, at: tuple[int, int], gold: tuple[int, int], mask_id: int, clock: Clock
) -> tuple[dict[str, Measured], float]:
    """All published constructions with all published metrics, and the Arnold-Press measure, for one pair."""
    tables = clock("conditionals", lambda: conditionals(model, ids, at, mask_id))
    log_a, log_b = clock("conditionals", lambda: (tables.logits_a.log_softmax(0), tables.logits_b.log_softmax(1)))
    found = {}
    for name, build in CONSTRUCTIONS.items():
        log_q = clock(name, lambda build=build: build(tables, log_a, log_b))
        found[name] = clock("metrics", lambda log_q=log_q: measure(log_a, log_b, log_q, *gold))
        del log_q
    return found, clock("compatibility", lambda: compatibility(log_a, log_b))


def conditionals(model: Any, ids: np.ndarray, at: tuple[int, int], mask_id: int) -> Tables:
    a, b = at
    text = torch.from_numpy(ids).to(model.device)[None].clone()  # (1, L)
    text[:, [a, b]] = mask_id
    hidden = _logits(model, text)[0]
    width = hidden.shape[-1]
    logits_a, logits_b = (torch.empty(width, width, device=model.device) for _ in range(2))
    for start, batch in _shown(text, b, width):
        logits_a[:, start : start + len(batch)] = _logits(model, batch)[:, a].T
    for start, batch in _shown(text, a, width):
        logits_b[start : start + len(batch)] = _logits(model, batch)[:, b]
    return Tables(logits_a, logits_b, hidden[a].clone(), hidden[b].clone())


def _shown(text: Tensor, place: int, width: int) -> Iterator[tuple[int, Tensor]]:
    """The text with each token of the vocabulary in turn at one place, (256, L) at a time."""
    for start in range(0, width, BATCH):
        tokens = torch.arange(start, min(start + BATCH, width), device=text.device)
        batch = text.repeat(len(tokens), 1)
        batch[:, place] = tokens
        yield start, batch


def _logits(model: Any, ids: Tensor) -> Tensor:
    return model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits  # (N, L, V)


def mlm(tables: Tables, log_a: Tensor, log_b: Tensor) -> Tensor:
    return tables.hidden_a.log_softmax(0)[:, None] + tables.hidden_b.log_softmax(0)


def mrf(tables: Tables, log_a: Tensor, log_b: Tensor) -> Tensor:
    return _normalised(tables.logits_a + tables.logits_b)


def mrf_local(tables: Tables, log_a: Tensor, log_b: Tensor) -> Tensor:
    return _normalised(log_a + log_b)


def hcb(tables: Tables, log_a: Tensor, log_b: Tensor) -> Tensor:
    pivot = int(tables.hidden_a.argmax())
    return _normalised(log_a - log_a[pivot] + log_b[pivot])


def ag(tables: Tables, log_a: Tensor, log_b: Tensor) -> Tensor:
    r = log_a.exp() + log_b.exp()
    q = torch.full_like(r, 1 / r.numel())
    for _ in range(STEPS):
        u, v = q.sum(1, keepdim=True), q.sum(0, keepdim=True)
        q = r / (1 / u + 1 / v)
        q = q / q.sum()
    return q.log()


CONSTRUCTIONS: dict[str, Callable[[Tables, Tensor, Tensor], Tensor]] = {
    "mlm": mlm,
    "mrf": mrf,
    "mrf_local": mrf_local,
    "hcb": hcb,
    "ag": ag,
}


def _normalised(log_q: Tensor) -> Tensor:
    return log_q - torch.logsumexp(log_q.flatten(), 0)


def measure(log_a: Tensor, log_b: Tensor, log_q: Tensor, x: int, y: int) -> Measured:
    given_b, given_a = log_q.log_softmax(0), log_q.log_softmax(1)
    of_a, of_b = _divergences(log_a, given_b, 0), _divergences(log_b, given_a, 1)
    here = [float(one[y] + other[x]) / 2 for one, other in zip(of_a, of_b, strict=True)]
    everywhere = [float(torch.cat(both).mean()) for both in zip(of_a, of_b, strict=True)]
    return Measured(-float(log_q[x, y]) / 2, -float(given_b[x, y] + given_a[x, y]) / 2, *here, *everywhere)


def _divergences(p: Tensor, q: Tensor, axis: int) -> tuple[Tensor, Tensor, Tensor]:
    exp_p, exp_q = p.exp(), q.exp()
    mean = ((exp_p + exp_q) / 2).log()
    jsd = ((exp_p * (p - mean)).sum(axis) + (exp_q * (q - mean)).sum(axis)) / 2
    return (exp_p * (p - q)).sum(axis), (exp_q * (q - p)).sum(axis), jsd


def compatibility(log_a: Tensor, log_b: Tensor) -> float:
    ratio = log_a - log_b
    rows, columns = torch.logsumexp(ratio, 1, keepdim=True), torch.logsumexp(ratio, 0, keepdim=True)
    return float((ratio + torch.logsumexp(rows, 0) - rows - columns).square().mean())
