"""What a run would be, without running it: `besag train check`.

Everything is built as the run would build it, the data tokenised and the first epoch planned; no step is taken. What
cannot be known is not said: how many steps fit into some minutes is seen only when they are taken. Memory is a rough
estimate: weights, gradients and the optimiser's moments by their sizes, activations by the rule of 34 bytes a token,
hidden unit and layer in 16 bits (Korthikanti et al. 2023, attention without stored scores), twice that in 32.
"""

from __future__ import annotations

from collections.abc import Iterator

from besag.hardware import choose_device
from besag.training.data.cache import Cache
from besag.training.recipe import Recipe
from besag.training.recipe import checks as recipe_checks
from besag.training.run.build import Built, build

ACTIVATION_BYTES = 34  # of a token, hidden unit and layer, where numbers have 16 bits
LOGIT_COPIES = 3  # logits, their softmax and its gradient, in float32
MOMENTS = 2  # that the optimiser keeps of each weight, at most


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
    weights, activations = memory(built, total, trained)
    yield (
        "memory",
        f"about {_size(weights + activations)}: {_size(weights)} for weights, {_size(activations)} for a batch",
    )


def _corpus(cache: Cache | None) -> str:
    if cache is None:
        return "a stream: its size is not known"
    return f"{len(cache.documents) - 1:,} documents, {len(cache.tokens):,} tokens"


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
    each = tokens / batches * built.clock.each  # tokens of one step
    if kind == "minutes":
        yield "run", f"{planned}; one step is {each:,.0f} tokens"
        return
    steps = total if kind == "steps" else total / each
    said = f"about {steps * each:,.0f} tokens" if kind == "steps" else f"about {steps:,.0f} steps"
    yield "run", f"{planned}: {said}, {steps * each / tokens:.2f} epochs"


def memory(built: Built, total: int, trained: int) -> tuple[int, int]:
    """Bytes: (weights, gradients and moments; what one batch leaves for the way back)."""
    recipe, config = built.recipe, built.model.config
    pure = built.precision == "bfloat16-pure"
    of_one = (2 + 4 + 2 if pure else 4 + 4) + 4 * MOMENTS  # weight, master, gradient; moments in float32
    weights = of_one * trained + (2 if pure else 4) * (max(total - trained, 0) + (total if recipe.run.ema else 0))
    scale = 2 if built.precision == "float32" else 1
    tokens = recipe.data.batch_tokens
    layers = ACTIVATION_BYTES * scale * tokens * int(config.hidden_size) * int(config.num_hidden_layers)
    asked = tokens * max(recipe.masking.rate, recipe.masking.end_rate or 0.0) * recipe.masking.predict
    return weights, layers + int(4 * LOGIT_COPIES * asked * int(config.vocab_size))


def _size(count: float) -> str:
    """In GiB, or MiB where that is less than one.

    >>> _size(3 * 2**30), _size(5 * 2**20)
    ('3.0 GiB', '5 MiB')
    """
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
