"""The loop: transformers' Trainer, told where its batches come from, what a loss is and what is done after a step.

The model that it trains is the objective. A step's loss is Σ total / Σ weight, both over all processes and accumulated
batches: each process takes its total × processes / that count, and the mean of gradients over processes is right.
Nothing here waits for the device but the lines of the log, checkpoints, and laws of masks that adapt.
"""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, nn
from torch.utils.data import DataLoader

from besag.errors import BesagError
from besag.masks.law import Adaptive
from besag.masks.passages import NO_TAGS
from besag.training import optimizers
from besag.training.network.batch import Batch
from besag.training.objectives.objective import Predicted
from besag.training.recipe import Recipe
from besag.training.run.averaging import Averaging
from besag.training.run.build import LOOK, Built, nothing_masked
from besag.training.run.checkpoint import Checkpoint, random_state, set_random_state
from besag.training.run.meter import Meter
from besag.training.run.ranks import Ranks
from besag.training.run.schedule import SETTLING, Progress, Rates, Timer
from besag.training.run.sixteen import unpack

Trainer: Any = transformers.Trainer  # what is overridden here has other types there
Callback: Any = transformers.TrainerCallback

AHEAD = 4  # steps that the host may be ahead of a GPU, where time is what counts


@dataclass
class Hooks:
    """What a run does besides training; each is told on every process, at the same step."""

    log: Callable[[dict[str, float]], None] = lambda numbers: None  # a line, every log_every steps
    advance: Callable[[], None] = lambda: None  # every step
    evaluate: Callable[[], None] | None = None
    save: Callable[[], None] = lambda: None
    write: Callable[[], None] = lambda: None  # the model, as it is
    stop: Callable[[], bool] = field(default=lambda: False)  # end now, with a checkpoint


def arguments(recipe: Recipe, folder: Path, device: torch.device, max_steps: int) -> transformers.TrainingArguments:
    """What transformers must know. Precision, checkpoints, logs and schedules are done here, not there."""
    made = transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=max_steps,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=1,  # the batches of a step are one input: their number may grow
        max_grad_norm=recipe.optimizer.clip,
        use_cpu=device.type == "cpu",
        seed=recipe.run.seed % 2**32,
        logging_steps=recipe.run.log_every,
        logging_nan_inf_filter=False,
        save_strategy="no",
        eval_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        ddp_broadcast_buffers=False,
        bf16=False,
        fp16=False,
    )
    if made.n_gpu > 1:
        made._n_gpu = 1  # several GPUs are several processes, never threads of one
    return made


class Loop(Trainer):  # type: ignore[misc]
    def __init__(
        self, recipe: Recipe, built: Built, folder: Path, hooks: Hooks, start: Checkpoint | None, ranks: Ranks
    ) -> None:
        self.recipe, self.built, self.hooks, self.ranks = recipe, built, hooks, ranks
        self.progress = Progress(recipe)
        self._start: dict[str, Any] | None = None
        self._checkpoint: Any = start
        if start is not None:
            with start.fitting():
                self._start = unpack(start.read())
                self.progress.restore(self._start["progress"])
                built.objective.load_state_dict(self._start["objective"])
        super().__init__(model=built.objective, args=arguments(recipe, folder, built.device, self.progress.max_steps))
        self.remove_callback(transformers.PrinterCallback)
        self.add_callback(_Flow(self))
        self.meter = Meter()
        self.averaging = Averaging(built.encoder.trained, recipe.run.ema) if recipe.run.ema else None
        if self.averaging is not None and self._start is not None:
            self.averaging.restore(self._start["averaging"])
        self.timer = Timer(self.progress.seconds)
        self.adaptive = built.masking.law if isinstance(built.masking.law, Adaptive) else None
        built.encoder.watched = self.adaptive is not None
        self.stopped = self.exhausted = False
        self._settling = 0  # steps whose length says nothing, for layers may be compiled in them
        self._fared: list[tuple[Predicted, Batch]] = []
        self._events: deque[Any] = deque()
        self._weights = [weight for weight in built.objective.parameters() if weight.requires_grad]
        self._logged = (self.progress.tokens, self.progress.seconds)

    @property
    def finished(self) -> bool:
        """Is there nothing left to do?"""
        return self.progress.finished or self.exhausted

    # ---- where batches come from

    def get_train_dataloader(self) -> DataLoader[Batch]:
        pin, ramp = self.args.device.type == "cuda", self.progress.seen
        return self.built.loader(self.progress.step, self.ranks, pin=pin, **({} if ramp is None else {"seen": ramp}))

    def get_batch_samples(
        self, epoch_iterator: Iterator[Batch], num_batches: int, device: torch.device
    ) -> tuple[list[list[Batch]], float]:
        """The batches of one step, and the weight of what they ask over all processes; sets the step's rates."""
        wanted = self.progress.together
        batches = list(islice(epoch_iterator, wanted))
        if len(batches) < wanted:  # standard input is over
            self.exhausted = self.control.should_training_stop = True
            return [], 0.0
        if self.adaptive is not None:
            batches = [self.built.batches.mask(batch) for batch in batches]
        if self.progress.seen is not None:  # by the clock, who prepared them could not know
            batches = [batch._replace(step=self.progress.step) for batch in batches]
        if self.progress.kind == "minutes":
            self._wait_for_device()
        self._settle()
        pad = self.built.encoder.pad_id
        weights = [float(batch.weight.sum()) for batch in batches]
        weight, unmasked, tokens, seconds, stop = self.ranks.sum(
            sum(weights),
            weights.count(0.0),
            sum(int((batch.ids != pad).sum()) for batch in batches),
            self.timer.seconds if self.ranks.first else 0.0,
            self.hooks.stop(),
        )
        self.stopped = stop > 0
        self.lr_scheduler.apply(self.progress.begin(int(tokens), seconds, int(unmasked)))
        if not weight:
            self._refuse_unmasked(int(unmasked), any(bool(batch.free.any()) for batch in batches))
        self.built.clock.publish(self.progress.share)
        return [batches], max(weight, 1e-9)

    def refuse_unmasked(self) -> None:
        """Reject what has been trained on no masked token at all."""
        count = self.progress.batches_of(self.ranks.world)
        if 0 < count <= self.progress.unmasked:
            raise nothing_masked(self.recipe, count, True)

    def _refuse_unmasked(self, coming: int, can_be: bool) -> None:
        """Reject a run whose first batches mask nothing, unless a rate that rises may change that."""
        before = self.progress.batches_of(self.ranks.world)
        if before + coming < LOOK or self.progress.unmasked < before:
            return
        now, *later = (self.built.mean_rate(max(self.progress.share, part / LOOK)) for part in range(LOOK + 1))
        if max(later) <= now:
            raise nothing_masked(self.recipe, before + coming, can_be)

    def _settle(self) -> None:
        """A step that begins or ends while a sitting settles counts as the steps of the sitting before did."""
        usual = self.progress.step_seconds
        if self._settling and usual:
            self.timer.turn_back(self.progress.seconds + usual)
        self._settling = max(self._settling - 1, 0)

    def _wait_for_device(self) -> None:
        if self.args.device.type != "cuda":
            return
        event: Any = torch.cuda.Event
        self._events.append(event())
        self._events[-1].record()
        if len(self._events) > AHEAD:
            self._events.popleft().synchronize()

    # ---- a step

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        self.optimizer: optimizers.Masters = optimizers.make(self.built.objective, self.recipe.optimizer)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None) -> Any:
        self.lr_scheduler = Rates(self.optimizer if optimizer is None else optimizer)
        return self.lr_scheduler

    def training_step(self, model: nn.Module, inputs: list[Batch], num_items_in_batch: Any = None) -> Tensor:
        """The gradient of all batches of a step; processes exchange it with the last of them."""
        losses: list[Tensor] = []
        for batch in inputs:
            alone = len(losses) < len(inputs) - 1
            with self.accelerator.no_sync(model) if alone else contextlib.nullcontext():
                with self.built.autocast():
                    loss = self.compute_loss(model, batch.to(self.args.device), num_items_in_batch=num_items_in_batch)
                self.accelerator.backward(loss)
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def compute_loss(
        self, model: nn.Module, inputs: Batch, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        loss = model(inputs)
        self.meter.add(loss, inputs)
        if self.adaptive is not None and loss.predicted is not None:
            self._fared.append((loss.predicted, inputs))
        mean = loss.total * (self.ranks.world / num_items_in_batch)
        return (mean, loss) if return_outputs else mean

    def _clip_grad_norm(self, model: nn.Module) -> Tensor:
        return nn.utils.clip_grad_norm_(self._weights, self.args.max_grad_norm)

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        return grad_norm  # without clipping there is none, and it is not worth a pass over all weights

    def floating_point_ops(self, inputs: Any) -> int:
        return 0

    def store_flos(self) -> None:
        """Nothing was counted."""

    def after_step(self) -> None:
        self.progress.end()
        if self.averaging is not None:
            self.averaging.update(self.progress.step)
        if self.adaptive is not None:
            self._observe(self.adaptive)
        self.hooks.advance()

    def _observe(self, law: Adaptive) -> None:
        """Show an adaptive law what was predicted, in the order of batches: over processes, then over accumulation."""
        here = [_told(predicted, batch) for predicted, batch in self._fared]
        self._fared = []
        parts = [part for batch in zip(*self.ranks.gather(here), strict=True) for part in batch]
        if parts:
            ids, losses, correct, tag = (np.concatenate(column) for column in zip(*parts, strict=True))
            if len(tag):
                law.observe(ids, losses, correct, tag)
            else:
                law.observe(ids, losses, correct)

    # ---- beginning and going on

    def begin(self) -> None:
        """Called when the Trainer has set everything up, before the first batch."""
        self.model_wrapped.train()
        wrapped: Any = self.optimizer  # accelerate's wrapper is for losses that are scaled; ours are not
        self.optimizer = self.lr_scheduler.optimizer = wrapped.optimizer
        self.timer = Timer(self.progress.seconds)
        if self._start is None:
            torch.manual_seed((self.recipe.run.seed << 16) + self.ranks.rank)  # dropout
            return
        saved, self._start = self._start, None
        self._settling = SETTLING + 1
        self.timer = Timer(self.progress.seconds + self.progress.step_seconds)  # it began the last step, and ended it
        torch.manual_seed((self.recipe.run.seed << 16) + self.ranks.rank)  # of a device that the checkpoint knows not
        self.state.global_step = self.progress.step
        with self._checkpoint.fitting():
            self._restore(saved)

    def _restore(self, saved: dict[str, Any]) -> None:
        weights = saved["objective"]
        self.optimizer.load_state_dict(saved["optimizer"])
        self.optimizer.put_masters((weight, weights[name]) for name, weight in self._named() if name in weights)
        if self.adaptive is not None:
            self.adaptive.restore({name: value.numpy() for name, value in saved["law"].items()})
        self.meter.restore(saved["meter"], self.args.device)
        self._tr_loss += saved["loss"].to(self.args.device)
        self._globalstep_last_logged, self._logged = saved["logged"]
        if len(saved["random"]) == self.ranks.world:
            set_random_state(saved["random"][self.ranks.rank])

    def snapshot(self) -> dict[str, Any]:
        """Everything that decides how the run goes on. All processes take part."""
        state: dict[str, Any] = {
            "objective": self._exact(),
            "optimizer": self.optimizer.remembered(),
            "averaging": {} if self.averaging is None else self.averaging.state(),
            "law": {} if self.adaptive is None else {k: torch.from_numpy(v) for k, v in self.adaptive.state().items()},
            "progress": self.progress.state(),
            "meter": self.meter.state(),
            "loss": self._tr_loss.detach(),
            "logged": (self._globalstep_last_logged, self._logged),
            "random": self.ranks.gather(random_state()),
        }
        self._refuse_nan(float(state["loss"]))
        return state

    def _exact(self) -> dict[str, Tensor]:
        """Weights and buffers; where a weight is rounded from a master, the master, from which it can be had again."""
        state: dict[str, Tensor] = self.built.objective.state_dict()
        return state | {name: self.optimizer.exact(weight) for name, weight in self._named() if name in state}

    def _named(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The weights by all their names: one that is tied has two."""
        return self.built.objective.named_parameters(remove_duplicate=False)

    # ---- what is told

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "loss" not in logs:
            return  # the Trainer's own summary
        self._refuse_nan(logs["loss"])
        means = self.meter.read()
        tokens, seconds = self.progress.tokens, self.timer.seconds
        before, since = self._logged
        self._logged = (tokens, seconds)
        self.hooks.log({
            "step": self.progress.step,
            "tokens": tokens,
            "seconds": seconds,
            "loss": logs["loss"],
            "lr": logs["learning_rate"],
            **({"grad_norm": logs["grad_norm"]} if "grad_norm" in logs else {}),
            "tokens_per_second": (tokens - before) / max(seconds - since, 1e-9),
            "rate": self.built.mean_rate(self.progress.share),
            **means,
        })  # fmt: skip

    def _refuse_nan(self, loss: float) -> None:
        if not math.isfinite(loss):
            raise BesagError(
                f"the loss is {loss} at step {self.progress.step}: the run has broken down. The last checkpoint is "
                "kept; a lower optimizer.lr, a longer schedule.warmup or a smaller optimizer.clip may get past it"
            )

    def _evaluate(
        self, trial: Any = None, ignore_keys_for_eval: Any = None, skip_scheduler: bool = False
    ) -> dict[str, float]:
        if self.hooks.evaluate is not None:
            with self.timer.paused():
                self.hooks.evaluate()
            self.model_wrapped.train()
        return {}

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        return False

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        """After the lines of this step were logged: a checkpoint, a model on the way, or both."""
        with self.timer.paused():
            if self.due(self.recipe.run.checkpoint_every) or self.finished or self.stopped:
                self.hooks.save()
            if self.due(self.recipe.run.models_every) and not self.finished:
                self.hooks.write()
        self.model_wrapped.train()

    def due(self, every: int) -> bool:
        """Is it time for what is done every so many steps? 0 is never."""
        return bool(every) and self.progress.step % every == 0

    @contextlib.contextmanager
    def final_weights(self) -> Iterator[None]:
        """The weights that are evaluated and saved: the averages, where there are any."""
        with contextlib.nullcontext() if self.averaging is None else self.averaging.swapped_in():
            yield


class _Flow(Callback):  # type: ignore[misc]
    """When the Trainer logs, evaluates, saves and stops."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        self.loop.begin()
        return control

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        control.should_log = control.should_save = self.loop.exhausted
        return control

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        loop, run, every = self.loop, self.loop.recipe.run, self.loop.recipe.evaluation.every
        loop.after_step()
        over = loop.progress.finished or loop.stopped
        control.should_training_stop = over
        # a run that was stopped logs, and evaluates when it goes on, as one that was not: nothing tells them apart
        control.should_log = loop.due(run.log_every) or loop.progress.finished
        control.should_evaluate = loop.due(every) and not over
        control.should_save = loop.due(run.checkpoint_every) or loop.due(run.models_every) or over
        return control


def _told(predicted: Predicted, batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What is shown to an adaptive law of one batch, without what only fills it up."""
    as_asked = len(batch.asked) == len(predicted.ids)
    kept = (batch.weight > 0).cpu().numpy() if as_asked else slice(None)
    ids, losses, correct = (part.cpu().numpy()[kept] for part in predicted)
    tag = batch.tag[batch.asked].cpu().numpy()[kept] if batch.tag is not None and as_asked else NO_TAGS
    return ids, losses.astype(np.float64), correct, tag
