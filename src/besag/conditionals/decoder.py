"""Encoder-decoders of transformers as ones who answer about a target, given a source.

`MaskedDecoder` answers p(x_i | what is shown on both sides, s), `CausalDecoder` p(x_i | x_<i, s). Knows that the source
is read once and handed back by the engine. How the network is put together is `encoder_decoder.py`'s knowledge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from besag.arrays import Ints
from besag.conditionals.configuration import DECODER_KEY, decoder_of
from besag.conditionals.contract import SOURCE_MASK, SOURCE_STATES, Questions
from besag.conditionals.encoder_decoder import EncoderDecoder, lift
from besag.conditionals.length_head import LengthHead
from besag.conditionals.network import CLOSE, Wrapped, check_ids, embedded, gap
from besag.conditionals.replay import SHOWN, Replay
from besag.conditionals.split import attention_for, compile_layers
from besag.errors import BesagError, quoted
from besag.vocabulary import Vocabulary

PROBE, PADDING = 6, 2
FEW = 1024  # tokens of a beam: up to here a recorded pass over all of them is faster than one over the newest


class Decoder(Wrapped, ABC):
    """A network that writes a target beside a source."""

    sees: Literal["both", "left"]
    split = True

    def __init__(self, model: Any, vocabulary: Vocabulary, name: str | None = None) -> None:
        super().__init__(model, vocabulary, name)
        self.max_source = self.max_length
        check_ids(model, vocabulary, self.title)
        self.core = EncoderDecoder(model, precise=self.dtype in (torch.bfloat16, torch.float16))
        with torch.no_grad():
            self._study()
        pad_id = vocabulary.pad_id if self.pads else None
        self.replay = Replay(self._read, pad_id, self.max_length)  # type: ignore[arg-type]
        self._reading = Replay(self._encoded, pad_id, self.max_source)  # type: ignore[arg-type]

    def source_ids(self, texts: Sequence[str]) -> list[Ints]:
        """(T,) the ids of each source, with the special tokens that stand around a text."""
        return [one.ids for one in self.vocabulary.encode(list(texts))]

    def encode(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:  # (N, S), (N, S) -> (N, S, H)
        """On CUDA the states may lie where the next ones will: whoever keeps them copies them (`replay.py`)."""
        return self._reading(ids, {} if mask is None else {SHOWN: mask.long()})[:, : ids.shape[1]]

    @abstractmethod
    def rows(self, questions: Questions) -> Tensor: ...  # (M, H)

    def head(self, rows: Tensor) -> Tensor:  # (M, H) -> (M, V)
        return self.core.head(rows)

    def compile(self, **options: Any) -> None:
        """Compile the layers for sequences of all shapes."""
        for part in (self.core.encoder, self.core.decoder):
            compile_layers(part, dynamic=True, **options)

    @cached_property
    def lengths(self) -> LengthHead:
        """p(n | source), as it was learned beside the network; refused where none was."""
        return LengthHead.load(self.folder, self.title).to(self.device)

    def _encoded(self, ids: Tensor, context: Mapping[str, Tensor]) -> Tensor:  # (N, S) -> (N, S, H)
        return self.core.read(ids, context[SHOWN].bool() if SHOWN in context else None)

    def _read(self, ids: Tensor, context: Mapping[str, Tensor]) -> Tensor:  # (N, L) -> (N, L, H)
        if SOURCE_STATES not in context:
            raise BesagError(f"{self.title} answers given a source, and none was given: lm.given(source) takes one")
        shown, source = context.get(SHOWN), context.get(SOURCE_MASK)
        with attention_for(ids.shape[1]):
            return self.core.write(
                ids,
                context[SOURCE_STATES].to(self.dtype),
                None if source is None else source.bool(),
                None if shown is None else self._seen(shown.bool()),
            )

    @abstractmethod
    def _seen(self, shown: Tensor) -> Tensor: ...  # (N, L) bool -> (N, 1 or L, L)

    def _study(self) -> None:
        """Its width, and whether padding changes anything, on a short probe."""
        known = embedded(self.model)
        target = (torch.arange(2 * PROBE, device=self.device).view(2, PROBE) + 3) % known  # (2, L)
        memory = self.core.read(target)
        states = self._read(target, {SOURCE_STATES: memory})
        logits = self.head(states.flatten(0, 1))
        self.width: int = logits.shape[-1]
        if bool((logits.isnan() | logits.isposinf()).any()):
            advice = "its weights are broken" if self.dtype == torch.float32 else "try dtype='float32'"
            raise BesagError(f"{self.title} answers with numbers that are no numbers in {self.dtype}: {advice}")
        shown = torch.ones_like(target)
        shown[1, PROBE - PADDING :] = 0
        padded = self._read(target, {SOURCE_STATES: memory, SHOWN: shown})
        alone = self._read(target[1:, : PROBE - PADDING], {SOURCE_STATES: memory[1:]})
        self.pads = gap(padded[1:, : PROBE - PADDING], alone) <= CLOSE[self.dtype]


class MaskedDecoder(Decoder):
    """p(x_i ∣ what is shown of the target on both sides, s), from a network whose decoder was trained so."""

    sees: Literal["both", "left"] = "both"

    def __init__(self, model: Any, vocabulary: Vocabulary, name: str | None = None) -> None:
        if decoder_of(model.config) != "masked":
            raise BesagError(
                f"{quoted(name or type(model).__name__)} has a left-to-right decoder (its config.json does not say "
                f'{DECODER_KEY} = "masked"): it cannot be asked about hidden places. Train it on with model.start and '
                f'model.decoder = "masked", or use it from the left'
            )
        if vocabulary.mask_id is None:
            raise BesagError(
                f"the tokenizer of {quoted(name or type(model).__name__)} has no mask token, so its decoder cannot be "
                f"asked about a hidden place; it needs the tokenizer it was trained with"
            )
        super().__init__(lift(model), vocabulary, name)

    def rows(self, questions: Questions) -> Tensor:
        states = self.replay(questions.ids, questions.context)  # (N, L, H)
        return states[questions.row, questions.place]

    def _seen(self, shown: Tensor) -> Tensor:
        return shown[:, None]


class CausalDecoder(Decoder):
    """p(x_i ∣ x_<i, s). `bos_id` is put before a target by whoever asks, unless the tokenizer puts it there itself.

    Where the tokenizer puts another token first (BART), the network's start stands before that one, added here.
    """

    sees: Literal["both", "left"] = "left"

    def __init__(self, model: Any, vocabulary: Vocabulary, name: str | None = None) -> None:
        self.bos_id: int | None = start_of(model.config)
        [example] = vocabulary.encode([vocabulary.mask_token or "a"])
        head = example.ids[: int(np.argmin(example.special))].tolist()
        self.prefixed = bool(head) and head[0] != self.bos_id
        self.begins = (*[self.bos_id] * (self.prefixed or not head), *head)  # what stands before a target
        super().__init__(model, vocabulary, name)

    def rows(self, questions: Questions) -> Tensor:
        ids, place, context = questions.ids, questions.place, dict(questions.context)
        if self.prefixed:
            start = ids.new_full((len(ids), 1), int(self.bos_id or 0))
            ids, place = torch.cat([start, ids], dim=1), place + 1
            if SHOWN in context:
                mask = context[SHOWN]
                context[SHOWN] = torch.cat([torch.ones_like(mask[:, :1]), mask], dim=1)
        elif bool((place == 0).any()):
            raise BesagError(
                f"place 0 was asked of {self.title}, but nothing stands before it to answer from: put its start token "
                f"before the target"
            )
        states = self._read(ids, context)  # (N, L, H)
        return states[questions.row, place - 1]

    def rereads(self, beginnings: int, tokens: int) -> bool:
        """Is it faster to read whole beginnings again, recorded, than to go on from a cache, which cannot be?"""
        return self.device.type == "cuda" and self.replay.pad_id is not None and beginnings * tokens <= FEW

    def reread(self, ids: Tensor, memory: Tensor, shown: Tensor) -> Tensor:  # (N, L), (N, S, H), (N, S) -> (N, H)
        """The state of the last token of each beginning, which stands before its next one."""
        states = self.replay(ids, {SOURCE_STATES: memory, SOURCE_MASK: shown.long()})
        return states[:, ids.shape[1] - 1]

    def _seen(self, shown: Tensor) -> Tensor:
        length = shown.shape[1]
        return shown[:, None] & torch.ones(length, length, dtype=torch.bool, device=shown.device).tril()


def start_of(config: Any) -> int:
    """The token that a decoder begins from."""
    start: int | None = getattr(config, "decoder_start_token_id", None)
    start = config.bos_token_id if start is None else start
    if start is None:
        raise BesagError("the config.json names no decoder_start_token_id, so nobody knows where its decoder begins")
    return start
