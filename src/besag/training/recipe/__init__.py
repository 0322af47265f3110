"""A recipe: everything that decides what a run does, as one TOML file. Knows what can be said, not how it is done.

The dataclasses below are the one source of truth: their names, types and defaults are those of the file, and the
comment behind a field is its explanation in `besag train init`. Reading is strict: a key that is unknown, of another
type or out of bounds is refused. Paths in a file are relative to that file; in memory they are relative to the working
folder, so `read` and `to_toml(recipe, beside=folder)` undo each other.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from besag.errors import BesagError, quoted
from besag.training.recipe import checks as recipe_checks
from besag.training.recipe import text as recipe_text
from besag.training.recipe import values as recipe_values
from besag.training.recipe.translation import in_rows

# of a new network, where model.config does not say: six million weights, which a laptop trains
SIZES = {"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 512}


@dataclass(frozen=True)
class Data:
    train: tuple[str, ...] = ()  # files, globs, "-" (stdin)
    valid: tuple[str, ...] = ()  # held out; nothing here: `held_out` of train is kept aside
    held_out: float = 0.002  # share of the documents
    field: str = "text"  # of JSONL and Parquet rows
    source: tuple[str, ...] = ()  # parallel text: files whose lines are translated by those of `target`
    target: tuple[str, ...] = ()  # as many files, and lines, as of `source`
    valid_source: tuple[str, ...] = ()  # the same, held out
    valid_target: tuple[str, ...] = ()  # beside `valid_source`
    source_field: str | None = None  # parallel text in the rows of `train` and `valid`: the source; `field`: the target
    pairs: Literal["beside", "line", "in-place"] = "beside"  # for a decoder; or without one: `template`; corrections
    template: str = "{source} {target}"  # line: how a source or columns, which stay shown, and the target are one text
    answers: dict[str, str] = dataclasses.field(default_factory=dict)  # line: what is written for a target: {0 = "no"}
    plain: float = 0.0  # line: share of lines that are learned as plain text, 30 % of all their tokens hidden
    spans: str | None = None  # field with [[start, end], …] in characters: entities or errors, for laws that want them
    tags: str | None = None  # field with [[start, end, tag], …] in characters: parts of speech, for the law `content`
    header: str | None = None  # fields of a row, written before each of its passages: "{date} {title}:"
    hide: dict[str, Any] = dataclasses.field(default_factory=dict)  # field → chance that it is hidden whole, else shown
    group: str | None = None  # field: documents with the same value in it belong together
    links: str | None = None  # field with names of other documents, a list or with spaces between; `name` has theirs
    name: str = "id"  # field: what links call a document
    context: Literal["alone", "together", "pairs"] = "alone"  # what stands in a passage beside a piece of a document
    partners: tuple[str, ...] = ("contiguous", "random", "linked")  # pairs: what the second piece may be, equally often
    dataset: str | None = None  # a name for `datasets.load_dataset`, with `split`
    split: str = "train"  # of that dataset
    densest: float | None = None  # leave out training documents with more tokens than this share of their characters
    swap: str | None = None  # exchange words for their counterparts: "gender", or a table (one, other, before)
    swap_rate: float = 0.5  # swap: share of the training documents that are changed, each as a whole
    cache: str | None = None  # folder of tokenised data; if not given, OUTPUT/cache
    unit: Literal["segments", "sentences", "documents", "windows"] = "segments"  # one sequence
    max_length: int = 128  # tokens of one sequence, special tokens counted
    batch_tokens: int = 8192  # of one batch on one device; a large GPU wants more
    lengths: Literal["auto", "bucketed", "unpadded"] = "auto"  # auto: unpadded on CUDA, where the network can
    stream: bool = False  # read on while training, and never build a cache


@dataclass(frozen=True)
class Tokenizer:
    path: str | None = None  # a folder or hub name; if not given, that of model.start; else one is trained as below:
    kind: Literal["unigram", "bpe", "wordpiece"] = "unigram"  # of pieces
    size: int = 8192  # of the vocabulary
    cased: bool = True  # tell upper from lower case
    digits: bool = True  # each digit a token of its own
    byte_fallback: bool = True  # what is in no piece is written in bytes, so that nothing is unknown


@dataclass(frozen=True)
class Model:
    start: str | None = None  # a folder or hub name to go on from; if not given, a new network:
    family: str = "modernbert"  # any model_type of transformers that has a *ForMaskedLM, or "besag"; bart, marian, t5 …
    decoder: Literal["none", "masked", "causal"] = "none"  # beside a source: sees both sides, or the left one alone
    vocabulary: Literal["as-is", "extended", "exchanged"] = (
        "as-is"  # of `start`: that of tokenizer.path takes its place
    )
    config: dict[str, Any] = field(default_factory=dict)  # of that family; sizes not set are those of a small network
    subtokens: int = 0  # add vectors of the runs of so many characters at most in each token to its own (AMLM); 0: none


@dataclass(frozen=True)
class Masking:
    law: str = "uniform"  # which tokens are hidden: a name of besag.masks
    options: dict[str, Any] = field(default_factory=dict)  # of the law
    rate: float = 0.3  # share of tokens hidden; beta and uniform draw their own, and make no use of it
    rate_law: Literal["constant", "linear", "cosine", "beta", "uniform"] = (
        "constant"  # over the run, or of each sequence
    )
    end_rate: float | None = None  # linear, cosine: where the rate ends
    hold: float = 0.0  # linear, cosine: share of the run before the rate begins to move
    mask: float = 1.0  # of hidden tokens: share shown as the mask token …
    random: float = 0.0  # … as a random token …
    keep: float = 0.0  # … as they are
    per: Literal["token", "word", "run"] = "token"  # what is shown in one way: a token, a word, hidden neighbours
    predict: float = 1.0  # of hidden tokens: share that is predicted
    copies: int = 1  # of each passage in a batch, each with its own disjoint share hidden: prediction beyond corruption


@dataclass(frozen=True)
class Objective:
    name: str = "mlm"  # what is learned: a name of besag.training.objectives
    options: dict[str, Any] = field(default_factory=dict)  # of the objective
    smoothing: float = 0.0  # share of each label that is spread over the vocabulary
    length: float = 0.1  # weight of the loss of a predicted length, beside a masked decoder; 0: none is predicted
    relation: float = 1.0  # weight of the loss of how two pieces belong together (data.context = "pairs"); 0: not asked


@dataclass(frozen=True)
class Optimizer:
    name: Literal["adamw", "muon", "lamb"] = "adamw"  # who turns gradients into steps
    lr: float = 5e-4  # of everything, or with muon of what is no hidden matrix (embeddings, norms, biases)
    matrix_lr: float = 0.01  # muon: of hidden matrices
    weight_decay: float = 0.01  # of matrices; norms and biases have none
    betas: tuple[float, float] = (0.9, 0.98)  # memory of the first and the second moment
    eps: float = 1e-8  # added to the root of the second moment
    momentum: float = 0.95  # muon
    clip: float = 1.0  # largest norm of the gradient; 0: none


@dataclass(frozen=True)
class Schedule:
    steps: int | None = None  # how long: one of these three
    tokens: int | None = None  # read in training, special tokens counted
    minutes: float | None = None  # of the clock: whatever can be done in that time
    warmup: float = 0.03  # share of the run in which the learning rate rises
    shape: Literal["linear", "cosine", "trapezoid", "constant"] = "linear"  # how it falls afterwards
    decay: float = 0.4  # trapezoid: share of the run in which the rate falls
    floor: float = 0.0  # share of the learning rate that is left at the end
    ramp: float = 0.0  # share of the run over which a step grows from one batch to run.accumulate of them (Cramming)


@dataclass(frozen=True)
class Run:
    output: str = "run"  # folder of the checkpoints, logs and the finished model
    seed: int = 0  # of everything that is random
    device: str = "auto"  # cpu, cuda, mps; auto: the fastest there is
    precision: Literal["auto", "float32", "bfloat16", "bfloat16-pure"] = "auto"  # pure: weights too, float32 masters
    compile: bool = False  # with torch.compile
    accumulate: int = 1  # batches of each process in one step
    ema: float = 0.0  # decay of the averaged weights, which are then evaluated and saved; 0: none
    average: int = 1  # the finished model is the mean of this many last checkpoints, which `keep` must hold
    start_share: float = 0.0  # of the weights of model.start in the finished ones (WiSE-FT)
    checkpoint_every: int = 1000  # steps
    checkpoint_state: Literal["float32", "16-bit"] = "float32"  # moments and averages; weights are always exact
    checkpoint_shard: float = 500.0  # MB of one file of a checkpoint, at most
    keep: int = 2  # checkpoints that stay on disk
    models_every: int = 0  # steps after which the model is also written as it is then, and kept; 0: never
    log_every: int = 10  # steps
    plot: bool = True  # draw OUTPUT/curves.png anew while the run goes
    workers: int = 0  # processes that prepare batches
    threads: int | None = None  # of the CPU; if not given, as many as torch takes
    weights: Literal["as-trained", "int8"] = (
        "as-trained"  # of the finished model; int8: refused where it costs too much
    )
    check_memory: bool = True  # refuse a run that would need more memory than there is; false: only warn


@dataclass(frozen=True)
class Adapt:
    method: Literal["none", "bitfit", "lora", "bottleneck"] = (
        "none"  # train everything; bias terms; low-rank additions; a narrow network a layer
    )
    rank: int = 8  # lora; bottleneck: its width
    alpha: float = 16.0  # lora: the addition is scaled by alpha / rank
    targets: tuple[str, ...] = ()  # lora: names of modules; none: every linear layer of the body
    keep: Literal["auto", "merged", "apart"] = (
        "auto"  # apart: OUTPUT/adapter alone is written; auto: so for bottlenecks, which are in no weights
    )
    task: str | None = None  # mixed task + MLM loss (UDALM): a TSV or JSONL file with `text` and `label`
    task_weight: float | None = None  # of the task beside the objective; if not given, n / (n + m), as UDALM says


@dataclass(frozen=True)
class Evaluation:
    every: int = 0  # steps; 0: at the end only
    rate: float = 0.15  # held-out masked loss
    sentences: int = 200  # for pseudo-perplexity and compatibility
    minimal_pairs: tuple[str, ...] = ()  # files: BLiMP's JSONL, or TSV
    pairs_each: int = 100  # of each file
    general: tuple[str, ...] = ()  # files of other text than is trained on: what is forgotten, from their beginnings


@dataclass(frozen=True)
class Card:
    name: str | None = None  # of the model; if not given, that of the output folder
    license: str | None = (
        None  # of the weights: apache-2.0, cc-by-4.0 …; if not given, the card says that none is stated
    )
    language: tuple[str, ...] = ()  # codes: en, de …
    about: str | None = None  # a sentence or two at the top
    data: tuple[str, ...] = ()  # where the texts come from and under which licences, a line each
    limits: tuple[str, ...] = ()  # what the model should not be trusted with, a line each


@dataclass(frozen=True)
class Recipe:
    data: Data = field(default_factory=Data)
    tokenizer: Tokenizer = field(default_factory=Tokenizer)
    model: Model = field(default_factory=Model)
    masking: Masking = field(default_factory=Masking)
    objective: Objective = field(default_factory=Objective)
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    run: Run = field(default_factory=Run)
    adapt: Adapt = field(default_factory=Adapt)
    evaluation: Evaluation = field(default_factory=Evaluation)
    card: Card = field(default_factory=Card)


def is_parallel(data: Data) -> bool:
    """Is the text pairs of a source and its target?"""
    return bool(data.source or data.target or in_rows(data))


def in_context(data: Data) -> bool:
    """Is a passage more than a piece of one document: with a header, or with others beside it?"""
    return data.header is not None or data.context != "alone"


def is_apart(adapt: Adapt) -> bool:
    """Is what was trained written as an adapter, and not as a whole model?"""
    return adapt.keep == "apart" or adapt.method == "bottleneck"


# ---- reading and writing

# what names files; hub names stay as they are, and so does "-"
PATHS = (
    "data.train", "data.valid", "data.source", "data.target", "data.valid_source", "data.valid_target", "data.cache",
    "run.output", "adapt.task", "evaluation.minimal_pairs", "evaluation.general",
)  # fmt: skip
PATHS_OR_NAMES = ("data.swap", "tokenizer.path", "model.start", "masking.options", "objective.options")

# what may change when a run is resumed: none of it changes what was learned so far
MAY_CHANGE = frozenset({
    "data.cache", "run.output", "run.device", "run.compile", "run.checkpoint_every", "run.checkpoint_state",
    "run.checkpoint_shard", "run.keep", "run.models_every", "run.log_every", "run.plot", "run.workers", "run.threads",
    "run.weights", "run.check_memory", "schedule.steps", "schedule.tokens", "schedule.minutes",
})  # fmt: skip
MAY_CHANGE_IN = ("evaluation.", "card.")  # everything


Changes: TypeAlias = Sequence[str] | Mapping[str, Any]  # "masking.rate=0.4", or {"masking.rate": 0.4}


class Difference(NamedTuple):
    key: str  # "masking.rate"
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.key} is {_said(self.now)}, and was {_said(self.before)}"


def read(path: str | Path, overrides: Changes = (), *, output: str | Path | None = None) -> Recipe:
    """The recipe in a TOML file, with `overrides` on top; everything is checked.

    An override is "section.key=value", where the value is TOML, a bare word is a text, and nothing at all is the key's
    default; or they are a table {"section.key": value}. Their paths, and `output` (run.output, taken as it is), are
    relative to the working folder.
    """
    table = recipe_values.of_file(path, PATHS, PATHS_OR_NAMES, Run.output)
    _put(table, overrides, output)
    return of_table(table, str(path))


def recipe_of(
    source: Recipe | str | Path | Mapping[str, Any], changes: Changes = (), *, output: str | Path | None = None
) -> Recipe:
    """A recipe from whatever says one: itself, a file, the folder of a run, or a table of tables as a file has them."""
    if isinstance(source, str | Path):
        file = os.path.join(source, "recipe.toml") if os.path.isdir(source) else source
        return read(file, changes, output=output)
    if not isinstance(source, Recipe | Mapping):
        raise BesagError(
            f"{quoted(source)} is no recipe: give a file, the folder of a run, a table of tables or a Recipe"
        )
    table = recipe_values.copied(source if isinstance(source, Mapping) else _sections(source), "the recipe")
    _put(table, changes, output)
    return of_table(table, "the recipe")


def _sections(recipe: Recipe) -> dict[str, Any]:
    """A recipe as a table of tables, though anything may stand in it: what is wrong is told later."""
    parts = {one.name: getattr(recipe, one.name) for one in fields(recipe)}
    return {
        name: {one.name: getattr(part, one.name) for one in fields(part)} if is_dataclass(part) else part
        for name, part in parts.items()
    }


def _put(table: dict[str, Any], changes: Changes, output: str | Path | None) -> None:
    given = recipe_values.overrides(changes)
    given += [(("run", "output"), str(output))] if output is not None else []
    recipe_values.put(table, given, one_of=tuple(f"schedule.{name}" for name in recipe_checks.TOTALS))


def of_table(table: dict[str, Any], source: str) -> Recipe:
    """The recipe in a table of tables, as a TOML file has them; `source` is what errors call it."""
    plain = recipe_values.copied(table, source)
    recipe: Recipe = recipe_values.fill(Recipe, plain, source, recipe_checks.BOUNDS)
    recipe_checks.check(recipe, source)
    return recipe


def to_toml(recipe: Recipe, *, beside: str | Path | None = None) -> str:
    """Every key of a recipe as TOML; with `beside`, for a file in that folder, its paths relative to it."""
    table = recipe_values.as_table(recipe)
    if beside is not None:
        recipe_values.walk_paths(table, PATHS, PATHS_OR_NAMES, lambda name: os.path.relpath(name, beside))
    return recipe_text.write(Recipe, table, comments=False)


def template(law: str = "uniform") -> str:
    """A commented recipe with every key, its default and its explanation."""
    from besag.masks.law import LAWS

    table = recipe_values.as_table(Recipe())
    table["data"]["train"] = ["corpus/*.txt"]
    table["schedule"]["minutes"] = 20.0
    table["model"]["config"] = dict(SIZES)
    table["masking"] |= {"law": LAWS.find(law).name, "options": recipe_checks.law_defaults(law)}
    return recipe_text.write(Recipe, table, comments=True)


def _last_part(path: str) -> str:
    return os.path.basename(os.path.normpath(path))


def differences(before: Recipe, now: Recipe, by: Callable[[str], str] = os.path.realpath) -> list[Difference]:
    """Which keys say something else; paths are compared by where they lead, or by what `by` makes of them."""
    tables = [recipe_values.as_table(recipe) for recipe in (before, now)]
    for table in tables:
        recipe_values.walk_paths(table, PATHS, PATHS_OR_NAMES, by)
    one, other = (recipe_values.flat(table) for table in tables)
    return [
        Difference(key, one.get(key), other.get(key))
        for key in dict.fromkeys([*one, *other])
        if one.get(key) != other.get(key)
    ]


def refuse_changes(before: Recipe, now: Recipe, *, also: Sequence[str] = ()) -> list[Difference]:
    """What has changed and may, when a run that began as `before` is to go on as `now`; what may not is refused.

    `also` names further keys that may change here (run.accumulate, when the number of processes makes up for it). Files
    may lie in another folder, as they do on another machine: what is in them is told by the checksum of the text. A
    stream has none.
    """
    changed = differences(before, now)
    if not now.data.stream:
        elsewhere = {one.key for one in differences(before, now, by=_last_part)}
        changed = [one for one in changed if one.key in elsewhere or one.key in MAY_CHANGE]
    kind = [recipe_checks.total(recipe)[0] for recipe in (before, now)]
    free = {*MAY_CHANGE, *also}
    wrong = [one for one in changed if one.key not in free and not one.key.startswith(MAY_CHANGE_IN)]
    if kind[0] != kind[1]:
        wrong += [one for one in changed if one.key.startswith("schedule.") and one not in wrong]
    if wrong:
        raise BesagError(
            f"a run goes on only as it began: {'; '.join(map(str, wrong))}. Take the old values, or begin a new run in "
            "another folder (run.output)"
        )
    return changed


def _said(value: object) -> str:
    return "not set" if value is None else quoted(value)
