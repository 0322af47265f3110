"""Any law of masks as a data collator: examples in, padded `input_ids`, `attention_mask` and `labels` out.

Knows the fields of Hugging Face examples and nothing of the network. It needs no part of the run in this package: it
stands where DataCollatorForLanguageModeling stood, in a Trainer or a DataLoader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from besag.arrays import Bools, Ints
from besag.checks import checked, number, whole_number
from besag.errors import BesagError, quoted
from besag.masks import Masking, Passages, Replacement, law, ordinary_ids, rate_named
from besag.masks.law import Adaptive, MaskLaw, Statistics
from besag.masks.rates import Rate
from besag.training.data.words import Words

IGNORED = -100  # the label of a token nothing is asked about
_HIGH = 32  # bits of a seed below those that number batches or epochs


class _Example(NamedTuple):
    """One example, L tokens, padding counted."""

    ids: Ints  # (L,)
    shown: Bools  # (L,) not padding
    free: Bools  # (L,)
    word: Ints  # (L,)
    span: Ints  # (L,)
    types: Ints | None  # (L,)


class MaskingCollator:
    """Hides tokens by a law, and labels them.

    An example is a mapping with `input_ids`, or a plain list of ids. It may also have

    - `attention_mask`, `token_type_ids`: kept, and padded;
    - `special_tokens_mask`: what is never hidden. Without it every special token of the tokenizer is one, except the
      unknown token, which stands for text. The mask and the padding token are never hidden;
    - `word_ids`: a word number for each token, None at special tokens, as `encoding.word_ids()` gives them. Exact.
      Without it words are found from the ids: exact for fast tokenizers of every layout, unless the ids were cut
      within a character; by the marks on the tokens for slow ones (see `besag.training.data.words`);
    - `spans` with `offset_mapping`: given spans (entities, errors) as (start, end) in characters; or `span_ids`, a
      number for each token and −1 outside all spans;
    - `draw`: the number of its noise, below 2³².

    The masks of an example that has `draw` are a function of (seed, epoch, draw, its tokens): neither the number of
    workers nor the batch it stands in changes them. Draw numbers that stay the same from epoch to epoch need
    `set_epoch`, or an example will have the same masks in every epoch. Without `draw` batches are numbered as they
    come: masks are the same in every run with the same torch seed and the same number of workers, and differ from
    epoch to epoch. A Trainer drops such fields unless it is told `remove_unused_columns=False`.

    Rates and laws that move with the run ask `set_progress`; `callback()` calls both setters from a Trainer.
    """

    @checked
    def __init__(
        self,
        tokenizer: Any,
        law: str | MaskLaw = "whole_word",
        rate: float | Rate = 0.3,
        *,
        options: Mapping[str, Any] | None = None,
        rate_law: str = "constant",
        end_rate: float | None = None,
        hold: float = 0.0,
        mask: float = 1.0,
        random: float = 0.0,
        keep: float = 0.0,
        per: Literal["token", "word", "run"] = "token",
        predict: float = 1.0,
        statistics: Statistics | None = None,
        pad_to_multiple_of: int | None = None,
        seed: int = 0,
    ) -> None:
        """`options` are the law's, `statistics` what it may learn from the corpus (`besag.masking_statistics` counts
        it); the rest is as in a recipe."""
        if not hasattr(tokenizer, "mask_token_id"):
            raise BesagError(f"tokenizer={quoted(tokenizer)}: give a tokenizer of transformers")
        if tokenizer.mask_token_id is None:
            raise BesagError("this tokenizer has no mask token: set tokenizer.mask_token, or add one.")
        self.tokenizer = tokenizer
        if pad_to_multiple_of is not None:
            whole_number(pad_to_multiple_of, "pad_to_multiple_of", most=2**20)
        self.pad_to_multiple_of = pad_to_multiple_of
        self.seed = whole_number(seed, "seed", least=0, most=2**47)
        if statistics is not None and not isinstance(statistics, Statistics):
            raise BesagError(
                f"statistics={quoted(statistics)}: give what besag.masking_statistics(texts, tokenizer) gives"
            )
        chosen = _named(law, options)
        if isinstance(law, str) and statistics is None:
            _refuse_unprepared(chosen)
        self.masking = Masking(
            chosen if statistics is None else chosen.prepare(statistics),
            rate if isinstance(rate, Rate) else rate_named(rate_law, rate, end_rate, hold),
            Replacement(
                int(tokenizer.mask_token_id),
                mask,
                random,
                keep,
                ordinary_ids(len(tokenizer), tokenizer.all_special_ids),
                per,
            ),
            predict,
        )
        self._words = Words(tokenizer)
        self._known = len(tokenizer)
        unknown, padding = tokenizer.unk_token_id, tokenizer.pad_token_id
        self._special = np.array(sorted({*tokenizer.all_special_ids} - {unknown}), dtype=np.int64)
        self._never = np.array([id for id in (tokenizer.mask_token_id, padding) if id is not None], dtype=np.int64)
        self._clock = torch.zeros(2, dtype=torch.float64)  # progress and epoch
        self._clock.share_memory_()  # type: ignore[no-untyped-call]  # with every worker
        self._batches = 0  # of this process

    @checked
    def set_progress(self, progress: float) -> None:
        """From 0 to 1. Workers see it at once, so batches they fetch ahead are a little early."""
        self._clock[0] = number(progress, "progress", least=0, most=1)

    @checked
    def set_epoch(self, epoch: int) -> None:
        """Other masks for the same draw numbers."""
        self._clock[1] = whole_number(epoch, "epoch", least=0, most=2**15)

    @checked
    def __call__(self, features: Sequence[Any]) -> dict[str, Tensor]:
        if isinstance(features, str | Mapping) or not isinstance(features, Sequence):
            raise BesagError(f"{quoted(features)} is no batch: give a list of examples.")
        if not len(features):
            raise BesagError("a batch needs at least one example.")
        examples = [self._read(feature) for feature in features]
        seed, draw = self._noise(features)
        passages = _passages(examples, draw)
        corrupted = self.masking(passages, float(self._clock[0]), seed)
        labels = np.where(corrupted.asked, passages.ids, IGNORED)

        length = max(len(example.ids) for example in examples)
        if self.pad_to_multiple_of:
            length = -(-length // self.pad_to_multiple_of) * self.pad_to_multiple_of
        padding = self.tokenizer.pad_token_id or 0
        batch = {
            "input_ids": self._padded([example.ids for example in examples], length, padding),
            "attention_mask": self._padded([example.shown.astype(np.int64) for example in examples], length, 0),
            "labels": np.full((len(examples), length), IGNORED),
        }
        if all(example.types is not None for example in examples):
            types = [np.asarray(example.types) for example in examples]
            batch["token_type_ids"] = self._padded(types, length, self.tokenizer.pad_token_type_id)
        at = batch["attention_mask"] > 0  # row by row, the order of the passages
        batch["input_ids"][at], batch["labels"][at] = corrupted.inputs, labels
        return {name: torch.from_numpy(part) for name, part in batch.items()}

    def callback(self) -> Any:
        """A TrainerCallback that tells this collator how far the run is: `Trainer(…, callbacks=[…])`."""
        from transformers import TrainerCallback

        collator = self

        class Tell(TrainerCallback):
            def on_epoch_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
                collator.set_epoch(int(state.epoch or 0))

            def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
                collator.set_progress(state.global_step / max(state.max_steps, 1))

        return Tell()

    def _noise(self, features: Sequence[Any]) -> tuple[int, Ints]:
        """A seed, and the draw (R,) of each example under it."""
        worker = torch.utils.data.get_worker_info()
        if worker is not None and isinstance(self.masking.law, Adaptive):
            raise BesagError(
                f"the law {self.masking.law.name!r} learns from the run, and worker processes would not see what was "
                "learned: use num_workers=0."
            )
        batch = self._batches
        self._batches += 1
        if all(isinstance(feature, Mapping) and "draw" in feature for feature in features):
            known = [whole_number(_scalar(feature["draw"]), "draw", least=0, most=2**32 - 1) for feature in features]
            draw = np.array(known, dtype=np.int64)
            return self.seed + (int(self._clock[1]) << _HIGH), draw
        base = 0
        if worker is not None:
            batch = batch * worker.num_workers + worker.id  # workers take batches in turn
            base = worker.seed - worker.id  # new in each epoch, while the workers begin to count anew
        return self.seed + base + (batch << _HIGH), np.arange(len(features))

    def _read(self, feature: Any) -> _Example:
        fields: Mapping[str, Any] = feature if isinstance(feature, Mapping) else {"input_ids": feature}
        if "input_ids" not in fields:
            raise BesagError(f"an example needs input_ids; this one has {', '.join(map(str, fields)) or 'nothing'}.")
        ids = _numbers(fields["input_ids"], "input_ids")
        size = len(ids)
        odd = ids[(ids < 0) | (ids >= self._known)]
        if len(odd):
            raise BesagError(f"input_ids has {odd[0]}, and the tokenizer knows the ids 0 … {self._known - 1} only.")
        if self.masking.law.spanned and "spans" not in fields and "span_ids" not in fields:
            raise BesagError(
                f"the law {self.masking.law.name!r} is about given spans: an example needs spans with offset_mapping, "
                "or span_ids (a Trainer drops them unless remove_unused_columns=False)."
            )
        attention, mask = fields.get("attention_mask"), fields.get("special_tokens_mask")
        shown = np.ones(size, dtype=np.bool_) if attention is None else _numbers(attention, "attention_mask", size) > 0
        special = (
            np.isin(ids, self._special) if mask is None else _numbers(mask, "special_tokens_mask", size) > 0
        ) | ~shown
        types = fields.get("token_type_ids")
        return _Example(
            ids,
            shown,
            ~special & ~np.isin(ids, self._never),
            self._word(fields, ids, special),
            _spans(fields, size),
            None if types is None else _numbers(types, "token_type_ids", size),
        )

    def _word(self, fields: Mapping[str, Any], ids: Ints, special: Bools) -> Ints:
        given = fields.get("word_ids")
        if given is None:
            return self._words.numbers(ids, special)
        key = _numbers([-1 if word is None else word for word in given], "word_ids", len(ids))
        if (
            not self._words.splits and len(np.unique(key[~special])) == 1
        ):  # a tokenizer that knows no words calls all one
            return self._words.numbers(ids, special)
        begins = np.append(True, (key[1:] != key[:-1]) | (key[1:] < 0))[: len(ids)] & ~special
        return np.where(special, -1, np.cumsum(begins) - 1)

    def _padded(self, rows: list[Ints], length: int, value: int) -> Ints:
        padded = np.full((len(rows), length), value, dtype=np.int64)
        left = self.tokenizer.padding_side == "left"
        for line, row in zip(padded, rows, strict=True):
            line[length - len(row) if left else 0 : length if left else len(row)] = row
        return padded


def _named(chosen: str | MaskLaw, options: Mapping[str, Any] | None) -> MaskLaw:
    if options is not None and not isinstance(options, Mapping):
        raise BesagError(f"options={quoted(options)}: give a table of the law's options, such as {{'longest': 5}}.")
    if isinstance(chosen, str):
        return law(chosen, **{str(name): value for name, value in (options or {}).items()})
    if not isinstance(chosen, MaskLaw):
        raise BesagError(f"law={quoted(chosen)}: give the name of a law of masks, or one of besag.masks.")
    if options:
        raise BesagError(f"{chosen} has its options already: give them there, not as {dict(options)}.")
    return chosen


def _refuse_unprepared(chosen: MaskLaw) -> None:
    if type(chosen).prepare is not MaskLaw.prepare:
        raise BesagError(
            f"the law {chosen.name!r} takes a table from the corpus: give "
            "statistics=besag.masking_statistics(texts, tokenizer)"
        )


def _passages(examples: list[_Example], draw: Ints) -> Passages:
    """The examples without their padding."""
    ids, free, word, span = (
        np.concatenate([part[example.shown] for example in examples for part in [getattr(example, name)]])
        for name in ("ids", "free", "word", "span")
    )
    row = np.repeat(np.arange(len(examples)), [int(example.shown.sum()) for example in examples])
    return Passages(ids, row, free, word, span, draw)


def _scalar(given: Any) -> Any:
    """A number, also out of a tensor of one."""
    return given.item() if isinstance(given, Tensor | np.ndarray) and given.size == 1 else given


def _numbers(given: Any, name: str, size: int | None = None) -> Ints:
    try:
        numbers = np.asarray(given)
        whole = numbers.dtype == np.bool_ or np.issubdtype(numbers.dtype, np.integer) or not numbers.size
    except (ValueError, TypeError, RuntimeError):  # lists of several lengths, tensors elsewhere
        whole = False
    if not whole:
        raise BesagError(f"{name} of an example is {quoted(given)}: give a list of whole numbers.")
    if numbers.ndim != 1 or (size is not None and len(numbers) != size):
        wanted = "one sequence of numbers" if size is None else f"{size} numbers, one for each of its input_ids"
        raise BesagError(f"{name} of an example must be {wanted}; got shape {numbers.shape}.")
    return numbers.astype(np.int64)


def _spans(fields: Mapping[str, Any], size: int) -> Ints:
    """(L,) the number of the given span each token stands in: the first that shares a character with it; −1: none."""
    if fields.get("span_ids") is not None:
        return _numbers([-1 if span is None else span for span in fields["span_ids"]], "span_ids", size)
    found = np.full(size, -1, dtype=np.int64)
    if not fields.get("spans"):
        return found
    if fields.get("offset_mapping") is None:
        raise BesagError("spans are (start, end) in characters: they need offset_mapping. Or give span_ids, by token.")
    try:
        start, end = np.asarray(fields["offset_mapping"], dtype=np.int64).reshape(size, 2).T
        spans = np.asarray(fields["spans"], dtype=np.int64).reshape(-1, 2).tolist()
    except (ValueError, TypeError, OverflowError):
        raise BesagError(
            f"spans = {quoted(fields['spans'])} and offset_mapping: give pairs (start, end) of characters, a pair of "
            f"offset_mapping for each of the {size} tokens."
        ) from None
    for index, (first, last) in reversed(list(enumerate(spans))):
        found[(start < last) & (end > first) & (end > start)] = index
    return found
