"""What a network makes of its sources, kept: each distinct source is encoded once and serves all questions about it.

    states(s) = encode(s)          (T, H), without padding, so whatever was encoded beside it
    p(x_i | shown, s)              answered from these states, those of many sources padded side by side

Where the network bears padding, sources of up to twice the length of the shortest are encoded together. Kept are as
many as fit a fixed memory, those asked about last. Knows sources and batches of them; no question, and no lock: who
asks holds that of the network.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from besag.arrays import Ints
from besag.characters import is_text
from besag.conditionals.contract import (
    SOURCE_MASK,
    SOURCE_STATES,
    Conditionals,
    Given,
    GivenSource,
    takes_source,
)
from besag.errors import BesagError, TooLong, quoted
from besag.hardware import send

KEPT_BYTES = {"cpu": 2**28, "cuda": 2**31, "mps": 2**28}


class _Batch(NamedTuple):
    """What the last batch was given: a chain asks about the same sources at every step."""

    sources: tuple[Ints, ...]
    which: Ints  # (N,)
    context: dict[str, Tensor]


class Sources:
    """The states of sources under one `Conditionals`, which may be one that takes none: then it refuses them."""

    def __init__(self, conditionals: Conditionals) -> None:
        self.conditionals = conditionals
        self.kept: OrderedDict[bytes, Tensor] = OrderedDict()  # by the bytes of the ids; asked about last comes last
        self._bytes = 0
        self._last: _Batch | None = None

    def context(self, given: Given | None, start: int, stop: int, budget: int) -> dict[str, Tensor]:
        """What goes with sequences start … stop: nothing, or the states of their sources and where they are padded."""
        if given is None:
            if takes_source(self.conditionals):
                raise BesagError(
                    f"{self.conditionals.name!r} answers about a text given its source, and no source was given: say "
                    "lm.given(source), lm.score(texts, sources=[…]), or --source on the command line"
                )
            return {}
        which, last = given.which[start:stop], self._last
        if last is not None and last.sources is given.sources and np.array_equal(last.which, which):
            return last.context
        self._last = None  # before there are two of them
        self._last = _Batch(given.sources, which, self._assembled(given.sources, which, budget))
        return self._last.context

    def states(self, sources: Sequence[Ints], budget: int) -> list[Tensor]:
        """(T, H) of each source; `budget`: how many tokens are encoded at a time."""
        keys = [self._key(source) for source in sources]
        new = {key: source for key, source in zip(keys, sources, strict=True) if key not in self.kept}
        found = {key: self.kept[key] for key in keys if key not in new}
        for key in found:
            self.kept.move_to_end(key)
        for batch in self._batches(list(new.items()), budget):
            found.update(zip([key for key, _ in batch], self._encoded([ids for _, ids in batch]), strict=True))
        self._keep({key: found[key] for key in new})
        return [found[key] for key in keys]

    def forget(self) -> None:
        """All of it: what is encoded from here on does not depend on what was encoded before."""
        self.kept.clear()
        self._bytes, self._last = 0, None

    def _assembled(self, sources: tuple[Ints, ...], which: Ints, budget: int) -> dict[str, Tensor]:
        numbers, place = np.unique(which, return_inverse=True)  # the sources of this batch, and whose each is
        states = self.states([sources[number] for number in numbers], budget)
        if len(states) == 1:
            return {SOURCE_STATES: states[0].expand(len(which), -1, -1)}
        of = send(torch.from_numpy(place), self.conditionals.device)
        context = {SOURCE_STATES: pad_sequence(states, batch_first=True)[of]}  # (N, T, H)
        mask = _mask([len(one) for one in states])
        if mask is not None:
            context[SOURCE_MASK] = send(mask, self.conditionals.device)[of]
        return context

    def _key(self, source: Ints) -> bytes:
        network = require_source(self.conditionals)
        if not len(source):
            raise BesagError(f"a source without tokens was given to {network.name!r}, which reads 1 at least")
        if too_long(network, source):
            raise TooLong(
                f"a source has {len(source):,} tokens, special ones included, and {network.name!r} reads "
                f"{network.max_source:,}: give a shorter one"
            )
        return np.ascontiguousarray(source, np.int64).tobytes()

    def _batches(self, new: list[tuple[bytes, Ints]], budget: int) -> Iterator[list[tuple[bytes, Ints]]]:
        """Sources to be encoded together, longest first: of one length, or of similar ones where they may be padded."""
        batch: list[tuple[bytes, Ints]] = []
        for one in sorted(new, key=lambda item: -len(item[1])):
            longest, length = len(batch[0][1]) if batch else 0, len(one[1])
            alike = 2 * length >= longest if self.conditionals.pads else length == longest
            if batch and (not alike or longest * (len(batch) + 1) > budget):
                yield batch
                batch = []
            batch.append(one)
        if batch:
            yield batch

    def _encoded(self, sources: list[Ints]) -> list[Tensor]:
        network = require_source(self.conditionals)
        lengths = [len(source) for source in sources]
        padded = np.full((len(sources), max(lengths)), network.vocabulary.pad_id or 0)
        for row, source in zip(padded, sources, strict=True):
            row[: len(source)] = source
        ids, mask = send(torch.from_numpy(padded), network.device), _mask(lengths)
        states = network.encode(ids, None if mask is None else send(mask, network.device))  # (S, T, H)
        return [states[i, :length].clone() for i, length in enumerate(lengths)]  # not what it was padded with

    def _keep(self, new: dict[bytes, Tensor]) -> None:
        """Keep these too, and drop what was not asked about for longest, down to the memory that is there for it."""
        for key, states in new.items():
            self.kept[key] = states
            self._bytes += states.nbytes
        while self.kept and self._bytes > KEPT_BYTES[self.conditionals.device.type]:
            self._bytes -= self.kept.popitem(last=False)[1].nbytes


def require_source(conditionals: Conditionals) -> GivenSource:
    """Refuse a model that takes no source, in one sentence everywhere."""
    if not takes_source(conditionals):
        raise BesagError(f"{conditionals.name!r} takes no source: it knows p(text), and no p(text | source)")
    return cast(GivenSource, conditionals)


def read_sources(conditionals: Conditionals, texts: Sequence[str]) -> list[Ints]:
    """The token ids of sources, as the model reads them."""
    for text in texts:
        if not isinstance(text, str):
            raise BesagError(f"a source is a text, and {quoted(text)} is none")
    return require_source(conditionals).source_ids(texts) if texts else []


def read_source(conditionals: Conditionals, text: str) -> Ints:
    """The token ids of one source that is given for many questions: a wrong one is refused at once."""
    if isinstance(text, str) and not is_text(text):
        raise BesagError(f"the source {quoted(text)} holds half a surrogate pair, which no encoding can write")
    [ids] = read_sources(conditionals, [text])
    if too_long(conditionals, ids):
        most = require_source(conditionals).max_source
        raise TooLong(
            f"the source {quoted(text)} has {len(ids):,} tokens, special ones included, and {conditionals.name!r} "
            f"reads {most:,}: give a shorter one"
        )
    return ids


def too_long(conditionals: Conditionals, source: Ints) -> bool:
    most = require_source(conditionals).max_source
    return most is not None and len(source) > most


def longest(given: Given | None) -> int:
    """How many tokens the longest source has; 0 where there is none."""
    return 0 if given is None else max(map(len, given.sources))


def _mask(lengths: Sequence[int]) -> Tensor | None:  # (S, T), 1 where there is a token; None: everywhere
    if min(lengths) == max(lengths):
        return None
    return (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
