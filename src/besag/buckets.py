"""Where questions wait: pooled over all askers into buckets of one shape, every distinct sequence kept once.

Knows nothing of networks or devices. The engine puts requests in and takes out groups that are ready to run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from besag.arrays import Ints
from besag.conditionals.contract import Given, Questions
from besag.reductions import Reduction

T = TypeVar("T")
Answers: TypeAlias = dict[str, NDArray[Any]]
_Part: TypeAlias = tuple[str, np.dtype[Any], tuple[int, ...]]  # name, type and shape of what comes with a sequence
_Shape: TypeAlias = tuple[int, ...] | None  # of what comes with one ask; None where nothing does
# the last: is a source given?
Key: TypeAlias = tuple[tuple[Reduction, ...], int, tuple[_Part, ...], tuple[_Shape, _Shape], bool]

NO_CONTEXT: tuple[_Part, ...] = ()
SOURCE: _Part = ("the source given", np.dtype(np.int64), ())  # its number in a bucket; no context has this name

STARVING = 0.25  # a bucket with less than this share of a batch may be padded to run with others …
PADDING = 0.125  # … as long as padding wastes no more than this share


class Request(NamedTuple):
    """What a plan asks, as host arrays: the fields of `Questions`, and what to keep of the answers."""

    reduce: tuple[Reduction, ...]
    ids: NDArray[np.int64]  # (N, L)
    row: NDArray[np.int64]  # (M,)
    place: NDArray[np.int64]  # (M,)
    target: NDArray[np.int64] | None = None  # (M,), or (M, t) for t tokens an ask
    uniform: NDArray[np.float64] | None = None  # (M,)
    context: Mapping[str, NDArray[Any]] = MappingProxyType({})  # (N, ...)
    given: Given | None = None  # the sources of the N sequences


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
        return self.go_on(lambda: next(self.plan) if answers is None else self.plan.send(answers))

    def fail(self, why: Exception) -> Request | None:
        """Raise in the plan what its answers failed by. It may go on with another request; otherwise it is raised."""
        return self.go_on(lambda: self.plan.throw(why))

    def go_on(self, step: Callable[[], Request]) -> Request | None:
        """Take a step of the plan."""
        try:
            request = step()
            while not len(request.row):
                request = self.plan.send({})  # nothing asked, nothing answered
            return request
        except StopIteration as end:
            self.done, self.result = True, end.value
            return None


class Ask(NamedTuple):
    asker: Asker[Any]
    row: NDArray[np.int64]  # (m,) into the bucket's distinct sequences
    request: Request


class Group(NamedTuple):
    """Buckets that run together: asks sorted by sequence and place, and who gets the answers."""

    questions: Questions
    reduce: tuple[Reduction, ...]
    lengths: NDArray[np.int64]  # (N,) of the sequences, longest first
    asks: list[Ask]
    order: NDArray[np.int64]  # (M,) where each sorted ask stood before

    def hand_out(
        self, answers: Answers, sound: NDArray[np.bool_], why: Exception
    ) -> list[tuple[Asker[Any], Request | None]]:
        """Give every asker its share, in the order it asked; return what they ask next.

        Where one of its asks, (M,), was not answered by numbers, an asker is told `why` instead.
        """
        moved = bool((np.diff(self.order) < 0).any())  # otherwise nothing is: whole rows are dear to copy

        def unsorted(values: NDArray[Any]) -> NDArray[Any]:
            if not moved:
                return values
            back = np.empty_like(values)
            back[self.order] = values
            return back

        answers, sound = {key: unsorted(values) for key, values in answers.items()}, unsorted(sound)
        asked, start = [], 0
        for ask in self.asks:
            stop = start + len(ask.row)
            share = {key: values[start:stop] for key, values in answers.items()}
            request = ask.asker.advance(share) if sound[start:stop].all() else ask.asker.fail(why)
            asked.append((ask.asker, request))
            start = stop
        return asked


class _Bucket:
    """Waiting questions of one shape: every distinct sequence once, and who asks what of it."""

    def __init__(self, length: int, context: tuple[_Part, ...], given: bool) -> None:
        self.length = length
        self.layout = (("ids", np.dtype(np.int64), (length,)), *context, *[SOURCE] * given)
        self.sequences: dict[bytes, int] = {}  # the bytes of ids, context and source → number, in order of arrival
        self.sources: dict[bytes, int] = {}  # the bytes of their ids → number
        self.asks: list[Ask] = []
        self.asked = 0

    @property
    def load(self) -> int:
        """Tokens to run; many asks of few sequences count too, so that they cannot pile up."""
        return max(len(self.sequences) * self.length, self.asked)

    def add(self, asker: Asker[Any], request: Request) -> None:
        record: NDArray[Any] = np.asarray(request.ids, np.int64)
        row, count, sequences = request.row, len(record), self.sequences
        if len(self.layout) > 1:
            parts = {"ids": record, **request.context, **self._numbered(request.given)}
            flat = [np.ascontiguousarray(parts[key]).reshape(count, -1).view(np.uint8) for key, _, _ in self.layout]
            record = np.concatenate(flat, 1)
        asked = np.bincount(row, minlength=count)
        if not asked.all():  # a sequence nobody asks about is not run
            record, row = record[asked > 0], (np.cumsum(asked > 0) - 1)[row]
        data, width = record.tobytes(), record.itemsize * record.shape[1]
        numbers = [sequences.setdefault(data[at : at + width], len(sequences)) for at in range(0, len(data), width)]
        self.asks.append(Ask(asker, np.array(numbers)[row], request))
        self.asked += len(row)

    def _numbered(self, given: Given | None) -> dict[str, Ints]:
        """(N,) the number of each sequence's source, where there are sources."""
        if given is None:
            return {}
        keys = [np.ascontiguousarray(source, np.int64).tobytes() for source in given.sources]
        return {SOURCE[0]: np.array([self.sources.setdefault(key, len(self.sources)) for key in keys])[given.which]}

    def unpack(self) -> dict[str, NDArray[Any]]:
        """Ids and context of the distinct sequences, as they were asked."""
        record = np.frombuffer(bytearray(b"").join(self.sequences), np.uint8).reshape(len(self.sequences), -1)
        parts, at = {}, 0
        for key, dtype, shape in self.layout:
            width = dtype.itemsize * int(np.prod(shape))
            part = np.ascontiguousarray(record[:, at : at + width]).view(dtype).reshape(-1, *shape)
            parts[key], at = part, at + width
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
        length, context = request.ids.shape[1], NO_CONTEXT
        if request.context:
            context = tuple((name, part.dtype, part.shape[1:]) for name, part in sorted(request.context.items()))
        shapes = [None if part is None else part.shape[1:] for part in (request.target, request.uniform)]
        key = request.reduce, length, context, (shapes[0], shapes[1]), request.given is not None
        bucket = self.buckets.get(key)
        if bucket is None:
            bucket = self.buckets[key] = _Bucket(length, context, key[4])
        before = bucket.load
        bucket.add(asker, request)
        self.load += bucket.load - before
        asker.bucket = key
        return key

    def take(self, keys: list[Key]) -> Group:
        """Empty some buckets into one group, right-padded to the longest."""
        buckets = [self.buckets.pop(key) for key in keys]
        self.load -= sum(bucket.load for bucket in buckets)
        parts = [bucket.unpack() for bucket in buckets]
        lengths = np.concatenate([np.full(len(bucket.sequences), bucket.length) for bucket in buckets])
        starts = np.cumsum([0, *(len(bucket.sequences) for bucket in buckets)])
        given = _joined(buckets, [part.pop(SOURCE[0]) for part in parts]) if keys[0][4] else None
        ids = parts[0].pop("ids")
        context = parts[0]
        if len(buckets) > 1:  # they differ in length and carry no context
            longest = int(lengths.max())
            padded = np.full((len(lengths), longest), self.pad_id)
            for part, start, stop in zip([ids, *(p["ids"] for p in parts[1:])], starts[:-1], starts[1:], strict=True):
                padded[start:stop, : part.shape[1]] = part
            ids, context = padded, {"attention_mask": (np.arange(longest) < lengths[:, None]).astype(np.int64)}
        row = np.concatenate([ask.row + starts[i] for i, bucket in enumerate(buckets) for ask in bucket.asks])
        asks = [ask for bucket in buckets for ask in bucket.asks]
        place = np.concatenate([ask.request.place for ask in asks])
        order = np.lexsort((place, row))

        def sorted_(arrays: list[NDArray[Any] | None]) -> Tensor | None:
            present = [array for array in arrays if array is not None]
            return torch.from_numpy(np.concatenate(present)[order]) if present else None

        questions = Questions(
            ids=torch.from_numpy(ids),
            row=torch.from_numpy(row[order]),
            place=torch.from_numpy(place[order]),
            target=sorted_([ask.request.target for ask in asks]),
            context={name: torch.from_numpy(part) for name, part in context.items()},
            uniform=sorted_([ask.request.uniform for ask in asks]),
            given=given,
        )
        return Group(questions, keys[0][0], lengths, asks, order)

    def again(self, asks: Sequence[Ask]) -> Group:
        """Some asks of a group as a group of their own."""
        fresh = Pool(self.pads, self.pad_id)
        for ask in asks:
            fresh.put(ask.asker, ask.request)
        return fresh.take(sorted(fresh.buckets, key=lambda key: -key[1]))

    def weed(self, gone: Callable[[Asker[Any]], bool]) -> None:
        """Take out what askers wait for that are gone; what others ask stays as it is."""
        for key, bucket in list(self.buckets.items()):
            asks = [ask for ask in bucket.asks if not gone(ask.asker)]
            if len(asks) < len(bucket.asks):
                self.load -= self.buckets.pop(key).load
                for ask in asks:
                    self.put(ask.asker, ask.request)

    def tokens(self, keys: list[Key]) -> int:
        return sum(len(self.buckets[key].sequences) * self.buckets[key].length for key in keys)

    def together(self, budget: int) -> list[list[Key]]:
        """Buckets as they should run: alone, or starving ones padded together where all fit one batch."""
        groups: list[list[Key]] = []
        longest = real = padded = 0
        for key, bucket in sorted(self.buckets.items(), key=lambda item: -item[1].length):
            count = len(bucket.sequences)
            starves = self.pads and not key[2] and count * bucket.length < STARVING * budget
            if groups and starves and padded > 0 and (groups[-1][0][0], groups[-1][0][3:]) == (key[0], key[3:]):
                size = padded + count * longest
                if size <= budget and real + count * bucket.length >= (1 - PADDING) * size:
                    groups[-1].append(key)
                    real, padded = real + count * bucket.length, size
                    continue
            groups.append([key])
            longest = bucket.length
            real = padded = count * bucket.length if starves else 0  # 0: nothing may join
        return groups


def _joined(buckets: list[_Bucket], which: list[Ints]) -> Given:
    """The sources of several buckets, one after the other, and that of each sequence: which[b], (n,), in bucket b."""
    starts = np.cumsum([0, *(len(bucket.sources) for bucket in buckets)])
    sources = tuple(np.frombuffer(source, np.int64) for bucket in buckets for source in bucket.sources)
    return Given(sources, np.concatenate([part + start for part, start in zip(which, starts, strict=False)]))
