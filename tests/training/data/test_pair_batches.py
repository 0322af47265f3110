"""Every pair once an epoch, each target beside its own source, within the budget; what is too long is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests import networks
from tests.training.data.test_parallel import two_files

from besag import masks
from besag.errors import BesagError
from besag.training.data import parallel
from besag.training.data.clock import Clock
from besag.training.data.pair_batches import PairBatches, PairPlan

WORDS = networks.vocabulary("bert")
KNOWN = ["the", "cat", "dogs", "mat", "table"]


def made(folder: Path, count: int = 40, **data: object) -> PairBatches:
    generator = np.random.default_rng(0)
    sources = [" ".join(generator.choice(KNOWN, generator.integers(2, 9))) for _ in range(count)]
    targets = [" ".join(reversed(source.split()[:5])) for source in sources]
    said = two_files(folder, sources, targets, **{"max_length": 12, "batch_tokens": 60, **data})
    text = parallel.prepare(said, WORDS, folder / "cache", processes=1)
    masking = masks.Masking(masks.law("uniform", count="up"), masks.rate_named("uniform", 0.5), masks.Replacement(4))
    return PairBatches(PairPlan(text, said, special=2, seed=3), WORDS, masking, Clock(steps=10), seed=3)


def rows(ids: torch.Tensor, layout: object) -> list[str]:
    cut = [ids[layout.row == row].tolist() for row in range(layout.rows)]  # type: ignore[attr-defined]
    return [WORDS.tokenizer.decode(row, skip_special_tokens=True) for row in cut]


def test_an_epoch_has_every_pair_once_beside_its_source(tmp_path: Path) -> None:
    batches, seen, index = made(tmp_path), [], 0
    while batches.plan.where(index) < 1:
        batch = batches[index]
        assert batch.layout.source is not None
        ids, layout = batch.layout.source
        for one, of in ((layout, layout.rows), (batch.layout, batch.layout.rows)):
            assert of * one.longest <= 60
        seen += zip(rows(ids, layout), rows(batch.ids, batch.layout), strict=True)
        index += 1
    assert len(seen) == 40
    assert all(target == " ".join(reversed(source.split()[:5])) for source, target in seen)
    pairs = list(parallel.pairs(batches.plan.data))
    assert sorted(seen) == sorted((pair.source.text, pair.target.text) for pair in pairs)


def test_tokens_are_those_of_targets(tmp_path: Path) -> None:
    batches = made(tmp_path)
    counted = [len(batches[index].ids) for index in range(4)]
    assert [batches.plan.tokens_before(index) for index in range(5)] == np.append(0, np.cumsum(counted)).tolist()


def test_a_source_goes_where_its_batch_goes(tmp_path: Path) -> None:
    batch = made(tmp_path)[0]
    moved = batch.to("cpu")
    assert moved.layout.source is not None
    torch.testing.assert_close(moved.layout.source.ids, batch.layout.source.ids)
    kept = batch.layout.kept(batch.free)
    assert kept.source is batch.layout.source


def test_pairs_that_are_too_long_are_left_out_and_told(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"\d+ of 40 pairs have a side of more than data.max_length = 8 tokens"):
        batches = made(tmp_path, max_length=8)
    assert all(batches[index].layout.source.layout.longest <= 8 for index in range(3))
    with pytest.raises(BesagError, match="of all 40 pairs each has a side of more than"):
        PairPlan(batches.plan.text, replace(batches.plan.data, max_length=3), special=2, seed=0)
