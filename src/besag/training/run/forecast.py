"""What a run would be, without running it: `besag train check`.

Everything is built as the run would build it, the data tokenised and the first epoch planned; no step is taken. What
cannot be known is not said: how many steps fit into some minutes is seen only when they are taken. Memory is the rough
estimate of `memory.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean, harmonic_mean

from besag.hardware import choose_device, memory_available
from besag.results.words import counted
from besag.training import optimizers
from besag.training.data.cache import Cache
from besag.training.data.clock import batches_at
from besag.training.recipe import Recipe
from besag.training.recipe import checks as recipe_checks
from besag.training.run import memory
from besag.training.run.build import Built, build
from besag.training.run.checkpoint import MEGABYTE

PARTS = 1000  # of a run, over which the mean of a ramp is taken


def forecast(recipe: Recipe) -> list[tuple[str, str]]:
    """What there is to say, as (name, words)."""
    built = build(recipe, device=choose_device(recipe.run.device))
    return list(_lines(built))


def _lines(built: Built) -> Iterator[tuple[str, str]]:
    recipe = built.recipe
    yield "data", _corpus(built.train)
    yield "held out", _corpus(built.valid) if built.valid is not None else "nothing"
    yield "vocabulary", f"{built.vocabulary.size:,} tokens"
    yield from _sequences(built)
    total = sum(weight.numel() for weight in built.model.parameters())
    trained = sum(weight.numel() for weight in built.objective.parameters() if weight.requires_grad)
    yield "network", f"{type(built.model).__name__}, {total:,} parameters"
    yield "trained", f"{trained:,} parameters" + (", some of them of the objective alone" if trained > total else "")
    yield "masking", f"{recipe.masking.law}, rate {recipe.masking.rate:g} ({recipe.masking.rate_law})"
    yield "objective", recipe.objective.name
    yield "device", f"{built.device}, {built.precision}"
    left = memory_available(built.device)
    rest = "" if left is None else f"; {memory.size(left)} are left"
    yield "memory", f"{memory.need(recipe, built.model, built.precision, trained)}{rest}"
    saved = checkpoint_bytes(built) / MEGABYTE
    yield "a checkpoint", f"about {saved:,.1f} MB, in {counted(math.ceil(saved / recipe.run.checkpoint_shard), 'file')}"


def checkpoint_bytes(built: Built) -> int:
    """Of the tensors in a checkpoint: weights in float32, what the optimiser remembers of them, averages."""
    run, optimizer = built.recipe.run, optimizers.make(built.objective, built.recipe.optimizer)
    short = 2 if run.checkpoint_state == "16-bit" else 4
    averaged = {id(weight) for weight in built.model.parameters()} if run.ema else set()
    total = 0
    for weight in built.objective.parameters():
        remembered = len(optimizer.begin(weight)) + (id(weight) in averaged) if weight.requires_grad else 0
        total += weight.numel() * (4 + remembered * (short if weight.ndim >= 2 else 4))
    return total


def _corpus(cache: Cache | None) -> str:
    if cache is None:
        return "a stream: its size is not known"
    return f"{len(cache.documents) - 1:,} documents, {len(cache.tokens):,} tokens"


def _together(built: Built, kind: str) -> float:
    """Batches of each process in a step, on average over the steps: a ramp makes many small ones first."""
    run, ramp = built.recipe.run, built.recipe.schedule.ramp
    sizes = [batches_at((part + 0.5) / PARTS, run.accumulate, ramp) for part in range(PARTS)]  # at even progress
    return fmean(sizes) if kind == "steps" else harmonic_mean(sizes)


def _sequences(built: Built) -> Iterator[tuple[str, str]]:
    kind, total = recipe_checks.total(built.recipe)
    planned = f"{total:g} minutes" if kind == "minutes" else f"{int(total):,} {kind}"
    plan = getattr(built.batches, "plan", None)
    if built.train is None or plan is None:
        yield "run", planned
        return
    epoch = plan.epoch(0)
    passages, batches = len(epoch.start), len(epoch.batches) - 1
    tokens = int(epoch.tokens[-1]) * plan.copies
    yield "an epoch", f"{passages:,} sequences of {tokens / plan.copies / passages:.1f} tokens, {batches:,} batches"
    each = tokens / batches * built.clock.world * _together(built, kind)  # tokens of one step, on average
    if kind == "minutes":
        yield "run", f"{planned}; one step is {each:,.0f} tokens"
        return
    steps = total if kind == "steps" else total / each
    said = f"about {steps * each:,.0f} tokens" if kind == "steps" else f"about {steps:,.0f} steps"
    yield "run", f"{planned}: {said}, {steps * each / tokens:.2f} epochs"
