"""A masked network as it is trained: hidden states of ragged sequences, and logits at the rows that are asked about.

Knows how a batch is run: end to end where the network's attention allows it (CUDA), otherwise padded. Knows no loss.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from besag.conditionals.split import Head, compile_layers
from besag.errors import BesagError
from besag.training.network import attention
from besag.training.network.batch import Layout

LOGITS = 2**30  # 4 GiB in float32


class Encoder(nn.Module):
    """`model` is a Hugging Face `*ForMaskedLM`; its weights are the ones that are trained and saved."""

    def __init__(self, model: Any, *, mask_id: int, pad_id: int, special_ids: frozenset[int], ragged: bool) -> None:
        super().__init__()
        self.model = model
        self.mask_id, self.pad_id, self.special_ids = mask_id, pad_id, special_ids
        self.width: int = model.config.vocab_size
        self.ragged = ragged
        self.watched = False  # does anybody want to know how each asked token was predicted?
        self.smoothing = 0.0  # of labels
        self._made: list[tuple[Tensor, Layout]] | None = None  # what `states` made, while somebody wants to know
        self.offset = first_position(model)
        self._accepts = frozenset(inspect.signature(self.body.forward).parameters)
        self._head = Head(model, precise=False)
        if ragged:
            model.config._attn_implementation = attention.NAME

    @property
    def trained(self) -> nn.Module:
        """All that is saved at the end, whose weights may be averaged."""
        model: nn.Module = self.model
        return model

    @property
    def body(self) -> Any:
        return self.model._modules[self.model.base_model_prefix]

    def states(
        self, ids: Tensor, layout: Layout, *, causal: bool = False, seen: Tensor | None = None
    ) -> Tensor:  # (T, H)
        """What the network makes of each token (T,). Every token sees its own sequence.

        `causal`: only what stands before it and itself. `seen` (R, L, L) bool, L = layout.longest: query q of sequence
        r sees its column k where seen[r, q, k]; it makes the batch padded.
        """
        ragged = self.ragged and seen is None
        states = self._ragged(ids, layout, causal) if ragged else self._padded(ids, layout, causal, seen)
        if self._made is not None:
            self._made.append((states, layout))
        return states

    @contextmanager
    def remembering(self) -> Iterator[list[tuple[Tensor, Layout]]]:
        """In here what `states` makes is kept, so that others can read it without another pass."""
        self._made = []
        try:
            yield self._made
        finally:
            self._made = None

    def compile_layers(self) -> None:
        compile_layers(self.body, dynamic=False)
        for part in self.body.children():
            kind = type(part).__name__.lower()
            if "norm" in kind or ("embedding" in kind and "rotary" not in kind):
                part.compile(dynamic=False)
        self._compile_loss()

    def _compile_loss(self) -> None:
        compiled: Any = torch.compile(self._nll, dynamic=True)  # one reading of the logits in place of five
        self._nll = compiled  # type: ignore[method-assign]

    def logits(self, rows: Tensor) -> Tensor:  # (M, H) -> (M, V)
        return self._head(rows)

    def losses(self, rows: Tensor, target: Tensor) -> Tensor:  # (M, H), (M,) -> (M,)
        """−log p(target) in float32. Logits beyond `LOGITS` numbers are never held: each part is made again for its
        gradient."""
        most = max(1, LOGITS // self.width)
        if len(rows) <= most:
            return self._nll(rows, target)
        parts = zip(torch.split(rows, most), torch.split(target, most), strict=True)
        return torch.cat([checkpoint(self._nll, *part, use_reentrant=False) for part in parts])

    def _nll(self, rows: Tensor, target: Tensor) -> Tensor:
        return self.nll(self.logits(rows), target)

    def nll(self, logits: Tensor, target: Tensor) -> Tensor:  # (M, V), (M,) -> (M,)
        """−log p(target) in float32, or with ε smoothing: (1 − ε) of it, and ε of the mean over the vocabulary."""
        return F.cross_entropy(logits.float(), target, reduction="none", label_smoothing=self.smoothing)

    def _ragged(self, ids: Tensor, layout: Layout, causal: bool) -> Tensor:
        answer = self.body(
            input_ids=ids[None],
            position_ids=(layout.position + self.offset)[None],
            cu_seq_lens_q=layout.bounds,
            max_length_q=layout.longest,
            **({"besag_causal": True} if causal else {}),
            **({} if layout.tiles is None else {"besag_tiles": layout.tiles, "besag_row": layout.row}),
        )
        states: Tensor = answer[0][0]
        return states

    def _padded(self, ids: Tensor, layout: Layout, causal: bool, seen: Tensor | None) -> Tensor:
        at = (layout.row, layout.column)
        table, real = padded(ids, layout, self.pad_id)
        inputs: dict[str, Any] = {"attention_mask": real.long()}
        place = torch.zeros_like(table)
        place[at] = layout.position
        if "position_ids" in self._accepts:
            inputs["position_ids"] = place + self.offset
        elif not torch.equal(layout.position, layout.column):
            raise BesagError(f"{type(self.model).__name__} numbers its places itself, so none can be left out")
        if causal or seen is not None:
            inputs["attention_mask"] = self._pattern(real, place, causal, seen)
        states: Tensor = self.body(input_ids=table, **inputs)[0]  # (R, L, H)
        return states[at]

    def _pattern(self, real: Tensor, place: Tensor, causal: bool, seen: Tensor | None) -> Any:
        """Who sees whom, as the network adds it to its attention scores: (R, 1, L, L), for each kind of layer."""
        length = real.shape[1]
        whole = real[:, None, :].expand(-1, length, -1)  # (R, L, L)
        whole = whole if seen is None else whole & seen
        if causal:
            whole = whole & torch.ones(length, length, dtype=torch.bool, device=real.device).tril()
        whole = whole | torch.eye(length, dtype=torch.bool, device=real.device)  # or a row's softmax is empty
        dtype = self.model.dtype
        added = torch.zeros(whole.shape, dtype=dtype, device=real.device).masked_fill(~whole, torch.finfo(dtype).min)
        added = added[:, None]
        config = self.model.config
        if "sliding_attention" not in (getattr(config, "layer_types", None) or ()):
            return added
        near = (place[:, None, :, None] - place[:, None, None, :]).abs() <= config.sliding_window  # in the text
        return {"full_attention": added, "sliding_attention": added.masked_fill(~near, torch.finfo(dtype).min)}


def padded(ids: Tensor, layout: Layout, pad_id: int) -> tuple[Tensor, Tensor]:
    """(R, L) the sequences one below the other, filled up with padding; (R, L) bool, what is none."""
    at, shape = (layout.row, layout.column), (layout.rows, layout.longest)
    table = ids.new_full(shape, pad_id)
    table[at] = ids
    real = torch.zeros(shape, dtype=torch.bool, device=ids.device)
    real[at] = True
    return table, real


def first_position(model: Any) -> int:
    """The number of a sequence's first place: a learned table that keeps a row for padding starts after that row."""
    for name, module in model.named_modules():
        if "position" in name.rpartition(".")[2] and isinstance(getattr(module, "padding_idx", None), int):
            return int(module.padding_idx) + 1
    return 0
