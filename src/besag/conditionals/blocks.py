"""A network that was trained block after block, asked as it was trained: a place sees its own block and those before.

    block of column c = ⌊c / length⌋        column q sees column k where ⌊k / length⌋ ≤ ⌊q / length⌋

So what a block comes to does not hang on what follows it, and two things need not be computed: the columns after the
last block that is asked about, and the keys and values of the blocks before the first one, if they were computed before
(`Kept`). A text that grows block by block is read once, whoever writes it; the numbers are those of a pass over all.

Keys and values are taken where every family of transformers hands them over, in the function that attends. That is
registered under `NAME` and is the network's while it is asked here. Whether a network can be asked so is tried on a
short probe, and refused if not: no family's word is taken. Knows no batch and no kernel.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AttentionInterface

from besag.conditionals.contract import Questions
from besag.conditionals.network import CLOSE, first_position, gap
from besag.conditionals.split import Reader
from besag.errors import BesagError

NAME = "besag_blocks"
KEPT_BYTES = {"cpu": 2**28, "cuda": 2**31, "mps": 2**28}
TRIED = 2  # tokens of a block, on the probe


class Pass:
    """One pass: what its columns see, and the keys and values of each layer, those given and those computed."""

    def __init__(self, length: int, start: int, stop: int, given: Tensor | None, device: torch.device) -> None:
        columns = torch.arange(stop, device=device)  # (stop,) all that there are
        self.ahead = columns[None, :] - columns[start:, None]  # (stop − start, stop) of each reader, each column read
        self.seen = columns[None, :] // length <= columns[start:, None] // length
        self.given = None if given is None else given.unbind(1)  # a layer each: (N, 2, heads, start, D)
        self.made: list[Tensor] = []  # a layer each: (N, 2, heads, stop − start, D)

    def joined(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:  # (N, heads, stop − start, D) each
        """With those given before them: layers come in their order, which is all that tells them apart."""
        both = torch.stack((key, value), 1)
        if self.given is not None:
            before = self.given[len(self.made)]
            key, value = torch.cat((before, both), 3).unbind(1)
        self.made.append(both)
        return key, value

    def pattern(self, window: int | None) -> Tensor:
        """(stop − start, stop) bool; a local layer sees window − 1 columns on either side."""
        return self.seen if window is None else self.seen & (self.ahead.abs() < window)


def block_attention(
    module: Any,
    query: Tensor,  # (N, heads, stop − start, D)
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    besag_pass: Pass | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    if besag_pass is None:
        raise RuntimeError(f"{type(module).__name__} was not handed what it must be given")
    key, value = besag_pass.joined(key, value)
    grouped = key.shape[1] != query.shape[1]
    seen = besag_pass.pattern(sliding_window)
    answer = F.scaled_dot_product_attention(query, key, value, attn_mask=seen, scale=scaling, enable_gqa=grouped)
    return answer.transpose(1, 2), None


AttentionInterface.register(NAME, block_attention)


class Kept:
    """Keys and values of finished blocks: each by all that stands up to its end, those asked about last."""

    def __init__(self, length: int, room: int) -> None:
        self.length, self.room = length, room
        self.blocks: OrderedDict[bytes, Tensor] = OrderedDict()  # (layers, 2, heads, length, D) each
        self._bytes = 0
        self._last: tuple[list[bytes], Tensor] | None = None  # what was asked last: a chain asks about it at every step

    def before(self, ids: Tensor, stop: int) -> tuple[int, Tensor | None]:
        """How many columns of all sequences (N, L) are known, up to `stop`, and what of them: (N, layers, 2, …, D)."""
        if not self.room:
            return 0, None
        columns, found = [], 0
        for end in range(self.length, stop + 1, self.length):
            keys = self._keys(ids, end)
            if not all(key in self.blocks for key in keys):
                break
            columns.append(keys)
            found = end
        if not found:
            return 0, None
        asked = [key for keys in columns for key in keys]
        for key in asked:
            self.blocks.move_to_end(key)
        if self._last is None or self._last[0] != asked:
            parts = [torch.stack([self.blocks[key] for key in keys]) for keys in columns]
            self._last = asked, torch.cat(parts, 4)
        return found, self._last[1]

    def add(self, ids: Tensor, start: int, stop: int, made: Tensor) -> None:
        """Keep the columns start … stop, whole blocks; made (N, layers, 2, heads, at least stop − start, D)."""
        if not self.room:
            return
        for end in range(start + self.length, stop + 1, self.length):
            part = made[:, :, :, :, end - self.length - start : end - start].contiguous()
            for key, block in zip(self._keys(ids, end), part.unbind(0), strict=True):
                if key not in self.blocks:
                    self.blocks[key] = block
                    self._bytes += block.nbytes
        while self._bytes > self.room:
            self._bytes -= self.blocks.popitem(last=False)[1].nbytes

    def _keys(self, ids: Tensor, end: int) -> list[bytes]:
        return [row.tobytes() for row in ids[:, :end].numpy()]


class Blocks:
    """How a network of blocks of `length` tokens is asked. Refuses one that cannot be asked so."""

    def __init__(self, model: Any, read: Reader, length: int, probe: Tensor, title: str) -> None:
        self.model, self.read, self.length, self.title = model, read, length, title
        self.first = first_position(model)
        self.kept = Kept(length, KEPT_BYTES[probe.device.type])
        self._try(probe)

    def rows(self, questions: Questions) -> Tensor:  # (M, H)
        """What the asked places come to, from the columns up to the last block that is asked about."""
        ids, place, length = questions.ids, questions.place, self.length
        start, stop = int(place.min()) // length * length, (int(place.max()) // length + 1) * length
        stop = min(stop, ids.shape[1])
        here = ids[:, :stop].cpu()
        known, given = self.kept.before(here, start)
        states, made = self._run(ids[:, known:stop], known, stop, given, length)
        self.kept.add(here, known, start, made)
        return states[questions.row, place - known]

    def _run(
        self, ids: Tensor, start: int, stop: int, given: Tensor | None, length: int
    ) -> tuple[Tensor, Tensor]:  # (N, stop − start) -> (N, stop − start, H), (N, layers, 2, heads, stop − start, D)
        run = Pass(length, start, stop, given, ids.device)
        position = torch.arange(start, stop, device=ids.device)[None] + self.first
        with self._attending():
            answer = self.read.module(input_ids=ids, position_ids=position.expand(len(ids), -1), besag_pass=run)
        if not run.made:
            raise RuntimeError("its layers attend in a way of their own")
        return answer[0], torch.stack(run.made, 1)

    @contextmanager
    def _attending(self) -> Iterator[None]:
        config = self.model.config
        before = config._attn_implementation
        config._attn_implementation = NAME
        try:
            yield
        finally:
            config._attn_implementation = before

    def _try(self, probe: Tensor) -> None:
        """One block is the whole network; a text in two parts is the text; what follows a block changes nothing."""
        stop = probe.shape[1]
        part = (stop - 1) // TRIED * TRIED
        other = probe.clone()
        other[:, part:] = probe[:, part:].flip(0)
        try:
            alone, _ = self._run(probe, 0, stop, None, stop)
            whole, made = self._run(probe, 0, stop, None, TRIED)
            changed, _ = self._run(other, 0, stop, None, TRIED)
            later, _ = self._run(probe[:, part:], part, stop, made[:, :, :, :, :part], TRIED)
            gaps = (
                gap(alone, self.read(probe)), gap(later, whole[:, part:]), gap(changed[:, :part], whole[:, :part])
            )  # fmt: skip
        except Exception as problem:  # each family trips over it in its own way
            raise BesagError(f"{self._refused}: {problem}") from problem
        if max(gaps) > CLOSE[self.model.dtype]:
            raise BesagError(
                f"{self._refused}: its answers differ by {max(gaps):.2g} of the largest from what they must"
            )

    @property
    def _refused(self) -> str:
        return f"{self.title} was trained in blocks of {self.length} tokens, and cannot be asked so"
