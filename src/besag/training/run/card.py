"""The model card: README.md beside a finished model, written from its recipe and from what the run measured.

Nothing is made up: a number that the run does not give is not written, and a licence that the recipe does not state is
said to be missing. A run calls `write(folder, recipe, facts, curves=…)` when the model is saved.
"""

from __future__ import annotations

import json
import math
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from besag import models
from besag.files.whole import write_whole
from besag.results.words import counted
from besag.training.recipe import Recipe, is_apart, is_parallel, to_toml
from besag.training.recipe import checks as recipe_checks
from besag.training.run import gain
from besag.training.run.logs import duration

NAME, RECIPE = "README.md", "recipe.toml"
LAW_WORDS = {"constant": "constant", "linear": "moving linearly", "cosine": "moving along a cosine"}
METRICS = {  # what the numbers of a log are called in a card; others go by their own name
    "loss": "training loss at the end (nats a predicted token)",
    "tokens_per_second": "tokens a second",
    "heldout_loss": "held-out masked loss (nats a token)",
    "pseudo_perplexity": "pseudo-perplexity of held-out sentences",
    "pseudo_bits_per_character": "the same in bits a character",
    "rectangle_deviation": "mismatch of neighbours' conditionals, mean ∣D∣ of 2 × 2 minors (0: compatible)",
    "rectangle_dependence": "log odds ratio of the same minors, against which that is to be read",
    "mutual_information": "mutual information of neighbours (nats)",
    "minimal_pairs": "minimal pairs won, mean over paradigms",
    "answers_right": "held-out targets that are the likeliest tokens, all of them at once",
    "errors_mended": "held-out errors at which the right token is the likeliest",
    "right_kept": "right tokens of the same texts at which the written one is the likeliest",
    "general_loss": "masked loss of general text (nats a token): a rise is forgetting",
    "general_bits_per_character": "pseudo-log-likelihood of general text in bits a character: a rise is forgetting",
}
PIPELINES = {"score": "fill-mask", "blocks": "text-generation", "encode": "feature-extraction"}  # by purpose
NOT_FIGURES = ("step", "tokens", "seconds", "lr", "grad_norm", "rate")


class Source(NamedTuple):
    """Where text came from; what is not known is None."""

    name: str  # of the file, without its folder, or of the dataset
    documents: int | None = None
    tokens: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Facts:
    """What a run knows of itself when it is over; what it does not know stays None, and is not written."""

    architecture: str | None = None  # "ModernBertForMaskedLM"
    parameters: int | None = None
    trained: int | None = None  # parameters that were trained, where not all were
    vocabulary: int | None = None  # tokens
    tokenizer_sha256: str | None = None
    sources: Sequence[Source] = ()
    held_out: Sequence[Source] = ()
    train_tokens: int | None = None  # in the corpus, without special tokens
    train_sha256: str | None = None  # of the tokenised corpus
    held_out_sha256: str | None = None  # of the tokenised text that was held out
    steps: int | None = None
    tokens: int | None = None  # read in training, special tokens counted
    epochs: float | None = None
    seconds: float | None = None
    sittings: Sequence[str] = ()  # each in words; told where there were several
    purpose: str = "score"  # or "blocks", "encode": what the objective says of the network that it leaves
    shift: bool = False  # whether the output at position i − 1 predicts position i
    masks: bool = True  # did the objective learn from the law's masks? If not, it hid tokens in its own way
    tilted: bool = False  # does the law of masks look at the tokens that it hides?
    tilt_file: str | None = None  # name of the file that holds log π
    tilt_rate: float | None = None  # share of hidden tokens at which π was taken
    hardware: str | None = None  # see `hardware_words`
    command: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)  # the last of each number in the log
    before: Mapping[str, float] = field(default_factory=dict)  # of the model that the run began from


def write(folder: str | Path, recipe: Recipe, facts: Facts, *, curves: str | Path | None = None) -> Path:
    """README.md and recipe.toml in a folder, with the picture of the curves if there is one; README's path."""
    folder = Path(folder)
    picture = None
    if curves is not None and Path(curves).exists():
        picture = Path(curves).name
        if Path(curves).resolve() != (folder / picture).resolve():
            shutil.copyfile(curves, folder / picture)
    write_whole(folder / RECIPE, to_toml(recipe, beside=folder))
    path = folder / NAME
    write_whole(path, text(recipe, facts, picture))
    return path


def text(recipe: Recipe, facts: Facts, picture: str | None = None) -> str:
    """The card itself, as Markdown with a head of YAML."""
    name = recipe.card.name or Path(recipe.run.output).resolve().name
    parts = [_head(recipe, facts), f"# {name}"]
    parts += [recipe.card.about] if recipe.card.about else []
    parts.append(_what(recipe, facts))
    for title, lines in (
        ("Data", [*_data(recipe, facts)]),
        ("Model", [*_model(recipe, facts)]),
        ("Masking and objective", [*_masking(recipe, facts)]),
        ("Training", [*_training(recipe, facts)]),
    ):
        parts.append(f"## {title}\n\n" + "\n".join(f"- {line}" for line in lines))
    parts += [_figures(facts), _gain(facts)]
    parts += [f"![The curves of the run]({picture})"] if picture else []
    parts.append(_limits(recipe))
    return "\n\n".join(filter(None, parts)) + "\n"


def _what(recipe: Recipe, facts: Facts) -> str:
    """What it is and what it can be used for."""
    readers = (
        "Whatever reads the folders of transformers can use it"
        if recipe.run.weights == "as-trained"
        else "besag reads it, and `besag export FOLDER OUT --weights float32` writes it for whatever else does"
    )
    if is_apart(recipe.adapt):
        base = shown(recipe.model.start or "")
        return (
            f"An adapter of `{base}`, trained with besag (`pip install besag`): its weights alone, which stand beside "
            f"those of `{base}` and of no other model. `besag score TEXTS --model BASE --adapter FOLDER` scores with "
            "both."
        )
    if facts.purpose == "score" and facts.shift:
        return (
            "A masked language model, trained with besag (`pip install besag`). The output at position i − 1 predicts "
            "position i (`besag_shift` in config.json), and besag reads it so. Other readers of transformers' folders "
            "must shift its logits by one position.\n\n"
            '`besag score "It rained." --model FOLDER` scores a sentence with it.'
        )
    if facts.purpose == "score":
        return (
            f"A masked language model, trained with besag (`pip install besag`). {readers}; "
            '`besag score "It rained." --model FOLDER` scores a sentence with it.'
        )
    if facts.purpose == "blocks":
        return (
            "A language model that writes block after block, trained with besag (`pip install besag`). besag asks it "
            "as it was trained: a place sees its own block and those before it. Whatever else reads the folders of "
            "transformers would show it the whole text, which it has never seen.\n\n"
            "`besag sample --length 30 --kernel block_diffusion --model FOLDER` writes with it."
        )
    return (
        "An encoder, trained with besag (`pip install besag`): its hidden states are to be used, or "
        "fine-tuned, with whatever reads the folders of transformers.\n\n"
        f"**It cannot be scored.** The objective `{recipe.objective.name}` did not teach it to answer about masked "
        "places. Whatever hides tokens and reads the answers (fill-mask, pseudo-log-likelihoods, minimal pairs, joints "
        "and samples made of conditionals) gives numbers here that mean nothing."
    )


def _head(recipe: Recipe, facts: Facts) -> str:
    """YAML, written as JSON's subset of it: every value is quoted, so none can be misread ("no" is a language)."""
    lines = ["---"]
    if recipe.card.license:
        lines.append(f"license: {json.dumps(recipe.card.license)}")
    if recipe.card.language:
        lines += ["language:", *(f"- {json.dumps(code)}" for code in recipe.card.language)]
    library = "besag" if is_apart(recipe.adapt) or facts.purpose == "blocks" or facts.shift else "transformers"
    lines += [f"library_name: {library}", f"pipeline_tag: {PIPELINES[facts.purpose]}"]
    lines += ["tags:", *(["- masked-lm"] if facts.purpose == "score" else []), "- besag"]
    start = recipe.model.start
    if start and start != models.EMBEDDED and not Path(start).exists():
        lines.append(f"base_model: {json.dumps(start)}")
    return "\n".join([*lines, "---"])


def _data(recipe: Recipe, facts: Facts) -> Iterator[str]:
    yield from recipe.card.data
    for what, sources in (("training", facts.sources), ("held out", facts.held_out)):
        for source in sources:
            known = [
                f"{source.documents:,} documents" if source.documents is not None else "",
                f"{source.tokens:,} tokens" if source.tokens is not None else "",
                f"sha256 `{source.sha256}`" if source.sha256 is not None else "",
            ]
            yield f"{what}: " + ", ".join(filter(None, (f"`{source.name}`", *known)))
    if facts.train_tokens is not None:
        sha256 = f", sha256 as tokenised `{facts.train_sha256}`" if facts.train_sha256 else ""
        yield f"{facts.train_tokens:,} tokens in all to train on{sha256}"
    if facts.held_out_sha256:
        yield f"held out, sha256 as tokenised `{facts.held_out_sha256}`"
    if not recipe.data.valid and recipe.data.held_out:
        yield f"a share of {recipe.data.held_out:g} of the documents was held out"
    if is_parallel(recipe.data) and recipe.data.pairs != "beside":
        how = f"on one line, `{recipe.data.template}`, of which the target alone is hidden"
        yield "pairs " + (how if recipe.data.pairs == "line" else "of a text as it is written and as it should be")
        yield f"pairs of more than {recipe.data.max_length} tokens were left out"
        return
    unit = {"segments": "runs of sentences", "windows": "windows within a document"}
    yield f"sequences are {unit.get(recipe.data.unit, recipe.data.unit)} of at most {recipe.data.max_length} tokens"


def _model(recipe: Recipe, facts: Facts) -> Iterator[str]:
    if facts.architecture:
        parameters = f", {facts.parameters:,} parameters" if facts.parameters is not None else ""
        yield f"`{facts.architecture}`{parameters}"
    if recipe.model.start:
        yield f"begun from `{shown(recipe.model.start)}`"
    elif recipe.model.config:
        yield "shape: " + ", ".join(f"{name} {value}" for name, value in recipe.model.config.items())
    adapt = recipe.adapt
    if adapt.method == "lora":
        end = "kept apart from the weights" if is_apart(adapt) else "added into the weights at the end"
        yield f"adapted by LoRA of rank {adapt.rank}, alpha {adapt.alpha:g}, {end}"
    elif adapt.method == "bottleneck":
        yield f"adapted by a bottleneck of {adapt.rank} numbers after each layer, kept apart from the weights"
    elif adapt.method == "bitfit":
        yield "adapted by BitFit: only bias terms were trained"
    if facts.trained is not None and facts.trained != facts.parameters:
        yield f"{facts.trained:,} parameters were trained"
    size = f" of {facts.vocabulary:,} tokens" if facts.vocabulary is not None else ""
    tokenizer = recipe.tokenizer
    if tokenizer.path or recipe.model.start:
        said = f"tokenizer{size}: that of `{shown(tokenizer.path or recipe.model.start or '')}`"
    else:
        case = "cased" if tokenizer.cased else "uncased"
        said = f"tokenizer{size}: {tokenizer.kind}, {case}, trained on the training data"
    if recipe.model.vocabulary != "as-is":
        said += f"; the old vocabulary was {recipe.model.vocabulary}, new rows begun as means of their old pieces'"
    yield said + (f", sha256 `{facts.tokenizer_sha256}`" if facts.tokenizer_sha256 else "")


def _masking(recipe: Recipe, facts: Facts) -> Iterator[str]:
    if facts.masks:
        yield from _law(recipe, facts)
    else:
        yield "the objective hides tokens in its own way: the law of masks and the rate in the recipe were not used"
    own = f" ({_options(recipe.objective.options)})" if recipe.objective.options else ""
    yield f"objective: `{recipe.objective.name}`{own}"
    if recipe.adapt.task:
        weight = recipe.adapt.task_weight
        counts = "by its share of the texts" if weight is None else f"weight {weight:g}"
        yield f"mixed with a classification task, {counts}; its head is in `task_head.safetensors`"


def _law(recipe: Recipe, facts: Facts) -> Iterator[str]:
    masking = recipe.masking
    options = f" ({_options(masking.options)})" if masking.options else ""
    yield f"law of masks: `{masking.law}`{options}"
    rate = f"rate of hidden tokens: {masking.rate:g}"
    if masking.rate_law == "beta":
        rate = "rate of hidden tokens: drawn for each sequence from a Beta distribution"
    elif masking.rate_law == "uniform":
        rate = "rate of hidden tokens: drawn for each sequence, uniform in (0, 1)"
    elif masking.end_rate is not None:
        rate += f" to {masking.end_rate:g}, {LAW_WORDS[masking.rate_law]}"
    yield rate
    shares = {"the mask": masking.mask, "a random token": masking.random, "themselves": masking.keep}
    shown = ", ".join(f"{what} ({share:.0%})" for what, share in shares.items() if share)
    alike = {"token": "", "word": ", all of a word alike", "run": ", hidden neighbours alike"}[masking.per]
    yield f"hidden tokens are shown as {shown}{alike}"
    if masking.predict < 1:
        yield f"{masking.predict:.0%} of the hidden tokens were predicted"
    if masking.copies > 1:
        yield f"{masking.copies} copies of each passage, with disjoint masks"
    yield _tilt(recipe, facts)


def _tilt(recipe: Recipe, facts: Facts) -> str:
    if not facts.tilted:
        return "the law does not weigh tokens by what they are, so the conditionals are not tilted"
    rate = f" at a rate of {facts.tilt_rate:.3g}" if facts.tilt_rate is not None else ""
    where = f" (log π is in `{facts.tilt_file}`)" if facts.tilt_file else ""
    return (
        f"the conditionals are tilted: the law `{recipe.masking.law}` looks at the tokens that it hides, so what was "
        "learned is p(v | context) · π(v) / Z in place of p(v | context), with π(v) the chance that v is hidden where "
        f"it stands{rate}{where}. `besag.load(folder, untilt=True)`, or `--untilt` on the command line, takes it out"
    )


def _training(recipe: Recipe, facts: Facts) -> Iterator[str]:
    kind, total = recipe_checks.total(recipe)
    yield f"planned: {total:,g} {kind}" if kind == "minutes" else f"planned: {int(total):,} {kind}"
    done = [
        f"{facts.steps:,} steps" if facts.steps is not None else "",
        f"{facts.tokens:,} tokens read" if facts.tokens is not None else "",
        f"{facts.epochs:.1f} passes over the data" if facts.epochs is not None else "",
        f"{duration(facts.seconds)} of training" if facts.seconds is not None else "",
    ]
    if any(done):
        yield "done: " + ", ".join(filter(None, done))
    several = len(facts.sittings) > 1
    for number, sitting in enumerate(facts.sittings if several else (), 1):
        yield f"sitting {number} of {len(facts.sittings)}: {sitting}"
    optimizer, schedule = recipe.optimizer, recipe.schedule
    matrix = f", of hidden matrices {optimizer.matrix_lr:g}" if optimizer.name == "muon" else ""
    decay = f", weight decay {optimizer.weight_decay:g}"
    yield f"optimiser: {optimizer.name}, learning rate {optimizer.lr:g}{matrix}{decay}"
    yield f"schedule: {schedule.warmup:.0%} warm-up, then {schedule.shape}, down to {schedule.floor:g} of the rate"
    if recipe.run.ema:
        yield f"the weights are a moving average, decay {recipe.run.ema:g}"
    if share := recipe.run.start_share:
        yield f"the weights are {share:g} of those that it went on from, and {1 - share:g} of the trained ones"
    yield f"seed {recipe.run.seed}"
    if facts.hardware and not several:
        yield f"hardware: {facts.hardware}"
    if facts.command:
        yield f"command: `{facts.command}`"
    yield f"everything that was set is in `{RECIPE}`: `besag train {RECIPE}` trains it again"


def _figures(facts: Facts) -> str:
    known = {name: value for name, value in facts.metrics.items() if math.isfinite(value) and name not in NOT_FIGURES}
    if not known:
        return ""
    rows = [f"| {_words(name)} | {_number(value)} |" for name, value in known.items()]
    return "\n".join(["## Figures at the end of the run", "", "| | |", "|---|---|", *rows])


def _gain(facts: Facts) -> str:
    found = gain.changes(facts.before, facts.metrics)
    if not found:
        return ""
    rows = [
        f"| {_words(one.name)} | {_number(one.before)} | {_number(one.after)} | {one.difference:+.4g} |"
        for one in found
    ]
    head = ["## What going on from the model brought", "", "| | before | after | change |", "|---|---|---|---|"]
    return "\n".join([*head, *rows])


def _words(name: str) -> str:
    return METRICS.get(name, name.replace("_", " ").replace("heldout", "held-out"))


def _limits(recipe: Recipe) -> str:
    own = list(recipe.card.limits)
    own.append(
        "What a model learned from its texts, it repeats: their errors, their slant, their language and no other."
    )
    length = recipe.data.max_length
    own.append(f"It was trained on sequences of at most {length} tokens; how it does on longer ones was not measured.")
    if not recipe.card.license:
        own.append("No licence is stated.")
    return "## Limits\n\n" + "\n".join(f"- {line}" for line in own)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _options(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {shown(value) if isinstance(value, str) else value}" for name, value in options.items())


def shown(name: str) -> str:
    """A hub name as it is; of a folder only its own name."""
    return Path(name).resolve().name if Path(name).exists() or name.startswith((".", "/")) else name


def hardware_words(device: str, processes: int = 1) -> str:
    """What a run ran on: "2 × NVIDIA H200", or "CPU (x86_64), 4 threads"."""
    import torch

    if torch.device(device).type == "cuda":
        words = torch.cuda.get_device_name(torch.device(device))
    elif torch.device(device).type == "mps":
        words = "Apple GPU"
    else:
        threads = torch.get_num_threads()
        words = f"CPU ({platform.machine()}), {counted(threads, 'thread')}"
    return f"{processes} × {words}" if processes > 1 else words
