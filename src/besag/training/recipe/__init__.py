"""A recipe: everything that decides what a run does, as one TOML file. Knows what can be said, not how it is done.

The dataclasses below are the one source of truth: their names, types and defaults are those of the file, and the
annotation of a field is its explanation in `besag train init`. Reading is strict: a key that is unknown, of another
type or out of bounds is refused. Paths in a file are relative to that file; in memory they are relative to the working
folder, so `read` and `to_toml(recipe, beside=folder)` undo each other.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from besag.errors import BesagError, quoted
from besag.training.recipe import checks as recipe_checks
from besag.training.recipe import text as recipe_text
from besag.training.recipe import values as recipe_values
from besag.training.recipe.translation import in_rows

# of a new network, where model.config does not say: six million weights, which a laptop trains
SIZES = {"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 512}


@dataclass(frozen=True)
class Data:
    train: Annotated[tuple[str, ...], 'files, globs, "-" (stdin)'] = ()
    valid: Annotated[tuple[str, ...], "held out; nothing here: `held_out` of train is kept aside"] = ()
    held_out: Annotated[float, "share of the documents"] = 0.002
    field: Annotated[str, "of JSONL and Parquet rows"] = "text"
    source: Annotated[tuple[str, ...], "parallel text: files whose lines are translated by those of `target`"] = ()
    target: Annotated[tuple[str, ...], "as many files, and lines, as of `source`"] = ()
    valid_source: Annotated[tuple[str, ...], "the same, held out"] = ()
    valid_target: Annotated[tuple[str, ...], "beside `valid_source`"] = ()
    source_field: Annotated[
        str | None, "parallel text in the rows of `train` and `valid`: the source; `field`: the target"
    ] = None
    pairs: Annotated[
        Literal["beside", "line", "in-place"], "for a decoder; or without one: `template`; corrections"
    ] = "beside"
    template: Annotated[str, "line: how a source or columns, which stay shown, and the target are one text"] = (
        "{source} {target}"
    )
    answers: Annotated[dict[str, str], 'line: what is written for a target: {0 = "no"}'] = dataclasses.field(
        default_factory=dict
    )
    plain: Annotated[float, "line: share of lines that are learned as plain text, 30 % of all their tokens hidden"] = (
        0.0
    )
    spans: Annotated[
        str | None, "field with [[start, end], …] in characters: entities or errors, for laws that want them"
    ] = None
    tags: Annotated[
        str | None, "field with [[start, end, tag], …] in characters: parts of speech, for the law `content`"
    ] = None
    header: Annotated[str | None, 'fields of a row, written before each of its passages: "{date} {title}:"'] = None
    hide: Annotated[dict[str, Any], "field → chance that it is hidden whole, else shown"] = dataclasses.field(
        default_factory=dict
    )
    group: Annotated[str | None, "field: documents with the same value in it belong together"] = None
    links: Annotated[
        str | None, "field with names of other documents, a list or with spaces between; `name` has theirs"
    ] = None
    name: Annotated[str, "field: what links call a document"] = "id"
    context: Annotated[
        Literal["alone", "together", "pairs"], "what stands in a passage beside a piece of a document"
    ] = "alone"
    partners: Annotated[tuple[str, ...], "pairs: what the second piece may be, equally often"] = (
        "contiguous",
        "random",
        "linked",
    )
    dataset: Annotated[str | None, "a name for `datasets.load_dataset`, with `split`"] = None
    split: Annotated[str, "of that dataset"] = "train"
    densest: Annotated[
        float | None, "leave out training documents with more tokens than this share of their characters"
    ] = None
    swap: Annotated[str | None, 'exchange words for their counterparts: "gender", or a table (one, other, before)'] = (
        None
    )
    swap_rate: Annotated[float, "swap: share of the training documents that are changed, each as a whole"] = 0.5
    cache: Annotated[str | None, "folder of tokenised data; if not given, OUTPUT/cache"] = None
    unit: Annotated[Literal["segments", "sentences", "documents", "windows"], "one sequence"] = "segments"
    max_length: Annotated[int, "tokens of one sequence, special tokens counted"] = 128
    batch_tokens: Annotated[int, "of one batch on one device; a large GPU wants more"] = 8192
    lengths: Annotated[Literal["auto", "bucketed", "unpadded"], "auto: unpadded on CUDA, where the network can"] = (
        "auto"
    )
    stream: Annotated[bool, "read on while training, and never build a cache"] = False


@dataclass(frozen=True)
class Tokenizer:
    path: Annotated[
        str | None, "a folder or hub name; if not given, that of model.start; else one is trained as below:"
    ] = None
    kind: Annotated[Literal["unigram", "bpe", "wordpiece"], "of pieces"] = "unigram"
    size: Annotated[int, "of the vocabulary"] = 8192
    cased: Annotated[bool, "tell upper from lower case"] = True
    digits: Annotated[bool, "each digit a token of its own"] = True
    byte_fallback: Annotated[bool, "what is in no piece is written in bytes, so that nothing is unknown"] = True


@dataclass(frozen=True)
class Model:
    start: Annotated[str | None, "a folder or hub name to go on from; if not given, a new network:"] = None
    family: Annotated[str, 'any model_type of transformers that has a *ForMaskedLM, or "besag"; bart, marian, t5 …'] = (
        "modernbert"
    )
    decoder: Annotated[
        Literal["none", "masked", "causal"], "beside a source: sees both sides, or the left one alone"
    ] = "none"
    vocabulary: Annotated[
        Literal["as-is", "extended", "exchanged"], "of `start`: that of tokenizer.path takes its place"
    ] = "as-is"
    config: Annotated[dict[str, Any], "of that family; sizes not set are those of a small network"] = field(
        default_factory=dict
    )
    subtokens: Annotated[
        int, "add vectors of the runs of so many characters at most in each token to its own (AMLM); 0: none"
    ] = 0


@dataclass(frozen=True)
class Masking:
    law: Annotated[str, "which tokens are hidden: a name of besag.masks"] = "uniform"
    options: Annotated[dict[str, Any], "of the law"] = field(default_factory=dict)
    rate: Annotated[float, "share of tokens hidden; beta and uniform draw their own, and make no use of it"] = 0.3
    rate_law: Annotated[
        Literal["constant", "linear", "cosine", "beta", "uniform"], "over the run, or of each sequence"
    ] = "constant"
    end_rate: Annotated[float | None, "linear, cosine: where the rate ends"] = None
    hold: Annotated[float, "linear, cosine: share of the run before the rate begins to move"] = 0.0
    mask: Annotated[float, "of hidden tokens: share shown as the mask token …"] = 1.0
    random: Annotated[float, "… as a random token …"] = 0.0
    keep: Annotated[float, "… as they are"] = 0.0
    per: Annotated[Literal["token", "word", "run"], "what is shown in one way: a token, a word, hidden neighbours"] = (
        "token"
    )
    predict: Annotated[float, "of hidden tokens: share that is predicted"] = 1.0
    copies: Annotated[
        int, "of each passage in a batch, each with its own disjoint share hidden: prediction beyond corruption"
    ] = 1


@dataclass(frozen=True)
class Objective:
    name: Annotated[str, "what is learned: a name of besag.training.objectives"] = "mlm"
    options: Annotated[dict[str, Any], "of the objective"] = field(default_factory=dict)
    smoothing: Annotated[float, "share of each label that is spread over the vocabulary"] = 0.0
    length: Annotated[
        float, "weight of the loss of a predicted length, beside a masked decoder; 0: none is predicted"
    ] = 0.1
    relation: Annotated[
        float, 'weight of the loss of how two pieces belong together (data.context = "pairs"); 0: not asked'
    ] = 1.0


@dataclass(frozen=True)
class Optimizer:
    name: Annotated[Literal["adamw", "muon", "lamb"], "who turns gradients into steps"] = "adamw"
    lr: Annotated[float, "of everything, or with muon of what is no hidden matrix (embeddings, norms, biases)"] = 5e-4
    matrix_lr: Annotated[float, "muon: of hidden matrices"] = 0.01
    weight_decay: Annotated[float, "of matrices; norms and biases have none"] = 0.01
    betas: Annotated[tuple[float, float], "memory of the first and the second moment"] = (0.9, 0.98)
    eps: Annotated[float, "added to the root of the second moment"] = 1e-8
    momentum: Annotated[float, "muon"] = 0.95
    clip: Annotated[float, "largest norm of the gradient; 0: none"] = 1.0


@dataclass(frozen=True)
class Schedule:
    steps: Annotated[int | None, "how long: one of these three"] = None
    tokens: Annotated[int | None, "read in training, special tokens counted"] = None
    minutes: Annotated[float | None, "of the clock: whatever can be done in that time"] = None
    warmup: Annotated[float, "share of the run in which the learning rate rises"] = 0.03
    shape: Annotated[Literal["linear", "cosine", "trapezoid", "constant"], "how it falls afterwards"] = "linear"
    decay: Annotated[float, "trapezoid: share of the run in which the rate falls"] = 0.4
    floor: Annotated[float, "share of the learning rate that is left at the end"] = 0.0
    ramp: Annotated[
        float, "share of the run over which a step grows from one batch to run.accumulate of them (Cramming)"
    ] = 0.0


@dataclass(frozen=True)
class Run:
    output: Annotated[str, "folder of the checkpoints, logs and the finished model"] = "run"
    seed: Annotated[int, "of everything that is random"] = 0
    device: Annotated[str, "cpu, cuda, mps; auto: the fastest there is"] = "auto"
    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "bfloat16-pure"], "pure: weights too, float32 masters"
    ] = "auto"
    compile: Annotated[bool, "with torch.compile"] = False
    accumulate: Annotated[int, "batches of each process in one step"] = 1
    ema: Annotated[float, "decay of the averaged weights, which are then evaluated and saved; 0: none"] = 0.0
    average: Annotated[int, "the finished model is the mean of this many last checkpoints, which `keep` must hold"] = 1
    start_share: Annotated[float, "of the weights of model.start in the finished ones (WiSE-FT)"] = 0.0
    checkpoint_every: Annotated[int, "steps"] = 1000
    checkpoint_state: Annotated[Literal["float32", "16-bit"], "moments and averages; weights are always exact"] = (
        "float32"
    )
    checkpoint_shard: Annotated[float, "MB of one file of a checkpoint, at most"] = 500.0
    keep: Annotated[int, "checkpoints that stay on disk"] = 2
    models_every: Annotated[int, "steps after which the model is also written as it is then, and kept; 0: never"] = 0
    log_every: Annotated[int, "steps"] = 10
    plot: Annotated[bool, "draw OUTPUT/curves.png anew while the run goes"] = True
    workers: Annotated[int, "processes that prepare batches"] = 0
    threads: Annotated[int | None, "of the CPU; if not given, as many as torch takes"] = None
    weights: Annotated[
        Literal["as-trained", "int8"], "of the finished model; int8: refused where it costs too much"
    ] = "as-trained"
    check_memory: Annotated[bool, "refuse a run that would need more memory than there is; false: only warn"] = True


@dataclass(frozen=True)
class Adapt:
    method: Annotated[
        Literal["none", "bitfit", "lora", "bottleneck"],
        "train everything; bias terms; low-rank additions; a narrow network a layer",
    ] = "none"
    rank: Annotated[int, "lora; bottleneck: its width"] = 8
    alpha: Annotated[float, "lora: the addition is scaled by alpha / rank"] = 16.0
    targets: Annotated[tuple[str, ...], "lora: names of modules; none: every linear layer of the body"] = ()
    keep: Annotated[
        Literal["auto", "merged", "apart"],
        "apart: OUTPUT/adapter alone is written; auto: so for bottlenecks, which are in no weights",
    ] = "auto"
    task: Annotated[str | None, "mixed task + MLM loss (UDALM): a TSV or JSONL file with `text` and `label`"] = None
    task_weight: Annotated[
        float | None, "of the task beside the objective; if not given, n / (n + m), as UDALM says"
    ] = None


@dataclass(frozen=True)
class Evaluation:
    every: Annotated[int, "steps; 0: at the end only"] = 0
    rate: Annotated[float, "held-out masked loss"] = 0.15
    sentences: Annotated[int, "for pseudo-perplexity and compatibility"] = 200
    minimal_pairs: Annotated[tuple[str, ...], "files: BLiMP's JSONL, or TSV"] = ()
    pairs_each: Annotated[int, "of each file"] = 100
    general: Annotated[
        tuple[str, ...], "files of other text than is trained on: what is forgotten, from their beginnings"
    ] = ()


@dataclass(frozen=True)
class Card:
    name: Annotated[str | None, "of the model; if not given, that of the output folder"] = None
    license: Annotated[
        str | None, "of the weights: apache-2.0, cc-by-4.0 …; if not given, the card says that none is stated"
    ] = None
    language: Annotated[tuple[str, ...], "codes: en, de …"] = ()
    about: Annotated[str | None, "a sentence or two at the top"] = None
    data: Annotated[tuple[str, ...], "where the texts come from and under which licences, a line each"] = ()
    limits: Annotated[tuple[str, ...], "what the model should not be trusted with, a line each"] = ()


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
