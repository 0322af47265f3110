"""An encoder-decoder as it is trained: states of targets beside their sources, asked as those of any network are.

`states(ids, layout)` finds the sources in the layout, so that an objective need not know that there are any. Batches
are padded, sources and targets each to their own longest. Knows no loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from besag.conditionals.configuration import decoder_of
from besag.conditionals.decoder import start_of
from besag.conditionals.encoder_decoder import EncoderDecoder
from besag.conditionals.length_head import FILE as HEAD_FILE
from besag.conditionals.length_head import LengthHead
from besag.conditionals.split import compile_layers
from besag.errors import BesagError
from besag.training.network.batch import Layout, Source
from besag.training.network.encoder import Encoder, padded


class Translator(Encoder):
    """`model` is a network of transformers that reads and writes, its causal mask lifted or not."""

    def __init__(
        self, model: Any, *, mask_id: int, pad_id: int, special_ids: frozenset[int], most: int | None = None
    ) -> None:
        nn.Module.__init__(self)
        self.model = model
        self.mask_id, self.pad_id, self.special_ids = mask_id, pad_id, special_ids
        self.ragged = self.watched = False
        self.smoothing = 0.0
        self.causal = decoder_of(model.config) == "causal"
        self.start = start_of(model.config)
        self.length_head = None if most is None else LengthHead(model.config.d_model, most)
        self.core = EncoderDecoder(model)
        self.width: int = model.get_output_embeddings().weight.shape[0]
        self._head = self.core.head
        self._once: dict[int, tuple[Source, Tensor, Tensor]] | None = None  # by the identity of a source, which is held
        self._learns = False  # does what is read there learn?

    @property
    def trained(self) -> nn.Module:
        return self

    def go_on_with_lengths(self, start: str | Path) -> None:
        """The length head that lies beside the network it goes on from, if there is one for as many lengths."""
        if self.length_head is not None and (Path(start) / HEAD_FILE).is_file():
            known = LengthHead.load(start, str(start))
            if known.linear.weight.shape == self.length_head.linear.weight.shape:
                self.length_head.load_state_dict(known.state_dict())

    def states(
        self, ids: Tensor, layout: Layout, *, causal: bool = False, seen: Tensor | None = None
    ) -> Tensor:  # (T, H)
        if layout.source is None:
            raise BesagError("a translator was asked about targets without sources")
        memory, shown = self.read(layout.source)
        table, real = padded(ids, layout, self.pad_id)
        whole = real[:, None, :]  # (R, 1, L)
        if seen is not None:
            whole = whole & seen
        if causal or self.causal:
            length = table.shape[1]
            whole = whole & torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()
        return self.core.write(table, memory, shown, whole)[layout.row, layout.column]

    def read(self, source: Source) -> tuple[Tensor, Tensor]:
        """(R, S, H) what the encoder makes of the sources, (R, S) bool which places are not padding."""
        if self._once is not None and id(source) in self._once:
            return self._once[id(source)][1:]
        table, shown = padded(source.ids, source.layout, self.pad_id)
        with torch.set_grad_enabled(torch.is_grad_enabled() if self._once is None else self._learns):
            memory = self.core.read(table, shown)
        if self._once is not None:
            self._once[id(source)] = source, memory, shown
        return memory, shown

    @contextmanager
    def reading_once(self) -> Iterator[None]:
        """In here each source is read once, however often its states are asked for.

        It is read as whoever enters would read it: a first guess (`correct`, `glance`) needs no gradient;
        what comes later does.
        """
        outer = self._once
        if outer is None:
            self._once, self._learns = {}, torch.is_grad_enabled()
        try:
            yield
        finally:
            self._once = outer

    def compile_layers(self) -> None:
        from torch.fx.experimental import _config  # slow to import, and needed by nobody else

        _config.use_duck_shape = False  # sources and targets of a first batch that are equally long are so by chance
        for part in (self.core.encoder, self.core.decoder):
            compile_layers(part, dynamic=True)
        self._compile_loss()
