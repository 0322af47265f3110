from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.training import small
from transformers import TrainerCallback

from besag.errors import BesagError
from besag.masks.law import Adaptive
from besag.training.recipe import Evaluation
from besag.training.run import schedule
from besag.training.run.checkpoint import Checkpoint, Checkpoints
from besag.training.run.trainer import Hooks

NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def weights(loop: Any) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in loop.built.objective.state_dict().items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_step_is_the_gradient_of_the_mean_over_everything_asked(tmp_path: Path) -> None:
    recipe = small.recipe(
        schedule={"steps": 1, "warmup": 0, "shape": "constant"}, accumulate=3, optimizer={"clip": 0.0}
    )
    lines: list[dict[str, float]] = []
    loop = small.loop(recipe, tmp_path, Hooks(log=lines.append), **NO_DROPOUT)
    expected = small.built(recipe, **NO_DROPOUT)
    optimizer = torch.optim.AdamW(
        [
            {"params": [w for w in expected.objective.parameters() if w.ndim >= 2], "weight_decay": 0.01},
            {"params": [w for w in expected.objective.parameters() if w.ndim < 2], "weight_decay": 0.0},
        ],
        lr=1e-3,
        betas=(0.9, 0.98),
        eps=1e-8,
    )
    batches = [small.batch(index, 0, expected.vocabulary) for index in range(3)]
    count = sum(float(batch.weight.sum()) for batch in batches)
    assert len({float(batch.weight.sum()) for batch in batches}) == 3  # a mean of means would be another number
    mean = sum(expected.objective(batch).total for batch in batches) / count
    mean.backward()
    optimizer.step()
    loop.train()
    for name, value in weights(loop).items():
        torch.testing.assert_close(value, expected.objective.state_dict()[name], rtol=1e-5, atol=1e-6)
    assert lines[0]["loss"] == pytest.approx(float(mean.detach()), rel=1e-5)
    assert lines[0]["tokens"] == sum(len(batch.ids) for batch in batches)
    assert "grad_norm" not in lines[0]


def test_gradients_are_clipped(tmp_path: Path) -> None:
    lines: list[dict[str, float]] = []
    recipe = small.recipe(optimizer={"clip": 0.25}, schedule={"steps": 1})
    loop = small.loop(recipe, tmp_path, Hooks(log=lines.append))
    norms = []

    class Look(TrainerCallback):  # type: ignore[misc]
        def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
            grads = [weight.grad for weight in loop.built.objective.parameters() if weight.grad is not None]
            norms.append(float(torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))))

    loop.add_callback(Look())
    loop.train()
    assert norms == pytest.approx([0.25], rel=1e-4)
    assert lines[0]["grad_norm"] > 0.25


def test_the_loss_falls_and_the_rate_follows_its_schedule(tmp_path: Path) -> None:
    lines: list[dict[str, float]] = []
    recipe = small.recipe(schedule={"steps": 30, "warmup": 0.1}, log_every=10, optimizer={"lr": 3e-3})
    loop = small.loop(recipe, tmp_path, Hooks(log=lines.append))
    loop.train()
    assert [line["step"] for line in lines] == [10, 20, 30]
    assert lines[-1]["loss"] < lines[0]["loss"] - 0.5
    assert [line["lr"] for line in lines] == pytest.approx([3e-3 * (1 - (s + 0.5) / 30) / 0.9 for s in (9, 19, 29)])
    assert loop.built.clock.published == pytest.approx([step / 30 for step in range(30)])
    assert all(line["tokens_per_second"] > 0 for line in lines)


@pytest.mark.parametrize("schedule", [{"steps": 7}, {"tokens": 480}])
def test_resumed_in_the_middle_it_ends_in_the_same_bits(tmp_path: Path, schedule: dict[str, int]) -> None:
    recipe = small.recipe(schedule=schedule, accumulate=2, ema=0.9, checkpoint_every=3, log_every=2)
    store = Checkpoints(tmp_path / "checkpoints", keep=99)
    law, again = Remembering(), Remembering()
    lines: list[dict[str, float]] = []
    hooks = Hooks(log=lines.append)
    whole = small.loop(recipe, tmp_path, hooks, law=law)
    hooks.save = lambda: store.save(whole.progress.step, whole.snapshot(), {})  # type: ignore[assignment]
    torch.manual_seed(5)
    whole.train()
    first = min(path.name for path in store.folder.iterdir())
    assert first == "step-00000003"
    torch.manual_seed(77), random.seed(7), np.random.seed(1)
    rest: list[dict[str, float]] = []
    start = Checkpoint(store.folder / first, json.loads((store.folder / first / "meta.json").read_text()))
    resumed = small.loop(recipe, tmp_path, Hooks(log=rest.append), start, law=again)
    resumed.train()
    assert resumed.progress.step == whole.progress.step
    assert resumed.progress.tokens == whole.progress.tokens
    assert same(weights(resumed), weights(whole))
    assert whole.averaging is not None
    assert resumed.averaging is not None
    assert same(resumed.averaging.state(), whole.averaging.state())
    assert np.array_equal(law.table, again.table)
    assert law.table.sum() > 0
    untimed = [{k: v for k, v in line.items() if k not in ("seconds", "tokens_per_second")} for line in lines]
    assert [{k: v for k, v in line.items() if k in untimed[0]} for line in rest] == untimed[1:]
    assert not same(weights(resumed), weights(small.loop(recipe, tmp_path)))


def test_a_ramp_takes_more_batches_from_step_to_step(tmp_path: Path) -> None:
    """Each step is the mean over all it asks, however many batches that is."""
    recipe = small.recipe(schedule={"steps": 6, "ramp": 0.5}, accumulate=3, optimizer={"clip": 0.0})
    taken: list[list[int]] = []
    lines: list[dict[str, float]] = []
    loop = small.loop(recipe, tmp_path, Hooks(log=lines.append), **NO_DROPOUT)
    given = loop.training_step
    loop.training_step = lambda model, inputs, count=None: (
        taken.append([int(batch.draw[0]) // 3 for batch in inputs]), given(model, inputs, count))[1]  # fmt: skip
    loop.train()
    assert taken == [[0], [1], [2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]
    sizes = [len(small.batch(index, 0, loop.built.vocabulary).ids) for index in range(13)]
    assert loop.progress.tokens == sum(sizes)
    assert [line["tokens"] for line in lines] == [sum(sizes[: each[-1] + 1]) for each in taken]
    assert loop.progress.batches == 13


@pytest.mark.parametrize("schedule", [{"steps": 7, "ramp": 0.6}, {"tokens": 480, "ramp": 1.0}])
def test_a_ramp_resumed_in_its_middle_ends_in_the_same_bits(tmp_path: Path, schedule: dict[str, Any]) -> None:
    recipe = small.recipe(schedule=schedule, accumulate=4, checkpoint_every=3)
    store = Checkpoints(tmp_path / "checkpoints", keep=99)
    hooks = Hooks()
    whole = small.loop(recipe, tmp_path, hooks)
    hooks.save = lambda: store.save(whole.progress.step, whole.snapshot(), {})  # type: ignore[assignment]
    whole.train()
    first = min(path.name for path in store.folder.iterdir())
    start = Checkpoint(store.folder / first, json.loads((store.folder / first / "meta.json").read_text()))
    resumed = small.loop(recipe, tmp_path, Hooks(), start)
    assert 3 <= resumed.progress.batches < 12
    resumed.train()
    assert (resumed.progress.step, resumed.progress.tokens, resumed.progress.batches) == (
        whole.progress.step, whole.progress.tokens, whole.progress.batches)  # fmt: skip
    assert same(weights(resumed), weights(whole))


def test_dropout_is_part_of_what_is_resumed(tmp_path: Path) -> None:
    """The test above would not see a forgotten generator if nothing drew from it."""
    recipe = small.recipe(schedule={"steps": 2})
    ends = []
    for seed in (0, 1):
        loop = small.loop(recipe, tmp_path)
        begin = loop.begin
        loop.begin = lambda begin=begin, seed=seed: (begin(), torch.manual_seed(seed))  # type: ignore[method-assign]
        loop.train()
        ends.append(weights(loop))
    assert not same(*ends)


class Remembering(Adaptive):
    """A law that counts what it is shown."""

    def __init__(self) -> None:
        self.table = np.zeros(200)
        self.order: list[int] = []

    def observe(self, ids: np.ndarray, losses: np.ndarray, correct: np.ndarray) -> None:
        assert len(ids) == len(losses) == len(correct)
        assert correct.dtype == bool
        np.add.at(self.table, ids, losses)
        self.order += ids.tolist()

    def state(self) -> dict[str, np.ndarray]:
        return {"table": self.table}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.table = state["table"].copy()


def test_an_adaptive_law_sees_everything_predicted_and_masks_at_the_last_moment(tmp_path: Path) -> None:
    law = Remembering()
    loop = small.loop(small.recipe(schedule={"steps": 2}, accumulate=2), tmp_path, law=law)
    loop.train()
    batches = [small.batch(index, 0, loop.built.vocabulary) for index in range(4)]
    assert law.order == [int(id) for one in batches for id in one.ids[one.asked[:-1]]]  # the last has weight 0
    assert loop.built.batches.masked == 4


def test_a_loss_that_is_not_a_number_ends_the_run(tmp_path: Path) -> None:
    saved: list[int] = []
    hooks = Hooks()
    loop = small.loop(small.recipe(schedule={"steps": 9}, checkpoint_every=2, log_every=100), tmp_path, hooks)
    hooks.save = lambda: saved.append(loop.snapshot()["progress"]["step"])  # type: ignore[assignment]
    after = loop.after_step

    def poison() -> None:
        after()
        if loop.progress.step == 3:
            with torch.no_grad():
                next(loop.built.model.parameters()).fill_(math.nan)

    loop.after_step = poison  # type: ignore[method-assign]
    with pytest.raises(BesagError, match="the loss is nan at step 4"):
        loop.train()
    assert saved == [2]  # the broken weights of step 4 are not kept


def test_it_evaluates_and_saves_when_it_should_and_stops_when_asked(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []
    recipe = replace(small.recipe(schedule={"steps": 99}, checkpoint_every=4), evaluation=Evaluation(every=3))
    loop = small.loop(recipe, tmp_path)
    loop.hooks.save = lambda: seen.append(("save", loop.progress.step))  # type: ignore[assignment]

    def evaluate() -> None:
        seen.append(("evaluate", loop.progress.step))
        loop.built.model.eval()

    loop.hooks.evaluate = evaluate
    loop.hooks.stop = lambda: loop.progress.step >= 8  # asked as step 9 begins
    loop.train()
    assert seen == [("evaluate", 3), ("save", 4), ("evaluate", 6), ("save", 8), ("save", 9)]
    assert loop.stopped
    assert not loop.progress.finished
    assert loop.built.model.training


def test_beginning_anew_takes_none_of_a_runs_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that start and layers that are compiled took half a minute each time; the first time it counts."""
    now = [0.0]
    monkeypatch.setattr(schedule.time, "monotonic", lambda: now[0])
    recipe = small.recipe(schedule={"minutes": 2.0, "warmup": 0.0}, checkpoint_every=1000)
    store, told = Checkpoints(tmp_path / "checkpoints"), []

    def sitting(start: Checkpoint | None, steps: int) -> Any:
        loop = small.loop(recipe, tmp_path, Hooks(), start)
        loop.hooks.stop = lambda: loop.progress.step - (start.step if start else 0) >= steps - 1
        loop.hooks.save = lambda: store.save(loop.progress.step, loop.snapshot(), {})  # type: ignore[assignment]
        trained = loop.training_step

        def step(*given: Any, **named: Any) -> Any:
            fresh = not told or told[-1][0] is not loop
            now[0] += 30.0 if fresh else 1.0
            told.append((loop, loop.progress.seconds))
            return trained(*given, **named)

        loop.training_step = step  # type: ignore[method-assign]
        now[0] += 20.0  # until the first batch is there
        loop.train()
        return loop

    first = sitting(None, 10)
    assert first.progress.seconds == pytest.approx(38.0)  # nine steps, one of them with 30 seconds
    second = sitting(store.newest(), 10)
    assert second.progress.seconds == pytest.approx(48.0)  # every step took the second it took before
    last = sitting(store.newest(), 10**6)
    assert last.progress.finished
    assert last.progress.step == pytest.approx(120 - 30, abs=2)


def test_minutes_end_a_run(tmp_path: Path) -> None:
    lines: list[dict[str, float]] = []
    recipe = small.recipe(schedule={"minutes": 0.01, "warmup": 0.0})
    loop = small.loop(recipe, tmp_path, Hooks(log=lines.append))
    loop.train()
    assert loop.progress.finished
    assert len(lines) > 5
    assert lines[-1]["seconds"] <= 0.6 * 1.2
    assert lines[-1]["lr"] < 0.2 * 1e-3
