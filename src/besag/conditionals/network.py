"""What masked and causal networks share: the head on asked rows alone, and what a short probe finds out at the start.

Nothing here trusts a family's reputation. Whether the head can be cut off, whether a mask must be given, whether
padding changes anything and which side the network sees: each is tried on a few short sequences, some of which hold the
pad token as an ordinary value. Knows no family, no batch, no method.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from itertools import cycle, islice
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from besag.checks import is_number
from besag.conditionals.contract import NOTHING
from besag.conditionals.eight_bit_linear import peaked_layers, relative_time, replace_linear
from besag.conditionals.eight_bits import Rows
from besag.conditionals.split import Head, Reader, compile_layers
from besag.errors import BesagError, quoted
from besag.hardware import eight_bit_failure, few_threads
from besag.vocabulary import Vocabulary

log = logging.getLogger(__name__)

PROBE_LENGTH, PROBE_PADDING = 7, 2
TEXT = ("The keys to the cabinet are on the table.", "In 1905 he published four papers that changed physics.")
SHORTEST = 4  # the least that the longest input may be: two special tokens and two of text
SANE_LENGTH = 1_000_000  # tokenizers write "no limit" as 10^30

# Largest difference, relative to the largest number, between answers that should be the same bit for bit because the
# same products are taken, and between answers whose products are cut differently and so round differently.
SAME = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-4, torch.bfloat16: 1e-3}
CLOSE = {
    torch.float64: 1e-10, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.int8: 5e-2,
}  # fmt: skip
NOTHING_STORED: Mapping[str, Rows] = MappingProxyType({})
COMPILED = 4  # times as far: compiled layers round once where others round at every step


class Wrapped:
    """A network of transformers and its tokenizer, as all hold them who answer by one. It is set to eval."""

    def __init__(self, model: Any, vocabulary: Vocabulary, name: str | None = None) -> None:
        self.model = model.eval()
        self.vocabulary = vocabulary
        self.name = name or str(model.config.name_or_path) or type(model).__name__
        self.folder: Path | None = None  # where it was read from
        self.device: torch.device = model.device
        self.dtype: torch.dtype = model.dtype
        self.max_length = longest(model, vocabulary.tokenizer)

    @property
    def title(self) -> str:
        return f"{self.name!r} ({type(self.model).__name__})"


class Network(Wrapped):
    """A network with a head over a vocabulary. `split` says whether the head runs on the asked rows alone."""

    def __init__(self, model: Any, vocabulary: Vocabulary, name: str | None = None) -> None:
        super().__init__(model, vocabulary, name)
        if model.config.is_encoder_decoder:
            raise BesagError(f"{self.title} is an encoder-decoder, which reads one text and writes another: {USABLE}")
        check_ids(model, vocabulary, self.title)
        with torch.no_grad(), few_threads(sum(weight.numel() for weight in model.parameters())):
            self._study()  # not in inference mode: what a network caches in it could not be trained afterwards

    def head(self, rows: Tensor) -> Tensor:
        return self._head(rows)

    def compile(self, **options: Any) -> None:
        """Compile the layers for sequences of all shapes; leave them as they are, with a warning, if that fails."""
        probe = self._probe().to(self.device)
        with torch.inference_mode():
            plain = self._read(probe)
            layers = compile_layers(self._read.module, dynamic=True, **options)
            try:
                trip, found = None, gap(self._read(probe), plain)
            except Exception as problem:
                trip, found = problem, inf
        if found > COMPILED * CLOSE[self.dtype]:
            for layer in layers:
                layer._compiled_call_impl = None  # as it was; torch has no other way back
            why = f"it broke: {trip}" if trip else f"its numbers differ by {found:.2g} of the largest"
            warnings.warn(f"{self.title} runs as it is, not compiled: {why}", stacklevel=3)

    def round_to_eight_bits(self, stored: Mapping[str, Rows] = NOTHING_STORED) -> None:
        """Run the linear layers of the body on 8-bit numbers; the head stays as it is. Says where that is no gain.

        `stored` are matrices that are in eight bits already, by their names.
        """
        body, failure = self._read.module, eight_bit_failure()
        path = next((name for name, part in self.model.named_modules() if part is body), "")
        with torch.no_grad(), few_threads(sum(weight.numel() for weight in self.model.parameters())):
            peaked = peaked_layers(body, lambda: [self._read(ids) for ids in self._text()])
            replaced = replace_linear(body, stored, exact=not failure, prefix=path, peaked=peaked)
            if not replaced:
                warnings.warn(
                    f"{self.title} has no linear layers to run on 8-bit numbers: it runs in float32", stacklevel=3
                )
                return
            slower = relative_time(replaced)
        self.dtype = torch.int8
        if slower > 1:
            why = failure and f", because this processor cannot multiply such numbers ({failure})"
            warnings.warn(
                f"8-bit products are slower here than float32: {self.title} takes {slower:.1f} times as long in its "
                f"linear layers{why}. Its scores are those of 8-bit products elsewhere; dtype='float32' is faster and "
                f"more precise",
                stacklevel=3,
            )

    def _text(self) -> list[Tensor]:
        """A little text, special tokens and all: random tokens have fewer peaks in a network than words have."""
        encoded = [self.vocabulary.tokenizer(text)["input_ids"][: self.max_length] for text in TEXT]
        return [torch.tensor([ids]) for ids in encoded if ids]

    def _study(self) -> None:
        probe = self._probe().to(self.device)  # (4, L)
        logits = self._logits(probe)  # (4, L, V)
        self.width: int = logits.shape[-1]
        self._read, self._head, states = self._cut(probe, logits)
        self.split = self._head is not _as_they_are
        states = self._drop_mask(probe, states)
        self.pads = self._bears_padding(probe)
        self._from_left, self._from_right = self._influences(probe, states)

    def _probe(self) -> Tensor:
        """Two short rows of ordinary tokens, and the same two with the mask and every pad token among their values."""
        vocabulary, known = self.vocabulary, embedded(self.model)
        length = min(PROBE_LENGTH, self.max_length or PROBE_LENGTH)
        pads = {vocabulary.pad_id, getattr(self.model.config, "pad_token_id", None), *self._padding_rows()}
        odd = [token for token in (vocabulary.mask_id, *pads) if token is not None and 0 <= token < known]
        ordinary = [token for token in range(min(known, 1000)) if token not in {*odd, *vocabulary.special_ids}]
        probe = torch.tensor(list(islice(cycle(ordinary or [0]), 2 * length))).view(2, length).repeat(2, 1)
        for place, token in zip(range(1, length), odd, strict=False):
            probe[2, -1 - place], probe[3, place] = token, token
        return probe

    def _padding_rows(self) -> set[int]:
        """The ids, or positions, for which the network keeps a row of its tables as padding."""
        rows = {getattr(module, "padding_idx", None) for module in self.model.modules()}
        return {row for row in rows if isinstance(row, int)}

    def _logits(self, ids: Tensor) -> Tensor:
        """What the whole network says, as its users call it."""
        mask = {"attention_mask": torch.ones_like(ids)} if Reader(self.model).mask else {}
        try:
            answer = self.model(input_ids=ids, **mask)
        except Exception as problem:
            raise BesagError(f"{self.title} cannot be run on token ids alone: {problem}") from problem
        logits: Tensor | None = getattr(answer, "logits", None)
        if logits is None or logits.shape[:-1] != ids.shape or logits.shape[-1] < self.vocabulary.size:
            raise BesagError(
                f"{self.title} has no head that gives every place a logit for each of the {self.vocabulary.size} "
                f"tokens of its tokenizer: {USABLE}"
            )
        if bool((logits.isnan() | logits.isposinf()).any()):
            advice = "its weights are broken" if self.dtype == torch.float32 else "try dtype='float32'"
            found = "numbers that are no numbers (NaN)" if logits.isnan().any() else "infinite logits (+∞)"
            raise BesagError(f"{self.title} answers with {found} in {self.dtype}: {advice}")
        return logits

    def _cut(self, probe: Tensor, logits: Tensor) -> tuple[Reader, Callable[[Tensor], Tensor], Tensor]:
        """Base model, head and what the base model says, if they say together what the whole network says.

        Otherwise the whole network, no head, and the whole network's logits: whatever a head trips over without its
        base model, the numbers are the same.
        """
        for precise in [True, False] if self.dtype in (torch.bfloat16, torch.float16) else [False]:
            try:
                read, head = Reader(self.model._modules[self.model.base_model_prefix]), Head(self.model, precise)
                states = read(probe)  # (4, L, H)
                if gap(head(states.flatten(0, 1)).view(logits.shape), logits) <= CLOSE[self.dtype]:
                    return read, head, states
            except Exception as trip:
                log.info("the head of %s is not run apart from its base model: %r", self.title, trip)
        return Reader(self.model), _as_they_are, logits

    def _drop_mask(self, probe: Tensor, states: Tensor) -> Tensor:
        """Give no mask where nothing is padded, if the network says the same without one."""
        read = self._read
        if read.mask:
            read.mask = False
            without = attempt(read, probe)
            if without is not None and gap(without, states) <= SAME[self.dtype]:
                return without
            read.mask = True
        return states

    def _bears_padding(self, probe: Tensor) -> bool:
        """Does a row say the same alone, and padded on the right beside longer ones?"""
        if "attention_mask" not in self._read.accepts:
            return False
        length = probe.shape[1] - PROBE_PADDING
        padded, mask = probe.clone(), torch.ones_like(probe)
        padded[-1, length:], mask[-1, length:] = self.vocabulary.pad_id or 0, 0
        alone, beside = attempt(self._read, probe[-1:, :length]), attempt(self._read, padded, {"attention_mask": mask})
        if alone is None or beside is None:
            return False
        return gap(beside[-1:, :length], alone) <= CLOSE[self.dtype]

    def _influences(self, probe: Tensor, states: Tensor) -> tuple[float, float]:
        """How much the other places change with the first token, and with the last."""
        first, last = probe.clone(), probe.clone()
        first[:, 0] = (probe[:, 0] + 1) % embedded(self.model)
        last[:, -1] = (probe[:, -1] + 1) % embedded(self.model)
        return gap(self._read(first)[:, 1:], states[:, 1:]), gap(self._read(last)[:, :-1], states[:, :-1])


USABLE = (
    "besag uses a masked language model (a *ForMaskedLM: BERT, RoBERTa, ModernBERT, ESM …) or, from the left only, a "
    "causal one (a *ForCausalLM: GPT-2 …)"
)


def attempt(read: Reader, ids: Tensor, context: Mapping[str, Tensor] = NOTHING) -> Tensor | None:
    """What a network says when asked in this way; None if it breaks, and so is not to be asked in this way."""
    try:
        return read(ids, context)
    except Exception:
        return None


def gap(one: Tensor | None, other: Tensor) -> float:
    """Largest difference relative to the largest number; infinite where the two are not of one kind."""
    if one is None or one.shape != other.shape:
        return inf
    one, other = (part if part.dtype == torch.float64 else part.float() for part in (one, other))
    finite = other.isfinite()
    if not torch.equal(one.isfinite(), finite):
        return inf
    scale = other[finite].abs().max()
    return float((one[finite] - other[finite]).abs().max() / scale) if float(scale) > 0 else 0.0


def embedded(model: Any) -> int:
    """How many token ids a network has an embedding for."""
    try:
        weight = getattr(model.get_input_embeddings(), "weight", None)
    except NotImplementedError:
        weight = None
    return int(getattr(model.config, "vocab_size", 1) if weight is None else weight.shape[0])


def check_ids(model: Any, vocabulary: Vocabulary, title: str) -> None:
    """Refuse a tokenizer with ids that the network has no embedding for."""
    table = vocabulary.tokenizer.get_vocab()
    token = max(table, key=table.__getitem__)
    if table[token] >= embedded(model):
        raise BesagError(
            f"the tokenizer of {title} has a token {token!r} with the id {table[token]}, but the network knows "
            f"the ids 0 … {embedded(model) - 1} only: they do not belong together"
        )


def longest(model: Any, tokenizer: Any) -> int | None:
    """Most places in one sequence: what the tokenizer and the network's positions allow; None where neither says."""
    told, room = tokenizer.model_max_length, places(model)
    if not is_number(told):
        raise BesagError(f"the tokenizer says that model_max_length={quoted(told)}, which is no number")
    limits = [*([int(told)] if 0 < told < SANE_LENGTH else []), *([] if room is None else [room])]
    found = min(limits, default=None)
    if found is not None and found < SHORTEST:
        said = f"model_max_length={quoted(told)} of the tokenizer" if found != room else f"{room} of the network"
        raise BesagError(f"the longest input has {found} tokens ({said}), and no text fits into so few")
    return found


def places(model: Any) -> int | None:
    """Most places that the network's positions allow; None where it does not say."""
    room: Any = getattr(model.config, "max_position_embeddings", None)
    if not is_number(room) or not 0 < room < SANE_LENGTH * 1000:
        return None
    return int(room) - first_position(model)


def first_position(model: Any) -> int:
    """The number that the first place has: a learned table that keeps a row for padding starts after that row."""
    unused = [
        module.padding_idx + 1
        for name, module in model.named_modules()
        if "position" in name.rpartition(".")[2] and isinstance(getattr(module, "padding_idx", None), int)
    ]
    return max(unused, default=0)


def _as_they_are(rows: Tensor) -> Tensor:
    return rows
