"""Whether a recipe makes sense: bounds of numbers, names that are known, keys that go together.

Heavy packages are imported only here and only when something of theirs is named.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import typing
from typing import TYPE_CHECKING, Any

from besag.errors import BesagError, nearest, quoted
from besag.registry import refuse_unknown
from besag.training.recipe import contexts, together, translation, values
from besag.training.recipe.values import Bounds

if TYPE_CHECKING:
    from besag.training.recipe import Recipe

STDIN = "-"  # among names of files
TOTALS = ("steps", "tokens", "minutes")  # how long a run is: exactly one of them

SHARE, SOME_SHARE = Bounds(0, 1), Bounds(0, 1, low_open=True)
BELOW_ONE = Bounds(0, 1, high_open=True)
FACTOR, WEIGHT = Bounds(0, 10**6, low_open=True), Bounds(0, 10**6)
EVERY, FROM_ZERO = Bounds(1, 10**9), Bounds(0, 10**9)
# Where a number must lie. Beyond the upper ends nothing could be run: what is larger is a slip of the pen, and would
# be found out by a machine that runs out of memory, or never ends.
BOUNDS = {
    "data.held_out": BELOW_ONE, "data.plain": BELOW_ONE, "data.densest": FACTOR, "data.swap_rate": SHARE,
    "data.max_length": Bounds(4, 2**20),
    "data.batch_tokens": Bounds(4, 2**28), "tokenizer.size": Bounds(16, 2**22), "model.subtokens": Bounds(0, 16),
    "masking.rate": SOME_SHARE, "masking.end_rate": SHARE, "masking.hold": BELOW_ONE, "masking.mask": SHARE,
    "masking.random": SHARE, "masking.keep": SHARE, "masking.predict": SOME_SHARE, "masking.copies": Bounds(1, 1000),
    "objective.smoothing": BELOW_ONE, "objective.length": WEIGHT, "objective.relation": WEIGHT,
    "optimizer.lr": FACTOR, "optimizer.matrix_lr": FACTOR, "optimizer.weight_decay": WEIGHT,
    "optimizer.betas": BELOW_ONE, "optimizer.eps": FACTOR, "optimizer.momentum": BELOW_ONE,
    "optimizer.clip": WEIGHT,
    "schedule.steps": EVERY, "schedule.tokens": Bounds(1, 10**15), "schedule.minutes": Bounds(0, 10**7, low_open=True),
    "schedule.warmup": SHARE, "schedule.decay": SHARE, "schedule.floor": SHARE, "schedule.ramp": SHARE,
    "run.seed": Bounds(0, 2**47), "run.accumulate": Bounds(1, 2**16), "run.ema": BELOW_ONE,
    "run.average": Bounds(1, 1000), "run.start_share": BELOW_ONE, "run.checkpoint_every": EVERY,
    "run.checkpoint_shard": Bounds(1, 10**6), "run.keep": EVERY, "run.models_every": FROM_ZERO,
    "run.log_every": EVERY, "run.workers": Bounds(0, 1024), "run.threads": Bounds(1, 1024),
    "adapt.rank": Bounds(1, 2**16), "adapt.alpha": FACTOR, "adapt.task_weight": WEIGHT,
    "evaluation.every": FROM_ZERO, "evaluation.rate": SOME_SHARE, "evaluation.sentences": FROM_ZERO,
    "evaluation.pairs_each": EVERY,
}  # fmt: skip
LAYERS, SETTING = 1000, 2**24  # the most layers of a network, and the largest number among its settings


def check(recipe: Recipe, source: str) -> None:
    """Refuse what cannot be run. `source` is what the message calls the recipe."""
    try:
        _check_data(recipe)
        translation.check(recipe)
        _check_masking(recipe)
        _check_average(recipe)
        total(recipe)
        _check_law(recipe)
        _check_objective(recipe)
        _check_model(recipe)
        together.check(recipe)
        contexts.check(recipe)
    except BesagError as error:
        raise BesagError(f"{source}: {error}") from error


def total(recipe: Recipe) -> tuple[str, float]:
    """How long the run is: ("steps" | "tokens" | "minutes", how many)."""
    given = {name: getattr(recipe.schedule, name) for name in TOTALS if getattr(recipe.schedule, name) is not None}
    if len(given) != 1:
        said = " and ".join(f"schedule.{name} = {value}" for name, value in given.items())
        raise BesagError(
            f"{said or 'no length of the run'}: give one of schedule.steps, schedule.tokens, schedule.minutes"
        )
    [(name, value)] = given.items()
    return name, value


def _check_data(recipe: Recipe) -> None:
    data = recipe.data
    if not data.train and data.dataset is None and not data.source:
        raise BesagError("data.train names no files: give files, globs or '-' for stdin, or the name of a data.dataset")
    if data.train and data.dataset is not None:
        raise BesagError(
            f"data.train = {quoted(list(data.train))} and data.dataset = {quoted(data.dataset)}: give one of the two"
        )
    if STDIN in data.train and recipe.tokenizer.path is None and recipe.model.start is None:
        raise BesagError(
            "data.train = '-' can be read only once, and a tokenizer would have to be trained on it first: name one in "
            "tokenizer.path (`besag tokenizer train` makes one), or write the text to a file"
        )
    if data.batch_tokens < data.max_length:
        raise BesagError(
            f"data.batch_tokens = {data.batch_tokens} is less than data.max_length = {data.max_length}: a batch must "
            "hold a sequence"
        )
    if (
        not data.valid
        and not data.valid_source
        and data.held_out == 0
        and (recipe.evaluation.every or recipe.evaluation.sentences)
    ):
        raise BesagError(
            "data.valid names no files and data.held_out = 0: nothing is held out to evaluate on. Give one, or set "
            "evaluation.every = 0 and evaluation.sentences = 0"
        )


def _check_average(recipe: Recipe) -> None:
    run = recipe.run
    if run.average > run.keep:
        raise BesagError(f"run.average = {run.average}, and run.keep = {run.keep} checkpoints stay: keep as many")
    if run.average > 1 and run.ema:
        raise BesagError(f"run.average = {run.average} and run.ema = {run.ema:g} are two averages: give one of them")
    if run.start_share and recipe.model.start is None:
        raise BesagError(f"run.start_share = {run.start_share:g} is of the weights of model.start, and there is none")
    if run.start_share and (run.ema or run.average > 1 or recipe.adapt.method != "none" or recipe.model.subtokens):
        raise BesagError(
            f"run.start_share = {run.start_share:g} is for weights that are trained as they are: leave out run.ema, "
            "run.average, [adapt] and model.subtokens"
        )


def _evaluates(recipe: Recipe) -> bool:
    return bool(recipe.evaluation.every or recipe.evaluation.sentences)


def _check_masking(recipe: Recipe) -> None:
    masking = recipe.masking
    shares = masking.mask + masking.random + masking.keep
    if abs(shares - 1) > 1e-9:
        raise BesagError(
            f"masking.mask = {masking.mask:g}, random = {masking.random:g} and keep = {masking.keep:g} sum to "
            f"{shares:g}: they are shares of the hidden tokens, and must sum to 1"
        )
    moves = masking.rate_law in ("linear", "cosine")
    if moves and masking.end_rate is None:
        raise BesagError(f"masking.rate_law = {masking.rate_law!r} needs masking.end_rate, where the rate ends")
    if not moves and masking.end_rate is not None:
        raise BesagError(
            f"masking.end_rate = {masking.end_rate:g} is of the rate laws 'linear' and 'cosine', and masking.rate_law "
            f"is {masking.rate_law!r}"
        )
    if masking.per != "token" and masking.mask == 1:
        raise BesagError(
            f"masking.per = {masking.per!r} says what is shown in one way, but with masking.mask = 1 all is shown as "
            "the mask: give masking.random or masking.keep a share, or leave per out"
        )
    most = _highest_rate(recipe)
    if masking.copies > 1 and masking.copies * most > 1 + 1e-9:
        raise BesagError(
            f"masking.copies = {masking.copies} with a rate of up to {most:g} hides {masking.copies * most:g} of each "
            "passage: the copies hide disjoint shares, so copies × rate can be at most 1"
        )


def _highest_rate(recipe: Recipe) -> float:
    masking = recipe.masking
    return 1.0 if masking.rate_law in ("beta", "uniform") else max(masking.rate, masking.end_rate or 0.0)


def law_defaults(name: str) -> dict[str, Any]:
    """The options of a law of masks that have a default a file can hold."""
    import besag.masks  # noqa: F401 (every law registers itself)
    from besag.masks.law import LAWS

    found = {}
    for field in dataclasses.fields(LAWS.find(name)):
        value = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if field.init and (value is None or isinstance(value, bool | int | float | str)):
            found[field.name] = value
    return found


def _check_law(recipe: Recipe) -> None:
    import besag.masks  # noqa: F401 (every law registers itself)
    from besag.masks.law import LAWS

    name, options = recipe.masking.law, recipe.masking.options
    kind = LAWS.find(name)
    refuse_unknown(f"the law of masks {kind.name!r}", LAWS.options(name), options)
    _refuse_unfit("masking.options", options, typing.get_type_hints(kind))
    try:
        kind(**options)
    except TypeError as failure:
        raise BesagError(f"masking.options {quoted(options)} do not fit the law {name!r}: {failure}") from failure
    given = recipe.data.spans is not None or recipe.data.swap is not None or recipe.data.pairs == "in-place"
    if kind.spanned and not given:
        raise BesagError(
            f"masking.law = {name!r} is about spans that are given with the text: name their field in data.spans"
        )


def objective_options(name: str) -> list[str]:
    """The keyword-only arguments of an objective's constructor; `seed` is that of the run."""
    from besag.training.objectives import OBJECTIVES

    parameters = inspect.signature(OBJECTIVES.find(name).__init__).parameters.values()
    return [one.name for one in parameters if one.kind is one.KEYWORD_ONLY and one.name != "seed"]


def _check_objective(recipe: Recipe) -> None:
    from besag.training.objectives import OBJECTIVES

    name, options = recipe.objective.name, recipe.objective.options
    if name == "causal" and recipe.model.decoder != "causal":
        raise BesagError("the objective 'causal' is of a left-to-right decoder: set model.decoder = 'causal'")
    own = objective_options(name)
    if recipe.masking.copies > 1 and not OBJECTIVES.find(name).masks:
        raise BesagError(
            f"masking.copies = {recipe.masking.copies} hides disjoint shares of each passage, but the objective "
            f"{name!r} hides tokens in its own way: set masking.copies = 1"
        )
    _refuse_in_vain(recipe)
    if recipe.run.compile and OBJECTIVES.find(name).attends:
        raise BesagError(
            f"the objective {name!r} asks where the network attends, which compiled layers do not say: set "
            "run.compile = false"
        )
    for option in options:
        if option not in own:
            takes = f"it takes {', '.join(own)}" if own else "it takes no options"
            raise BesagError(f"the objective {name!r} has no option {option!r}: {takes}.{nearest(option, own)}")
    constructor = OBJECTIVES.find(name).__init__
    for parameter in inspect.signature(constructor).parameters.values():
        needed = parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
        if needed and parameter.name not in options:
            raise BesagError(
                f"the objective {name!r} needs objective.options.{parameter.name}; it takes {', '.join(own)}"
            )
    _refuse_unfit("objective.options", options, typing.get_type_hints(constructor))


def _refuse_in_vain(recipe: Recipe) -> None:
    """An objective that could never do what it is for: it would be plain `mlm` under its name."""
    from besag.training.objectives import OBJECTIVES

    name, masking, kind = recipe.objective.name, recipe.masking, OBJECTIVES.find(recipe.objective.name)
    hidden = _highest_rate(recipe) * recipe.data.max_length
    if hidden <= kind.least_hidden - 1:
        raise BesagError(
            f"the objective {name!r} compares {kind.least_hidden} hidden places of a passage, but masking.rate = "
            f"{masking.rate:g} of data.max_length = {recipe.data.max_length} tokens never hides so many: raise either"
        )
    if kind.mask_shown and masking.mask == 0:
        raise BesagError(
            f"the objective {name!r} is about places shown as the mask, and masking.mask = 0 shows none: give "
            "masking.mask a share above 0"
        )


def _refuse_unfit(where: str, options: dict[str, Any], hints: dict[str, Any]) -> None:
    """Options of another type than the one that takes them says."""
    for name, value in options.items():
        if name in hints and not values.fits(value, hints[name]):
            raise BesagError(f"{where}.{name} = {quoted(value)}: {values.expected(hints[name])} is needed")


def _check_model(recipe: Recipe) -> None:
    model = recipe.model
    _refuse_huge(model.config, "model.config")
    if model.vocabulary != "as-is":
        named = {"model.start": model.start, "tokenizer.path": recipe.tokenizer.path}
        missing = [key for key, value in named.items() if value is None]
        if missing or model.decoder != "none":
            needs = f"needs {' and '.join(missing)}" if missing else "is of networks without a decoder"
            raise BesagError(
                f"model.vocabulary = {model.vocabulary!r} {needs}: it gives a trained network another tokenizer"
            )
    if model.start is not None:
        return  # its family, and whether it has these settings, is known when it is found
    from besag.conditionals import families
    from besag.training.network import networks

    known, what = families.masked(), "a *ForMaskedLM"
    if model.decoder != "none":
        known, what = families.decoders(), "an encoder and a decoder (model.decoder)"
    if model.family not in known:
        raise BesagError(
            f"model.family = {quoted(model.family)} is no family of transformers or besag that has {what}."
            f"{nearest(model.family, known)} There are: {', '.join(known)}"
        )
    config = {key: value for key, value in model.config.items() if key != networks.MULTIPLE}
    networks.refuse_unknown(families.configuration(model.family), config)


def _refuse_huge(value: Any, key: str) -> None:
    """Settings of a network that no machine could hold, before anything is made of them."""
    if isinstance(value, dict):
        for name, part in value.items():
            _refuse_huge(part, f"{key}.{name}")
        return
    if isinstance(value, list):
        if len(value) > LAYERS:
            raise BesagError(f"{key} has {len(value):,} entries: at most {LAYERS:,} are needed")
        for part in value:
            _refuse_huge(part, key)
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    most = LAYERS if "layers" in key.rpartition(".")[2] else SETTING
    if not (math.isfinite(value) if isinstance(value, float) else abs(value) <= most):
        needed = "a finite number" if isinstance(value, float) else f"a whole number, at most {most:,},"
        raise BesagError(f"{key} = {quoted(value)}: {needed} is needed")
