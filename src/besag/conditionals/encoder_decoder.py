"""An encoder-decoder of transformers as three functions: read a source, write beside it, and the head on asked rows.

A decoder reads its own text from the left; its causal mask can be *lifted*, and then every place of it sees both sides.
Nothing trusts a family's reputation: after lifting, a short probe must find that earlier places change with later ones.
Knows no batch, no vocabulary, no method, and no family by name.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch
from torch import Tensor

from besag.conditionals.configuration import DECODER_KEY
from besag.conditionals.split import Head, StandIn
from besag.errors import BesagError

PROBE = 6  # tokens


def lift(model: Any) -> Any:
    """Let every place of the decoder see both sides; the configuration says so from now on."""
    _turn(model, causal=False)
    if not _sees_right(model):
        raise BesagError(
            f"the causal mask of {type(model).__name__} cannot be lifted: what comes after a place changes nothing in "
            f"its answer. BART, Marian, mBART, T5 and their kin can be used"
        )
    return model


def put_back(model: Any) -> Any:
    """The decoder as its family has it: from the left."""
    _turn(model, causal=True)
    return model


def _turn(model: Any, *, causal: bool) -> None:
    decoder = model.get_decoder()
    for config in {id(one): one for one in (model.config, decoder.config)}.values():
        config.__dict__.pop("is_causal", None)  # True would turn the encoder as well
        if not causal:
            config.is_causal = False  # transformers then makes no causal mask of what is padded …
        setattr(config, DECODER_KEY, "causal" if causal else "masked")
    for part in decoder.modules():
        if getattr(part, "besag_turned", getattr(part, "is_causal", False)):
            part.is_causal, part.besag_turned = causal, True  # … and none where nothing is padded
            if getattr(part, "has_relative_attention_bias", False):  # T5: one bucket for all that comes after, or many
                part.is_decoder = causal


@torch.no_grad()
def _sees_right(model: Any) -> bool:
    """Does the state of the first place change with the last token?"""
    training = model.training
    model.eval()
    device, known = model.device, model.get_input_embeddings().weight.shape[0]
    try:
        core = EncoderDecoder(model)
        source = torch.arange(PROBE, device=device)[None] % known  # (1, S)
        memory, shown = core.read(source), torch.ones_like(source, dtype=torch.bool)
        last = source.clone()
        last[0, -1] = (last[0, -1] + 1) % known
        one, other = (core.write(ids, memory, shown)[0, 0] for ids in (source, last))
        return not torch.equal(one, other)
    finally:
        model.train(training)


class EncoderDecoder:
    """`model` is a `*ForConditionalGeneration` or kin; it is run as it stands, its mask lifted or not."""

    def __init__(self, model: Any, *, precise: bool = False) -> None:
        self.model = model
        self.encoder, self.decoder = model.get_encoder(), model.get_decoder()
        self.head = DecoderHead(model, precise)
        self._cache = {"use_cache": False} if "use_cache" in inspect.signature(self.decoder.forward).parameters else {}

    def read(self, ids: Tensor, shown: Tensor | None = None) -> Tensor:  # (N, S), (N, S) bool -> (N, S, H)
        """What the encoder makes of sources; `shown` says which of their places are not padding."""
        pattern = None if shown is None else self._pattern(shown[:, None, None, :])
        memory: Tensor = self.encoder(input_ids=ids, attention_mask=pattern)[0]
        return memory

    def write(
        self, ids: Tensor, memory: Tensor, source_shown: Tensor | None = None, seen: Tensor | None = None
    ) -> Tensor:  # (N, L), (N, S, H), (N, S) bool, (N, 1 or L, L) bool -> (N, L, H)
        """The decoder's states beside sources that were read.

        `seen`: which places each place sees. If not given: everything or what stands before, as the decoder is run.
        """
        states: Tensor = self.decoder(
            input_ids=ids,
            attention_mask=None if seen is None else self._pattern(seen[:, None]),
            encoder_hidden_states=memory,
            encoder_attention_mask=None if source_shown is None else self._pattern(source_shown[:, None, None, :]),
            **self._cache,
        )[0]
        return states

    def step(
        self, ids: Tensor, memory: Tensor, source_shown: Tensor | None = None, cache: Any = None
    ) -> tuple[Tensor, Any]:  # (N, L), (N, S, H), (N, S) bool -> (N, L, H)
        """The states of the next tokens of a left-to-right decoder, and the cache that holds those before them."""
        answer = self.decoder(
            input_ids=ids,
            encoder_hidden_states=memory,
            encoder_attention_mask=None if source_shown is None else self._pattern(source_shown[:, None, None, :]),
            past_key_values=cache,
            use_cache=True,
        )
        return answer.last_hidden_state, answer.past_key_values

    def _pattern(self, seen: Tensor) -> Tensor:  # (N, 1, 1 or L, S) bool
        """As attention takes it. Given whole, nobody looks through it, which would stop the device in every batch."""
        if self.model.config._attn_implementation == "sdpa":
            return seen
        dtype = self.model.dtype
        return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill(~seen, torch.finfo(dtype).min)


class DecoderHead(Head):
    """The network's own head on decoder states alone, whether its base model is one part (BART) or two (T5)."""

    def __init__(self, model: Any, precise: bool) -> None:
        if model.base_model_prefix in model._modules:
            super().__init__(model, precise)
            return
        self.model, self.precise = copy.copy(model), precise
        parts = {name: part for name, part in model._modules.items() if name not in ("encoder", "decoder")}
        self.dtype = torch.float32 if precise else model.dtype
        if precise:
            parts = {name: copy.deepcopy(part).float() for name, part in parts.items()}
        self.model._modules = {**parts, "decoder": StandIn(model._modules["decoder"])}

    def __call__(self, rows: Tensor) -> Tensor:  # (M, H) -> (M, V)
        given = rows[None].to(self.dtype)
        logits: Tensor = self.model(input_ids=given, decoder_input_ids=given, encoder_outputs=(given,))[0]
        return logits[0]
