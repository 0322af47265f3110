"""Batches of a planned corpus, prepared by any number of worker processes.

A batch is a function of its index alone (and of progress, where a rate follows the clock on the wall): any number of
workers gives the same batches, and a resumed run asks for the index it stopped at.

A law that adapts to the run is not asked by workers, which do not see what it learned: they hand over `Parts`, and the
process that trains calls `BatchDataset.mask`.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader, Dataset

from besag.errors import BesagError
from besag.masks import Masking
from besag.masks.passages import Passages
from besag.training.data.assembly import Maker, Parts, Template
from besag.training.data.batch_plan import BatchPlan, Planned
from besag.training.data.children import begun_deaf, turn_deaf
from besag.training.data.clock import Clock, indices
from besag.training.data.stream import StreamBatches
from besag.training.network.batch import Batch
from besag.training.network.tiles import best_order
from besag.vocabulary import Vocabulary

__all__ = ["BatchDataset", "Clock", "Parts", "StreamBatches", "Template", "indices", "make_loader"]

PREFETCH = 4  # batches a worker is ahead


class BatchDataset(Dataset[Batch | Parts]):
    """Batch `index` of the run; `static` shapes need an unpadded plan."""

    def __init__(
        self,
        plan: BatchPlan,
        vocabulary: Vocabulary,
        masking: Masking,
        clock: Clock,
        *,
        seed: int,
        static: bool = False,
    ) -> None:
        self.plan, self.clock = plan, clock
        template = Template(vocabulary)
        self.maker = Maker(
            template, masking, seed=seed, unpadded=plan.unpadded, longest=plan.data.max_length, copies=plan.copies
        )
        if template.size != plan.special:
            raise BesagError(f"the plan leaves room for {plan.special} special tokens, there are {template.size}.")
        if static and not plan.unpadded:
            raise BesagError("static shapes need unpadded batches.")
        if static:
            self.maker.fix(plan.data.batch_tokens, plan.rows)

    def __getitem__(self, index: int) -> Batch | Parts:
        parts = self.parts(index)
        return parts if self.maker.adaptive else self.maker.mask(parts)

    def parts(self, index: int) -> Parts:
        return Parts(self.clean(index), self.clock.step(index, self.plan), self.clock.progress(index, self.plan))

    def clean(self, index: int) -> Passages:
        """The passages of a batch, nothing hidden."""
        cache = self.plan.cache
        return self.maker.template.passages(cache.tokens, cache.marks, *self.planned(index))

    def planned(self, index: int) -> Planned:
        """What the plan says, in the order that fills tiles best, where there are any."""
        planned = self.plan.batch(index)
        if not self.maker.tiled:
            return planned
        order = best_order(planned.length + self.maker.template.size)
        return Planned(*(part[order] for part in planned))

    def mask(self, parts: Parts | Batch) -> Batch:
        return parts if isinstance(parts, Batch) else self.maker.mask(parts)


class Loader(DataLoader[Any]):
    """A DataLoader that says what it means when a worker is gone."""

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        begun: Any = None
        end: Any = None  # the workers; they do not hear the signal by which Python would end them
        try:
            with begun_deaf():
                begun = super().__iter__()
            end = getattr(begun, "_shutdown_workers", None)
            if end is not None:
                atexit.register(end)  # a Python that ends while somebody still holds this would wait for them for ever
            yield from begun
        except BesagError as failure:  # of a worker: torch has put the way it came around it
            said = str(failure).rpartition("BesagError: ")[2].strip()
            raise BesagError(said) from failure
        except (EOFError, ConnectionError, FileNotFoundError) as failure:  # it died while it handed something over
            raise RuntimeError("a DataLoader worker died: killed, or out of memory.") from failure
        finally:
            self._iterator = None
            if end is not None:
                atexit.unregister(end)
                end()


def make_loader(batches: BatchDataset | StreamBatches, order: indices, workers: int, pin: bool) -> Loader:
    """Prepare the batches of `order` in `workers` processes (0: this one), one after the other.

    A stream has one worker at most, and none where it reads standard input, which other processes do not have. A worker
    that dies raises here; workers end when this process does, and leave an interrupt to it.
    """
    if isinstance(batches, StreamBatches):
        batches.order = order
        workers = 0 if batches.from_stdin else min(workers, 1)
    else:
        batches.plan.batch(order.start)  # planned once, before workers are forked
    return Loader(
        batches,
        batch_size=None,
        sampler=order if isinstance(batches, BatchDataset) else None,
        num_workers=workers,
        pin_memory=pin,
        persistent_workers=workers > 0,
        prefetch_factor=PREFETCH if workers > 0 else None,
        worker_init_fn=turn_deaf if workers > 0 else None,
        collate_fn=_same,
    )


def _same(batch: Any) -> Any:
    """Nothing is collated: by itself torch would make tensors of numbers and arrays."""
    return batch
