"""A recipe, carried out: data, network, loop, checkpoints, logs, and a Hugging Face folder at the end.

The output folder holds recipe.toml, log.jsonl, curves.png, checkpoints/, cache/, models/ where some are kept on the way
and, when the run is over, model/, or adapter/ where an adapter is kept apart.
Knows the order of things and the files; everything that computes is elsewhere.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from besag.errors import BesagError, require
from besag.files.claim import Claim
from besag.files.whole import write_whole
from besag.hardware import choose_device
from besag.training import recipe as recipes
from besag.training.recipe import Recipe
from besag.training.recipe import checks as recipe_checks
from besag.training.run import continuing, gain, sixteen
from besag.training.run.card import hardware_words
from besag.training.run.checkpoint import Checkpoint, Checkpoints, random_state, set_random_state
from besag.training.run.claim import ADAPTER, CHECKPOINTS, MODEL, MODELS, RECIPE, begun, take, tried
from besag.training.run.sittings import Sittings

Monitor = Callable[[Any, int], dict[str, float]]  # (model, step) → numbers by name


@dataclass(frozen=True)
class TrainingResult:
    """What came of a run; `besag.load(result.model)` loads the network."""

    folder: Path
    metrics: dict[str, float] = field(default_factory=dict)  # the last of each number in the log
    finished: bool = True  # False: it was stopped before its end, and can be resumed
    step: int = 0
    signal: int | None = None  # that stopped it: 2 is Ctrl-C, 15 SIGTERM
    before: dict[str, float] = field(default_factory=dict)  # what the evaluation found of the model it began from

    @property
    def model(self) -> Path:
        """The folder of the trained network, written when the run is over."""
        return self.folder / MODEL

    @property
    def adapter(self) -> Path:
        """The folder of the trained adapter, where the recipe keeps it apart: then there is no other model."""
        return self.folder / ADAPTER


def train(
    recipe: Recipe,
    *,
    resume: bool = False,
    monitor: Callable[[Any], Monitor] | None = None,
    stop: Callable[[], bool] | None = None,
    command: str = "",
    quiet: bool = False,
) -> TrainingResult:
    """Train what the recipe says, into its output folder.

    `monitor`, given what was built, makes what evaluates: a function of the network and the step. `stop` is asked at
    every step; once it says True a checkpoint is written and the run ends. `command` is quoted in the model's card.
    """
    require("accelerate", extra="train")
    recipe_checks.check(recipe, "the recipe")
    with _threads(recipe.run.threads), _joined(recipe) as device:
        return _Run(recipe, monitor, stop, command, quiet).carry_out(device, resume)


class _Run:
    def __init__(
        self,
        recipe: Recipe,
        monitor: Callable[[Any], Monitor] | None,
        stop: Callable[[], bool] | None,
        command: str,
        quiet: bool,
    ) -> None:
        self.recipe, self.command, self.quiet = recipe, command, quiet
        self.folder = Path(recipe.run.output)
        self.checkpoints = Checkpoints(self.folder / CHECKPOINTS, recipe.run.keep, recipe.run.checkpoint_shard)
        self.metrics: dict[str, float] = {}
        self.before: dict[str, float] = {}  # of the model that the run began from
        self._make_monitor, self._stop = monitor, stop
        self._claim: Claim | None = None

    def carry_out(self, device: torch.device, resume: bool) -> TrainingResult:
        try:
            return self._carry_out(device, resume)
        finally:
            if self._claim is not None:
                self._claim.release()

    def _carry_out(self, device: torch.device, resume: bool) -> TrainingResult:
        from besag.training.run import logs
        from besag.training.run.build import build
        from besag.training.run.ranks import Ranks
        from besag.training.run.trainer import Hooks, Loop

        self.ranks = Ranks()
        start = self._begin(resume)
        if start is not None and start.meta.get("over") == list(recipe_checks.total(self.recipe)) and self._has_model():
            rows = logs.read(self.folder)
            metrics = {name: number for row in rows for name, number in row.items()}
            return TrainingResult(self.folder, metrics, True, start.step, before=gain.of_base(rows))
        lengths = None if start is None else start.meta.get("lengths")
        self.built = build(self.recipe, device=device, ranks=self.ranks, resume=start is not None, lengths=lengths)
        if start is not None:
            continuing.refuse_other_text(start, self.built)
        self.monitor = None if self._make_monitor is None else self._make_monitor(self.built)
        hooks = Hooks(log=self._record, advance=self._advance, save=self._save, write=self._write_on_the_way)
        hooks.evaluate = None if self.monitor is None else self._evaluate
        hooks.stop = self._stop or hooks.stop
        self.loop = Loop(self.recipe, self.built, self.folder, hooks, start, self.ranks)
        progress = self.loop.progress
        self.sittings = self._sit_down(start)
        self.log = None
        begins_from_model = self.recipe.model.start is not None and progress.step == 0 and self.monitor is not None
        if self.ranks.first:
            self.log = logs.Log.begin(
                self.recipe, step=progress.step, tokens=progress.tokens, seconds=progress.seconds, quiet=self.quiet,
                evaluates=self.monitor is not None and (progress.finished or begins_from_model),
            )  # fmt: skip
            rows = logs.read(self.folder) if start is not None else []
            self.metrics = {name: number for row in rows for name, number in row.items()}
            self.before = gain.of_base(rows)
        try:
            if begins_from_model:
                self._evaluate()
                self.before = gain.of_base([self.metrics] if self.metrics else [])
            elif start is not None and self._owes_evaluation(logs):
                self._evaluate()
            if not progress.finished:
                self.loop.train()
            if self.loop.finished:
                with self._averaged():
                    self._finish()
        finally:
            if self.log is not None:
                self.log.close()
        return TrainingResult(self.folder, self.metrics, self.loop.finished, progress.step, before=self.before)

    def _sit_down(self, start: Checkpoint | None) -> Sittings:
        before = [] if start is None else start.meta.get("sittings", [])
        hardware = hardware_words(str(self.built.device), self.ranks.world)
        with start.fitting() if start is not None else nullcontext():
            return Sittings(before, hardware, self.loop.progress)

    def _owes_evaluation(self, logs: Any) -> bool:
        """Was the run stopped at a step that it would have evaluated at, before it did?"""
        every, progress = self.recipe.evaluation.every, self.loop.progress
        if self.monitor is None or not every or progress.finished or progress.step % every:
            return False
        done = self.ranks.first and any(
            row["step"] == progress.step and logs.is_evaluation(row) for row in logs.read(self.folder)
        )
        return not self.ranks.of_first(done)

    # ---- the output folder

    def _begin(self, resume: bool) -> Checkpoint | None:
        """The checkpoint to go on from; a folder that holds another run is left alone."""
        return self.ranks.made_once(lambda: self._take(resume))

    def _take(self, resume: bool) -> Checkpoint | None:
        written = self.folder / RECIPE
        if written.exists() and not tried(self.folder) and not begun(self.folder):
            raise BesagError(f"{str(written)!r} was written by no run, and would be lost: choose another run.output")
        self._claim = take(self.folder)
        start = None
        if not begun(self.folder):
            if resume:
                warnings.warn(f"there is nothing to resume in {str(self.folder)!r}: the run begins", stacklevel=2)
        elif written.exists():
            if not resume:
                raise BesagError(
                    f"{str(self.folder)!r} holds a run already: go on with it (--resume), or choose another run.output"
                )
            before = recipes.read(written)
            recipes.refuse_changes(before, self.recipe, also=("run.accumulate",))
            start = self.checkpoints.newest()
            if start is not None:
                continuing.refuse_other_steps(before.run.accumulate, start, self.recipe, self.ranks.world)
            else:
                warnings.warn(f"there is no checkpoint in {str(self.folder)!r} yet: the run begins anew", stacklevel=2)
        else:
            raise BesagError(
                f"{str(self.folder)!r} holds a {MODEL}, a log or {CHECKPOINTS}, but no {RECIPE} that says what of: "
                "choose another run.output"
            )
        write_whole(written, recipes.to_toml(self.recipe, beside=self.folder))
        return start

    def _has_model(self) -> bool:
        return (self._product() / "config.json").exists()

    def _product(self) -> Path:
        """What the run leaves: a network, or an adapter of the one that it began from."""
        return self.folder / (ADAPTER if recipes.is_apart(self.recipe.adapt) else MODEL)

    # ---- what the loop calls

    def _record(self, numbers: dict[str, float]) -> None:
        self.metrics.update(numbers)
        if self.log is not None:
            self.log.record(numbers)

    def _advance(self) -> None:
        if self.log is not None:
            progress = self.loop.progress
            self.log.advance(progress.step, progress.tokens, progress.seconds)

    def _evaluate(self) -> None:
        """By the first process, while the others wait; draws nothing from any generator of the run."""
        assert self.monitor is not None
        numbers: dict[str, float] = {}
        if self.ranks.first:
            before = random_state()
            model = self.built.encoder.model
            with self.loop.final_weights(), self.built.plain(), torch.no_grad():
                numbers = self.monitor(model, self.loop.progress.step)
            set_random_state(before)
        numbers = self.ranks.of_first(numbers)
        if numbers:
            self._record({"step": self.loop.progress.step, "tokens": self.loop.progress.tokens, **numbers})

    def _save(self) -> None:
        state = self.loop.snapshot()
        if self.log is not None:
            self.log.sync()
        over = recipe_checks.total(self.recipe) if self.loop.finished else None
        about = {"processes": self.ranks.world, "over": over, **continuing.belonging(self.built)}
        about["sittings"] = self.sittings.saved()
        self.ranks.made_once(lambda: self.checkpoints.save(self.loop.progress.step, self._packed(state), about))

    def _packed(self, state: dict[str, Any]) -> dict[str, Any]:
        return sixteen.pack(state) if self.recipe.run.checkpoint_state == "16-bit" else state

    # ---- models

    def _finish(self) -> None:
        self.loop.refuse_unmasked()
        if self.monitor is not None:
            self._evaluate()
        self._write(self._product())

    def _write_on_the_way(self) -> None:
        """The model as it is now, beside the others; draws nothing from any generator of the run."""
        before = random_state()
        self._write(self.folder / MODELS / f"step-{self.loop.progress.step:08d}")
        set_random_state(before)

    def _write(self, folder: Path) -> None:
        """By the first process, while the others wait."""
        from besag.training.run.curves import NAME as CURVES
        from besag.training.run.curves import picture
        from besag.training.run.export import export

        if self.ranks.first:
            picture(self.folder)
            with self.loop.final_weights(), self.built.plain():
                export(
                    folder,
                    self.built,
                    self.loop.progress,
                    self.metrics,
                    before=self.before,
                    sittings=self.sittings.all(),
                    processes=self.ranks.world,
                    command=self.command,
                    curves=self.folder / CURVES,
                )
        self.ranks.gather(None)

    def _averaged(self) -> AbstractContextManager[None]:
        """In here the weights are those of the finished model, on every process."""
        if self.recipe.run.average > 1:
            return self._mean_of_last()
        return self._beside_start() if self.recipe.run.start_share else nullcontext()

    def _beside_start(self) -> AbstractContextManager[None]:
        from besag.training.network.networks import network
        from besag.training.run.averaging import blended

        began = network(self.recipe, self.built.vocabulary).state_dict()
        return blended(self.built.model, began, self.recipe.run.start_share)

    @contextmanager
    def _mean_of_last(self) -> Iterator[None]:
        from besag.training.run.averaging import mean_of

        last = self.checkpoints.last(self.recipe.run.average)
        if len(last) < self.recipe.run.average:
            warnings.warn(
                f"run.average = {self.recipe.run.average}, but there are {len(last)} checkpoints: write more of them "
                "(run.checkpoint_every)",
                stacklevel=2,
            )
        states = (sixteen.unpack(one.read())["objective"] for one in last)
        with mean_of(self.built.objective, states):
            yield


@contextmanager
def _joined(recipe: Recipe) -> Iterator[torch.device]:
    """The device of this process; under torchrun, the processes find each other here, and part afterwards."""
    accelerate: Any = require("accelerate", extra="train")
    asked = recipe.run.device
    if asked.partition(":")[2]:
        raise BesagError(
            f"run.device = {asked!r}: choose among several devices with CUDA_VISIBLE_DEVICES, and write 'cuda' here"
        )
    device = choose_device(asked)
    joined_before = dist.is_available() and dist.is_initialized()
    state = accelerate.PartialState(cpu=device.type == "cpu")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*broadcast_buffers.*")  # accelerate's way of saying it
            yield torch.device(state.device) if device.type == "cuda" else device
    finally:
        if dist.is_available() and dist.is_initialized() and not joined_before:
            dist.destroy_process_group()
            gc.collect()  # the wrapped model lies in a cycle and holds the group; its threads abort an ending Python


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
