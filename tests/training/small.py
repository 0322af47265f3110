"""A run with nothing around it: a tiny network and batches made of noise, for tests of the loop.

Import it as `tests.training.small`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from tests import networks

from besag import noise
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.objectives import OBJECTIVES
from besag.training.recipe import Data, Optimizer, Recipe, Run, Schedule
from besag.training.run.ranks import Ranks
from besag.training.run.trainer import Hooks, Loop

LENGTH = 12


def recipe(*, optimizer: dict[str, Any] | None = None, schedule: dict[str, Any] | None = None, **run: Any) -> Recipe:
    return Recipe(
        data=Data(train=("nothing",), batch_tokens=64),
        optimizer=Optimizer(**{"lr": 1e-3, **(optimizer or {})}),
        schedule=Schedule(**(schedule or {"steps": 6})),
        run=Run(**{"device": "cpu", "log_every": 1, **run}),
    )


def batch(index: int, step: int, vocabulary: Any, rows: int = 3) -> Batch:
    """`rows` sequences of uneven lengths, a function of `index` alone; the more is asked the higher the index."""
    lengths = torch.from_numpy((noise.uniform(0, 1, index, np.arange(rows)) * 6).astype(np.int64) + LENGTH - 6)
    layout = Layout.of_lengths(lengths, LENGTH)
    ordinary = sorted(set(range(vocabulary.size)) - vocabulary.special_ids)
    total = int(lengths.sum())
    ids = torch.tensor(ordinary)[torch.from_numpy((noise.uniform(0, 2, index, np.arange(total)) * 9).astype(np.int64))]
    asked = torch.arange(0, total, 2 + index % 3)
    inputs = ids.clone()
    inputs[asked] = vocabulary.mask_id
    weight = torch.ones(len(asked))
    weight[-1] = 0
    rate, draw = torch.full((rows,), 0.5), torch.arange(rows) + rows * index
    return Batch(ids, inputs, torch.ones(total, dtype=torch.bool), layout, asked, weight, rate, draw, step, 0.0)


class BatchDataset:
    def __init__(self, vocabulary: Any) -> None:
        self.vocabulary = vocabulary
        self.masked = 0

    def mask(self, one: Batch) -> Batch:
        self.masked += 1
        return one


class Clock:
    def __init__(self) -> None:
        self.published: list[float] = []

    def publish(self, share: float) -> None:
        self.published.append(share)


def built(wanted: Recipe, *, objective: str = "mlm", law: Any = None, family: str = "bert", **config: Any) -> Any:
    vocabulary = networks.vocabulary(family)
    model = networks.tiny(family, **{"hidden_dropout_prob": 0.1, "initializer_range": 0.1, **config})
    assert vocabulary.mask_id is not None
    assert vocabulary.pad_id is not None
    encoder = Encoder(
        model,
        mask_id=vocabulary.mask_id,
        pad_id=vocabulary.pad_id,
        special_ids=vocabulary.special_ids,
        ragged=False,
    )
    batches = BatchDataset(vocabulary)

    def loader(start: int, ranks: Ranks, *, pin: bool, seen: int | None = None) -> Iterator[Batch]:
        accumulate = wanted.run.accumulate
        number = start * accumulate if seen is None else seen
        while True:
            yield batch(number * ranks.world + ranks.rank, number // accumulate, vocabulary)
            number += 1

    return SimpleNamespace(
        recipe=wanted,
        device=torch.device("cpu"),
        vocabulary=vocabulary,
        encoder=encoder,
        model=model,
        objective=OBJECTIVES.find(objective)(encoder),
        masking=SimpleNamespace(law=law),
        batches=batches,
        clock=Clock(),
        loader=loader,
        autocast=contextlib.nullcontext,
        mean_rate=lambda progress: 0.5,
    )


def loop(wanted: Recipe, folder: Path, hooks: Hooks | None = None, start: Any = None, **kwargs: Any) -> Loop:
    return Loop(wanted, built(wanted, **kwargs), folder, hooks or Hooks(), start, Ranks())
