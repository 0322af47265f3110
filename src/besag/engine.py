"""Questions in, answers out, for many askers at once, with progress.

A method is a *plan*: a generator that yields requests and is sent their answers. The engine runs many plans at once and
pools what they ask into buckets of one length, so nothing is padded; sequences asked twice run once; a bucket runs as
soon as it fills a batch, and at the latest when the first plan in line waits for it or the source is idle. Results come
back in the asker's order, from a bounded number of plans in the air, so an endless source runs in constant memory.
"""

from __future__ import annotations

import copy
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from besag.arrays import Ints
from besag.batches import Batches, lock_of
from besag.buckets import Answers, Asker, Group, Plan, Request
from besag.conditionals.contract import Conditionals, Questions
from besag.errors import BesagError
from besag.pooling import Flight, Work
from besag.reductions import Reduction

__all__ = ["IDLE", "Answers", "Engine", "Idle", "Plan", "Request"]

T = TypeVar("T")

WINDOW = 16  # batches' worth of questions that may wait in buckets
PATIENCE = {"cpu": 2, "mps": 4, "cuda": 16}  # batches that may run while the first in line waits
MOST_IN_LINE = 8192  # plans that have begun


class Idle:
    """Put into a source of plans (or texts): nothing more for now, so run what waits."""


IDLE: Final = Idle()


class Engine(Batches):
    """Runs plans on one `Conditionals`. `batch_tokens` fixes the budget of a batch; otherwise it is found."""

    def __init__(
        self, conditionals: Conditionals, *, batch_tokens: int | None = None, progress: bool | None = None
    ) -> None:
        super().__init__(conditionals, batch_tokens)
        self.progress = progress
        self.steady = False  # groups depend on what is asked alone, not on how fast the device is: the same bytes again
        self.hides: int | None = None  # the token that is padding, see `padded`
        self._doubts: dict[int, Tensor] = {}  # by thread: answers of `ask` that were no numbers

    @property
    def found(self) -> list[int]:
        """What is found about batches and not set: all that another engine needs to `repeat` this one."""
        return [self.batch_tokens, int(self.measured)]

    def repeat(self, found: Sequence[int] | None = None) -> None:
        """From here on the same questions run in the same batches: those that an earlier run has `found`, if any."""
        self.steady = True
        if found is not None:
            self.batch_tokens, self.measured = int(found[0]), bool(found[1])

    def given(self, source: Ints | None) -> Engine:
        """The same engine for questions about one source, token ids (T,): what it is asked is given that source.

        What is made of sources is kept in one place for both. A question that names its own source keeps it.
        """
        other = copy.copy(self)
        other.source, other._doubts = source, {}
        return other

    def padded(self) -> Engine:
        """The same engine for sequences of several lengths in one table: what holds the pad id is seen by nobody.

        For `ask`, of a network that `pads`. What was no number is told by either.
        """
        other = copy.copy(self)
        other.hides = self.conditionals.vocabulary.pad_id
        return other

    def encoded(self, sources: Sequence[Ints]) -> list[Tensor]:
        """What the network makes of sources, (T, H) each, where the network is; as ever, each is encoded once."""
        with lock_of(self.conditionals), torch.inference_mode():
            return self.sources.states(sources, self.batch_tokens)

    def answer(self, questions: Questions, reduce: Reduction | Sequence[Reduction]) -> Answers:
        """Answer one set of questions now."""
        wanted = tuple(reduce) if isinstance(reduce, Sequence) else (reduce,)
        ids, row, place = (part.numpy(force=True) for part in (questions.ids, questions.row, questions.place))
        target, uniform = (None if t is None else t.numpy(force=True) for t in (questions.target, questions.uniform))
        context = {name: part.numpy(force=True) for name, part in questions.context.items()}

        def plan() -> Plan[Answers]:
            return (yield Request(wanted, ids, row, place, target, uniform, context, questions.given))

        return next(self.run([plan()]))

    def run(
        self, plans: Iterable[Plan[T] | Idle], total: int | None = None, size: Callable[[T], int] = lambda _: 1
    ) -> Iterator[T]:
        """Run plans together and yield their results in order, as soon as they and all before them are done.

        For the progress bar: `total` texts in all, of which a result holds `size`.
        """
        line: deque[Asker[T]] = deque()
        work = Work(self)
        bar = self.bar(total, "text")
        began = time.perf_counter()
        first_since = 0  # how long the first in line has been the first, in tokens

        def finished() -> Iterator[T]:
            nonlocal first_since
            while line and line[0].done:
                result = cast(T, line.popleft().result)
                first_since = work.tokens
                rate = work.tokens / max(time.perf_counter() - began, 1e-9)
                bar.set_postfix_str(f"{rate:,.0f} tokens/s", refresh=False)
                bar.update(size(result))
                yield result

        def too_long() -> bool:
            """Are too many questions waiting, too many plans, or has the first in line waited while others ran?"""
            waited = work.tokens - first_since
            return (
                work.pool.load > WINDOW * self.batch_tokens
                or len(line) >= MOST_IN_LINE
                or waited > PATIENCE[self.conditionals.device.type] * self.batch_tokens
            )

        try:
            for plan in plans:
                if isinstance(plan, Idle):
                    work.finish()
                    if self.steady:  # another run may begin here: it reads the sources anew, in its own batches
                        self.sources.forget()
                else:
                    line.append(asker := Asker(plan))
                    work.add(asker, asker.advance(None))
                    work.feed_device()
                    while not line[0].done and too_long():
                        work.bring_forward(line[0])
                yield from finished()
            work.finish()
            yield from finished()
        finally:
            for asker in line:
                asker.plan.close()
            bar.close()

    def stream(
        self,
        questions: Questions,
        reduce: Reduction | Sequence[Reduction],
        take: Callable[[slice, dict[str, Tensor]], None],
    ) -> None:
        """Answer questions of one length where the network is, and hand over each chunk as soon as it is there.

        `take(asks, kept)` is told which asks these are and what is kept of them, still on the device, where the
        questions may lie too. Asks are sorted by sequence; nothing is pooled, shared or fetched. After memory has run
        out, some asks come a second time, so `take` writes and never adds.
        """
        wanted = tuple(reduce) if isinstance(reduce, Sequence) else (reduce,)
        questions = self.with_source(_sorted(questions))
        count, length = questions.ids.shape
        bar = self.bar(count, "sequence")
        doubt = torch.zeros((), dtype=torch.int32, device=self.conditionals.device)

        def run(start: int, stop: int) -> None:
            for asks, kept, sound in self.forward(questions, wanted, start, stop, length):
                take(asks, kept)
                _note(doubt, kept, sound)
            bar.update(stop - start)

        try:
            self.in_batches(np.full(count, length), run, questions.given)
        finally:
            bar.close()
        if bool(doubt):
            raise self.not_finite()

    def ask(self, questions: Questions, reduce: Reduction | Sequence[Reduction]) -> dict[str, Tensor]:
        """Answer questions of one length, asks sorted by sequence, and leave the answers where the network is.

        For steps of a chain: nothing is pooled or shared, nothing waits for the device, no bar is shown. Whether an
        answer was no number is found out by `check`, in the thread that asked.
        """
        wanted = tuple(reduce) if isinstance(reduce, Sequence) else (reduce,)
        questions = self.with_source(_sorted(questions))
        if self.hides is not None:
            mask = (questions.ids != self.hides).long()  # (N, L)
            questions = questions._replace(context={**questions.context, "attention_mask": mask})
        count, length = questions.ids.shape
        answers: dict[str, Tensor] = {}
        thread = threading.get_ident()
        if thread not in self._doubts:
            self._doubts[thread] = torch.zeros((), dtype=torch.int32, device=self.conditionals.device)
        doubt = self._doubts[thread]

        def run(start: int, stop: int) -> None:
            for asks, kept, sound in self.forward(questions, wanted, start, stop, length):
                for key, value in kept.items():
                    if len(value) == len(questions.row):  # all at once: no copy
                        answers[key] = value
                    else:
                        whole = answers.setdefault(key, value.new_empty(len(questions.row), *value.shape[1:]))
                        whole[asks] = value
                _note(doubt, kept, sound)

        self.in_batches(np.full(count, length), run, questions.given)
        return answers

    def check(self) -> None:
        """Refuse to go on if anything that `ask` answered this thread since its last check was no number."""
        doubt = self._doubts.pop(threading.get_ident(), None)
        if doubt is not None and bool(doubt):
            raise self.not_finite()

    def launch(self, group: Group) -> Flight:
        """Run a group and start its answers on the way to the host."""
        parts: list[dict[str, Tensor]] = []
        sounds: list[Tensor] = []
        questions = self.with_source(group.questions)

        def run(start: int, stop: int) -> None:
            chunks = self.forward(questions, group.reduce, start, stop, int(group.lengths[start]))
            fetched = [
                ({key: self.fetch(value) for key, value in kept.items()}, self.fetch(s)) for _, kept, s in chunks
            ]
            parts.extend(kept for kept, _ in fetched)  # all of a batch, or none: it may run again in smaller ones
            sounds.extend(sound for _, sound in fetched)

        self.in_batches(group.lengths, run, questions.given)
        event = None
        if self.on_cuda:
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            event.record()
        return Flight(group, parts, sounds, event)

    def bar(self, total: int | None, unit: str) -> tqdm[Any]:
        """A progress bar on stderr, where one is wanted: close it."""
        hidden = None if self.progress is None else not self.progress
        return tqdm(total=total, unit=unit, file=sys.stderr, delay=1, leave=False, dynamic_ncols=True, disable=hidden)


def _sorted(questions: Questions) -> Questions:
    """The same, with what is asked on the host; it must be sorted by sequence already."""
    questions = questions._replace(row=questions.row.cpu(), place=questions.place.cpu())
    if bool((questions.row.diff() < 0).any()):
        raise BesagError("streamed asks must be sorted by the sequence they look at")
    return questions


def _note(doubt: Tensor, kept: Mapping[str, Tensor], sound: Tensor) -> None:
    """Count, on the device, what was answered by no number."""
    doubt.add_(~sound.all())
    for value in kept.values():
        if value.is_floating_point():
            doubt.add_(value.isnan().any())
