"""Where questions wait: pooled over all askers into buckets of one shape, every distinct sequence kept once.

Knows nothing of networks or devices. The engine puts requests in and takes out groups that are ready to run.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from besag.conditionals.contract import Questions
from besag.reductions import Reduction

T = TypeVar("T")
Answers: TypeAlias = dict[str, NDArray[Any]]
Key: TypeAlias = tuple[tuple[Reduction, ...], int, tuple[Any, ...], tuple[bool, bool]]

PADDING = 0.125  # share of a batch that padding may waste where buckets starve


class Request(NamedTuple):
    questions: Questions  # on the CPU
    reduce: tuple[Reduction, ...]


Plan: TypeAlias = Generator[Request, Answers, T]


class Asker(Generic[T]):
    """One plan in the line: it waits in a bucket, or is done."""

    def __init__(self, plan: Plan[T]) -> None:
        self.plan = plan
        self.done = False
        self.result: T | None = None
        self.bucket: Key | None = None

    def advance(self, answers: Answers | None) -> Request | None:
        """Send answers (None: begin) and return the next request, or None when the plan has returned its result."""
        try:
            request = next(self.plan) if answers is None else self.plan.send(answers)
            while not len(request.questions.row):
                request = self.plan.send({})  # nothing asked, nothing answered
            return request
        except StopIteration as end:
            self.done, self.result = True, end.value
            return None


class _Ask(NamedTuple):
    asker: Asker[Any]
    row: NDArray[np.int64]  # (m,) into the bucket's distinct sequences
    questions: Questions


class Group(NamedTuple):
    """Buckets that run together: asks sorted by sequence and place, and who gets the answers."""

    questions: Questions
    reduce: tuple[Reduction, ...]
    lengths: NDArray[np.int64]  # (N,) of the sequences, longest first
    asks: list[_Ask]
    order: NDArray[np.int64]  # (M,) where each sorted ask stood before

    def hand_out(self, answers: Answers) -> list[tuple[Asker[Any], Request | None]]:
        """Give every asker its share, in the order it asked; return what they ask next."""
        unsorted = {}
        for key, values in answers.items():
            unsorted[key] = np.empty_like(values)
            unsorted[key][self.order] = values
        asked, start = [], 0
        for ask in self.asks:
            stop = start + len(ask.row)
            share = {key: values[start:stop] for key, values in unsorted.items()}
            asked.append((ask.asker, ask.asker.advance(share)))
            start = stop
        return asked


class _Bucket:
    """Waiting questions of one shape: every distinct sequence once, and who asks what of it."""

    def __init__(self, length: int, context: Mapping[str, Tensor]) -> None:
        self.length = length
        self.layout: list[tuple[str, np.dtype[Any], tuple[int, ...]]] = [("ids", np.dtype(np.int64), (length,))]
        self.layout += [(key, value.numpy().dtype, tuple(value.shape[1:])) for key, value in sorted(context.items())]
        self.sequences: dict[bytes, int] = {}  # the bytes of ids and context → number, in order of arrival
        self.asks: list[_Ask] = []
        self.asked = 0

    @property
    def load(self) -> int:
        """Tokens to run; many asks of few sequences count too, so that they cannot pile up."""
        return max(len(self.sequences) * self.length, self.asked)

    def add(self, asker: Asker[Any], questions: Questions) -> None:
        parts = {"ids": questions.ids, **questions.context}
        used, row = np.unique(questions.row.numpy(), return_inverse=True)  # a sequence nobody asks about is not run
        flat = [parts[key].numpy()[used].reshape(len(used), -1).view(np.uint8) for key, _, _ in self.layout]
        record = np.concatenate(flat, 1)
        data, width = record.tobytes(), record.shape[1]
        number = self.sequences.setdefault
        numbers = [number(data[at : at + width], len(self.sequences)) for at in range(0, len(data), width)]
        self.asks.append(_Ask(asker, np.asarray(numbers)[row], questions))
        self.asked += len(questions.row)

    def unpack(self) -> dict[str, Tensor]:
        """Ids and context of the distinct sequences, as they were asked."""
        record = np.frombuffer(bytearray(b"").join(self.sequences), np.uint8).reshape(len(self.sequences), -1)
        parts, at = {}, 0
        for key, dtype, shape in self.layout:
            width = dtype.itemsize * int(np.prod(shape))
            part = np.ascontiguousarray(record[:, at : at + width]).view(dtype).reshape(-1, *shape)
            parts[key], at = torch.from_numpy(part), at + width
        return parts


class Pool:
    """All buckets. `pads` allows sequences of neighbouring lengths to run together where their buckets starve."""

    def __init__(self, pads: bool, pad_id: int) -> None:
        self.pads, self.pad_id = pads, pad_id
        self.buckets: dict[Key, _Bucket] = {}
        self.load = 0

    def put(self, asker: Asker[Any], request: Request | None) -> Key | None:
        """Queue what an asker asks; return the bucket it went to."""
        if request is None:
            return None
        questions = request.questions
        context = tuple((key, value.dtype, tuple(value.shape[1:])) for key, value in sorted(questions.context.items()))
        key = (
            request.reduce, questions.ids.shape[1], context,
            (questions.target is not None, questions.uniform is not None),
        )  # fmt: skip
        bucket = self.buckets.get(key)
        if bucket is None:
            bucket = self.buckets[key] = _Bucket(questions.ids.shape[1], questions.context)
        before = bucket.load
        bucket.add(asker, questions)
        self.load += bucket.load - before
        asker.bucket = key
        return key

    def take(self, keys: list[Key]) -> Group:
        """Empty some buckets into one group, right-padded to the longest."""
        buckets = [self.buckets.pop(key) for key in keys]
        self.load -= sum(bucket.load for bucket in buckets)
        parts = [bucket.unpack() for bucket in buckets]
        lengths = np.concatenate([np.full(len(bucket.sequences), bucket.length) for bucket in buckets])
        context = {key: value for key, value in parts[0].items() if key != "ids"}
        ids, longest = parts[0]["ids"], int(lengths.max())
        if len(buckets) > 1:
            padded = [
                torch.nn.functional.pad(p["ids"], (0, longest - p["ids"].shape[1]), value=self.pad_id) for p in parts
            ]
            ids = torch.cat(padded)
            if lengths.min() < longest:
                context = {"attention_mask": (torch.arange(longest) < torch.from_numpy(lengths)[:, None]).long()}
        starts = np.cumsum([0, *(len(bucket.sequences) for bucket in buckets)])
        row = np.concatenate([ask.row + starts[i] for i, bucket in enumerate(buckets) for ask in bucket.asks])
        asks = [ask for bucket in buckets for ask in bucket.asks]
        place = torch.cat([ask.questions.place for ask in asks])
        order = np.lexsort((place.numpy(), row))

        def sorted_(tensors: list[Tensor | None]) -> Tensor | None:
            present = [tensor for tensor in tensors if tensor is not None]
            return torch.cat(present)[order] if present else None

        questions = Questions(
            ids=ids,
            row=torch.from_numpy(row[order]),
            place=place[order],
            target=sorted_([ask.questions.target for ask in asks]),
            context=context,
            uniform=sorted_([ask.questions.uniform for ask in asks]),
        )
        return Group(questions, keys[0][0], lengths, asks, order)

    def together(self, budget: int) -> list[list[Key]]:
        """Buckets as they should run: alone, or with shorter ones where all fit one batch and padding wastes little."""
        groups: list[list[Key]] = []
        longest = real = padded = 0
        for key, bucket in sorted(self.buckets.items(), key=lambda item: -item[1].length):
            count = len(bucket.sequences)
            if groups and self.pads:
                head = groups[-1][0]
                alike = (head[0], head[2], head[3]) == (key[0], (), key[3])
                size = padded + count * longest
                if alike and size <= budget and real + count * bucket.length >= (1 - PADDING) * size:
                    groups[-1].append(key)
                    real, padded = real + count * bucket.length, size
                    continue
            groups.append([key])
            longest, real, padded = bucket.length, count * bucket.length, count * bucket.length
        return groups
