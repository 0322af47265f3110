from __future__ import annotations

import io
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests import tokenizers

from besag import masks
from besag.errors import BesagError
from besag.training.data import stream as streams
from besag.training.data import tokens
from besag.training.data.loader import Clock, StreamBatches, indices, make_loader
from besag.training.network.batch import Batch
from besag.training.recipe import Data
from besag.vocabulary import Vocabulary

COUNT = 400


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Vocabulary:
    """A vocabulary with padding, so that everything training needs is there."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    table = {each: id for id, each in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "w", "."])}
    table |= {f"d{number}": 10 + number for number in range(COUNT)}
    backend = Tokenizer(models.WordLevel(table, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    monkeypatch.setattr(streams, "BUFFER", 8)
    monkeypatch.setattr(tokens, "GROUP", 200)
    return Vocabulary(PreTrainedTokenizerFast(tokenizer_object=backend, **tokenizers.NAMED))


def corpus(count: int = COUNT) -> str:
    """Document n has a token of its own, and n % 5 + 1 others."""
    return "\n".join(f"d{number}" + " w" * (number % 5 + 1) for number in range(count))


def make(vocabulary: Vocabulary, *names: str, **options: Any) -> StreamBatches:
    fields = {"unit": "documents", "max_length": 16, "batch_tokens": 64, "held_out": 0.0, "stream": True}
    data = Data(train=names, **{**fields, **options.pop("data", {})})
    rule = masks.Masking(
        masks.law("uniform"), masks.rate_named("constant", 0.3, None, 0.0), masks.Replacement(vocabulary.mask_id)
    )
    clock = options.pop("clock", None) or Clock(steps=1000)
    return StreamBatches(data, vocabulary, rule, clock, seed=5, **{"unpadded": True, **options})


def same(a: Batch, b: Batch) -> bool:
    return all(
        torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y
        for x, y in zip((*a, *a.layout), (*b, *b.layout), strict=True)
        if not isinstance(x, tuple)
    )


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "a.txt").write_text(corpus())
    return str(tmp_path / "a.txt")


@pytest.mark.parametrize("unpadded", [True, False])
def test_every_document_comes_once_a_reading(around: Vocabulary, file: str, unpadded: bool) -> None:
    total = sum(4 + number % 5 for number in range(COUNT))
    seen: Counter[int] = Counter()
    draws: list[int] = []
    size = 0
    for batch in make(around, file, unpadded=unpadded):
        assert isinstance(batch, Batch)
        assert len(batch.ids) <= 64
        lengths = batch.layout.bounds.diff()
        assert unpadded or int(lengths.max()) * len(lengths) <= 64
        seen.update(batch.ids[batch.ids >= 10].tolist())
        draws += batch.draw.tolist()
        size += len(batch.ids)
        if size > 5 * total:
            break
    assert draws == list(range(len(draws)))
    assert len(seen) == COUNT
    assert min(seen.values()) >= 4  # five readings, less what still waits in the buffer
    assert max(seen.values()) <= 6


def test_text_is_mixed_within_the_buffer(around: Vocabulary, file: str) -> None:
    first = [batch.ids[batch.ids >= 10] - 10 for batch in islice(make(around, file), 4)]
    met = torch.cat(first)
    assert not torch.equal(met, met.sort().values)
    assert met.max() > 60  # of a buffer of about 85 documents
    assert met.max() < 150  # nothing from further on


def test_each_buffer_has_an_order_of_its_own(around: Vocabulary, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []
    really = StreamBatches._order

    def spied(self: StreamBatches, waiting: Any, number: int) -> Any:
        numbers.append(number)
        return really(self, waiting, number)

    monkeypatch.setattr(StreamBatches, "_order", spied)
    list(islice(make(around, file), 150))
    assert len(numbers) > 20
    assert numbers == list(range(len(numbers)))


def test_one_worker_and_a_later_start_give_the_same(around: Vocabulary, file: str) -> None:
    straight = list(islice(make(around, file), 60))
    for workers in (0, 2):
        loader = make_loader(make(around, file), indices(0), workers, False)
        assert loader.num_workers == min(workers, 1)
        assert all(map(same, islice(loader, 60), straight))
    resumed = make_loader(make(around, file), indices(41), 1, False)
    assert all(map(same, islice(resumed, 19), straight[41:]))


def test_processes_share_the_stream(around: Vocabulary, file: str) -> None:
    clock = Clock(steps=1000, accumulate=2)
    one = list(islice(make(around, file, clock=clock), 20))
    for rank in range(2):
        part = make(around, file, clock=Clock(steps=1000, world=2))
        found = list(islice(make_loader(part, indices(0, rank, 2), 0, False), 10))
        assert all(map(same, found, one[rank::2]))


def test_token_schedules(around: Vocabulary, file: str) -> None:
    found = list(islice(make(around, file, clock=Clock(tokens=2000, accumulate=2)), 40))
    before = np.cumsum([0, *(len(batch.ids) for batch in found)])
    wanted = [min(before[index - index % 2] / 2000, 1.0) for index in range(40)]
    assert [batch.progress for batch in found] == pytest.approx(wanted)


def test_a_ramp_over_the_tokens_of_a_stream(around: Vocabulary, file: str) -> None:
    def clock() -> Clock:
        return Clock(tokens=2000, accumulate=4, ramp=0.5)

    found = list(islice(make(around, file, clock=clock()), 60))
    before = np.cumsum([0, *(len(batch.ids) for batch in found)])
    first, step = 0, 0
    while first < 50:
        share = min(before[first] / 2000, 1.0)
        size = 1 + int(3 * min(share / 0.5, 1.0))
        assert {(batch.step, batch.progress) for batch in found[first : first + size]} == {(step, share)}
        first, step = first + size, step + 1
        if step == 9:
            middle = first
    begun = clock()
    begun.go_on(9, middle)
    resumed = make_loader(make(around, file, clock=begun), indices(middle), 0, False)
    assert all(map(same, islice(resumed, 60 - middle), found[middle:]))


@pytest.mark.parametrize("count", [1, 37, COUNT])
def test_standard_input_comes_once_and_ends(around: Vocabulary, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(corpus(count).encode())))
    found = list(make_loader(make(around, "-"), indices(0), 4, False))
    seen = Counter(id for batch in found for id in batch.ids[batch.ids >= 10].tolist())
    assert seen == {10 + number: 1 for number in range(count)}


def test_a_corpus_smaller_than_the_buffer_comes_reading_by_reading(around: Vocabulary, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(corpus(10))
    orders = []
    batches = iter(make(around, str(tmp_path / "a.txt")))
    for _ in range(3):
        own: list[int] = []
        while len(own) < 10:
            batch = next(batches)
            own += batch.ids[batch.ids >= 10].tolist()
        assert sorted(own) == list(range(10, 20))
        orders.append(own)
    assert orders[0] != orders[1] != orders[2]


@pytest.mark.parametrize("unit", ["segments", "sentences", "windows"])
def test_other_units(around: Vocabulary, tmp_path: Path, unit: str) -> None:
    (tmp_path / "a.txt").write_text("\n".join(f"d{n} w w . W w w ." * 3 for n in range(60)))
    data = {"unit": unit, "max_length": 12}
    for batch in islice(make(around, str(tmp_path / "a.txt"), data=data, static=True), 30):
        assert isinstance(batch, Batch)
        assert len(batch.ids) == 64
        assert batch.layout.bounds.diff().max() <= 12


def test_what_cannot_be_is_refused(around: Vocabulary, file: str, tmp_path: Path) -> None:
    with pytest.raises(BesagError, match="belongs to one process"):
        make(around, "-", clock=Clock(steps=1, world=2))
    with pytest.raises(BesagError, match="must leave room for text"):
        make(around, file, data={"max_length": 65})
    with pytest.raises(BesagError, match="static shapes"):
        make(around, file, unpadded=False, static=True)
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(BesagError, match="the corpus is empty"):
        next(iter(make(around, str(tmp_path / "empty.txt"))))
