"""log p(label | prompt) of many rows, and its gradient with respect to the embeddings of the triggers.

    p(y | row, triggers) = Σ_{w ∈ words of y} p(gap = w | row, triggers)

Rows of one length run together, so that nothing is padded. Knows one network; its weights are neither changed nor
given a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from besag.arrays import Floats, Ints
from besag.conditionals.published import shift_of
from besag.conditionals.transformer import Transformer, predicted_from
from besag.errors import BesagError, quoted
from besag.prompting.template import Asked

TOKENS = 4096  # of one batch


class Example(NamedTuple):
    """A row, and the tokens that would be right."""

    asked: Asked
    right: Ints  # (n,)


class Likelihood:
    @classmethod
    def of_network(cls, conditionals: object) -> Likelihood:
        """Of what a language model asks, if that is a masked network."""
        if not isinstance(conditionals, Transformer) or conditionals.dtype == torch.int8:
            name = getattr(conditionals, "name", conditionals)
            raise BesagError(
                f"{quoted(name)} is no masked network in float32 or bfloat16, whose gradients find triggers"
            )
        return cls(conditionals.model, conditionals.device)

    def __init__(self, model: Any, device: torch.device) -> None:
        self.model, self.device = model, device
        self.embedding: Tensor = model.get_input_embeddings().weight.detach()  # (V, D)

    def of(self, examples: Sequence[Example], triggers: Ints) -> Floats:  # (N,)
        """log p of the right label of each, without a gradient."""
        found = np.zeros(len(examples))
        with torch.no_grad():
            for own, rows in self._batches(examples, triggers):
                found[own] = self._right(rows, [examples[place] for place in own]).double().cpu().numpy()
        return found

    def answers(self, asked: Sequence[Asked], words: Sequence[Ints], triggers: Ints) -> Floats:  # (N, Y)
        """log p of each label's words at the gap."""
        found = np.zeros((len(asked), len(words)))
        with torch.no_grad():
            for own, rows in self._batches([Example(one, one.ids[:0]) for one in asked], triggers):
                laws = self._laws(rows, [asked[place] for place in own])
                for label, ids in enumerate(words):
                    total = laws[:, torch.as_tensor(ids, device=self.device)].logsumexp(1)
                    found[own, label] = total.double().cpu().numpy()
        return found

    def gradient(self, examples: Sequence[Example], triggers: Ints) -> Tensor:  # (T, D)
        """Of the mean log p with respect to what stands at each trigger: the sum over rows, since all share it."""
        total = self.embedding.new_zeros(len(triggers), self.embedding.shape[1])
        seen: list[Tensor] = []

        def keep(_: Any, __: Any, output: Tensor) -> Tensor:
            seen.append(output.detach().requires_grad_())
            return seen[-1]

        hook = self.model.get_input_embeddings().register_forward_hook(keep)
        try:
            for own, rows in self._batches(examples, triggers):
                chosen = [examples[place] for place in own]
                seen.clear()
                [slope] = torch.autograd.grad(self._right(rows, chosen).sum(), seen)  # (B, L, D)
                places = torch.as_tensor(np.stack([one.asked.triggers for one in chosen]), device=self.device)  # (B, T)
                total += slope[torch.arange(len(own), device=self.device)[:, None], places].sum(0)
        finally:
            hook.remove()
        return total / len(examples)

    def _batches(self, examples: Sequence[Example], triggers: Ints) -> Iterator[tuple[list[int], Tensor]]:
        """Which rows, and their ids (B, L) with the triggers in them."""
        by_length: dict[int, list[int]] = {}
        for place, one in enumerate(examples):
            by_length.setdefault(len(one.asked.ids), []).append(place)
        for length, places in by_length.items():
            size = max(1, TOKENS // length)
            for start in range(0, len(places), size):
                own = places[start : start + size]
                ids = np.stack([examples[place].asked.ids for place in own])
                for row, place in enumerate(own):
                    ids[row, examples[place].asked.triggers] = triggers
                yield own, torch.as_tensor(ids, device=self.device)

    def _laws(self, ids: Tensor, asked: Sequence[Asked]) -> Tensor:  # (B, V)
        gaps = torch.tensor([one.gap for one in asked], device=self.device)
        gaps = predicted_from(gaps, shift_of(self.model.config))
        logits: Tensor = self.model(input_ids=ids).logits[torch.arange(len(asked), device=self.device), gaps]
        return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)

    def _right(self, ids: Tensor, examples: Sequence[Example]) -> Tensor:  # (B,)
        laws = self._laws(ids, [one.asked for one in examples])
        return torch.stack([
            law[torch.as_tensor(one.right, device=self.device)].logsumexp(0)
            for law, one in zip(laws, examples, strict=True)
        ])  # fmt: skip
