"""`besag sample`: text from the model, by any of the kernels."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from besag.checks import MOST_CHAINS, MOST_LENGTH, MOST_STEPS
from besag.cli import options as o
from besag.cli.exits import INTERRUPTED, UNSCORED, guarded, say
from besag.cli.groups import GivenModelOptions, OutputOptions, RunOptions, grouped
from besag.cli.lengths import length_model
from besag.cli.positions import Free, Keep, positions
from besag.cli.settings import settings
from besag.errors import BesagError
from besag.files.writing import Writer
from besag.results import tables

if TYPE_CHECKING:
    from rich.live import Live

    from besag.constraints import Constraint
    from besag.language_model import LanguageModel
    from besag.samplers.chain import Chain
    from besag.scores import LengthModel

Template = Annotated[
    str | None,
    typer.Argument(metavar="[TEXT]", help="With one [MASK] or more; or any text with --free.", show_default=False),
]
KernelName = Annotated[str, o.of_method("--kernel", "-k", help="`besag methods` lists them.")]
Chains = Annotated[int, o.of_method("--chains", "-c", min=1, max=MOST_CHAINS, help="Chains, all run together.")]
Steps = Annotated[
    int | None, o.of_method("--steps", min=1, max=MOST_STEPS, help="If not given: a decoder's own, or 10 a free place.")
]
Length = Annotated[int | None, o.of_method("--length", min=1, max=MOST_LENGTH, help="Tokens to draw from nothing.")]
Lengths = Annotated[
    str | None,
    o.of_method("--lengths", help="File of texts, or what `besag lengths` saved, to draw lengths from."),
]
End = Annotated[str, o.of_method("--end", help="Closes a text from nothing, such as a full stop.")]
FreeAll = Annotated[bool, o.of_method("--free-all", help="Every word of the text may change.")]
Temperature = Annotated[float | None, o.of_method("--temperature", "-t", help="Short for --set temperature=….")]
TopK = Annotated[int | None, o.of_method("--top-k", help="Short for --set top_k=….")]
TopP = Annotated[float | None, o.of_method("--top-p", help="Short for --set top_p=….")]
Require = Annotated[list[str] | None, o.of_method("--require", help="A word that must stand in the text. Repeat.")]
Forbid = Annotated[list[str] | None, o.of_method("--forbid", help="A word that must not. Repeat.")]
Matching = Annotated[str | None, o.of_method("--pattern", help="A regular expression that the whole text matches.")]
Characters = Annotated[str | None, o.of_method("--characters", metavar="LEAST:MOST", help="Of the whole text.")]
Words = Annotated[str | None, o.of_method("--words", metavar="LEAST:MOST", help="Of the whole text.")]
Budget = Annotated[
    int, o.of_method("--budget", min=1, max=MOST_STEPS, help="With constraints: forward passes of one search.")
]
Seed = Annotated[int, o.of_method("--seed", help="Of all draws.")]
Every = Annotated[int | None, o.of_result("--every", min=1, max=MOST_STEPS, help="--record: keep every so many steps.")]
RecordFile = Annotated[
    str | None, o.of_result("--record", help="File (.jsonl, .parquet) for what the chains say on the way.")
]
Resume = Annotated[bool, o.of_run("--resume", help="Go on with the run that --record names.")]
LiveView = Annotated[bool, o.of_run("--live", help="Show the chains while they run, on stderr.")]


@dataclass(frozen=True)
class CanvasOptions:
    """What is written on: which places of which text, or how long a text from nothing."""

    length: Length = None
    lengths: Lengths = None
    end: End = ""
    free: Free = None
    free_all: FreeAll = False
    keep: Keep = None

    def check(self) -> None:
        if self.length is not None and self.lengths is not None:
            raise BesagError("--length is one length, --lengths a file to draw them from: say one of them")
        if self.free and self.free_all:
            raise BesagError("--free names places, --free-all frees all of them: say one of them")

    def of_sample(self, lm: LanguageModel) -> dict[str, Any]:
        """As arguments of `lm.sample`."""
        length: int | LengthModel | None = self.length if self.lengths is None else length_model(self.lengths, lm)
        free = "all" if self.free_all else positions(self.free)
        return {"length": length, "end": self.end, "free": free, "keep": positions(self.keep) or ()}


@dataclass(frozen=True)
class KernelOptions:
    """Which kernel, its options, and how far it runs."""

    kernel: KernelName = "gibbs"
    chains: Chains = 4
    steps: Steps = None
    temperature: Temperature = None
    top_k: TopK = None
    top_p: TopP = None
    set_: o.Set = None
    seed: Seed = 0

    def of_kernel(self) -> dict[str, Any]:
        """Its options: --temperature, --top-k and --top-p belong to all kernels, and are short for --set."""
        short = {"temperature": self.temperature, "top_k": self.top_k, "top_p": self.top_p}
        [own] = settings("kernel", [self.kernel], self.set_, short).values()
        return own


@dataclass(frozen=True)
class ConstraintOptions:
    """What the text must keep to; a search of its own finds it."""

    require: Require = None
    forbid: Forbid = None
    pattern: Matching = None
    characters: Characters = None
    words: Words = None
    budget: Budget = 1000

    def wanted(self) -> list[Constraint]:
        if not any((self.require, self.forbid, self.pattern is not None, self.characters, self.words)):
            return []

        from besag.constraints import Forbidden, Length, Pattern, Required

        found: list[Constraint] = [*map(Required, self.require or ()), *map(Forbidden, self.forbid or ())]
        if self.pattern is not None:
            found.append(Pattern(regex=self.pattern))
        for of, said in (("characters", self.characters), ("words", self.words)):
            if said is not None:
                least, colon, most = said.partition(":")
                if not colon or not (least or "0").isdecimal() or not (most or "0").isdecimal():
                    raise BesagError(f"--{of} {said!r}: write LEAST:MOST, such as 20:40, 20: or :40")
                found.append(Length(int(least or 0), int(most) if most else None, of=of))  # type: ignore[arg-type]
        return found


@dataclass(frozen=True)
class RecordOptions:
    """What is kept and seen of a run while it goes."""

    every: Every = None
    record: RecordFile = None
    resume: Resume = False
    live: LiveView = False

    def check(self, output: str | None) -> None:
        if self.record is None and (self.every is not None or self.resume):
            recorded = "--every says which steps are recorded"
            told = recorded if self.every is not None else "--resume goes on with a recorded run"
            raise BesagError(f"{told}: name a file with --record")
        if self.record is not None and output is not None and Path(self.record).resolve() == Path(output).resolve():
            raise BesagError(f"--output and --record are both {self.record!r}: give each a file of its own")


@guarded
@grouped
def sample(
    canvas: CanvasOptions,
    method: KernelOptions,
    kept: ConstraintOptions,
    model: GivenModelOptions,
    recorded: RecordOptions,
    output: OutputOptions,
    run: RunOptions,
    text: Template = None,
) -> int:
    """Sample masked positions or whole texts.

    Without TEXT, --length tokens are sampled. With --require, --forbid, --pattern, --characters or --words, texts that
    satisfy these constraints are searched for. Exit code 3: masks are left (see the column "status"; increase --steps),
    or no text satisfies the constraints (see stderr).

    stderr reports the sampler and its target distribution. Use --resume to continue an interrupted recording.

    Example:
        besag sample "The [MASK] [MASK] sat on the [MASK]." --chains 3 --seed 1
    """
    out = output.open()
    canvas.check()
    recorded.check(output.output)
    options = method.of_kernel()  # a wrong name is told before anything is loaded
    live = recorded.live and sys.stderr.isatty()
    if recorded.live and not live:
        say("--live is left out: stderr is no terminal, and chains are shown on one")
    progress = False if live else run.progress
    wanted = kept.wanted()
    if wanted:
        _refuse_beside_constraints(text, canvas, method, recorded)
        return _solve(model.load(progress), wanted, text, canvas, method, kept.budget, out)
    lm = model.load(progress)
    try:
        found = _run(lm, text, canvas, method, options, recorded, live)
    except KeyboardInterrupt:
        if recorded.record is None or not Path(f"{recorded.record}.state").exists():
            raise
        again = [*sys.argv[1:], *([] if recorded.resume else ["--resume"])]
        say(f"interrupted; what was said is in {recorded.record}. Go on with: {shlex.join(['besag', *again])}")
        return INTERRUPTED
    _write(found, output.shape, out)
    say(" · ".join(found.facts))
    return 0 if found.status.fine else UNSCORED


def _run(
    lm: LanguageModel,
    text: str | None,
    canvas: CanvasOptions,
    method: KernelOptions,
    options: dict[str, Any],
    recorded: RecordOptions,
    live: bool,
) -> Chain:
    with ExitStack() as stack:
        return lm.sample(
            text, method.kernel, chains=method.chains, steps=method.steps, seed=method.seed, every=recorded.every,
            record=recorded.record, resume=recorded.resume, watch=Watched(stack) if live else None,
            **canvas.of_sample(lm), **options,
        )  # fmt: skip


def _write(found: Chain, shape: str, out: Writer) -> None:
    if shape == "jsonl":
        for row in found.to_dict()["chains"]:
            out.write(row, {})
    else:
        for chain, line in enumerate(found.texts):
            numbers = {name: value for name, value in found.summary(chain).items() if name != "changed"}
            out.write({"chain": chain, "text": line, **numbers, "status": str(found.statuses[chain])}, {})
    out.close()


def _refuse_beside_constraints(
    text: str | None, canvas: CanvasOptions, method: KernelOptions, recorded: RecordOptions
) -> None:
    chained = method.kernel != "gibbs" or method.steps or method.set_ or method.top_p or recorded.record
    if chained or canvas.lengths or canvas.free or canvas.free_all or canvas.keep:
        raise BesagError(
            "words, patterns and lengths are kept to by a search of its own: say a text or a length, --chains, "
            "--top-k, --temperature, --budget and --seed beside them, and nothing else"
        )
    if (text is None) == (canvas.length is None):
        raise BesagError("give a text with masks, or --length for a text from nothing, and not both")


def _solve(
    lm: LanguageModel,
    wanted: list[Constraint],
    text: str | None,
    canvas: CanvasOptions,
    method: KernelOptions,
    budget: int,
    out: Writer,
) -> int:
    from besag.places.reading import masks

    start = text if text is not None else masks(lm.vocabulary, canvas.length or 0) + canvas.end
    solutions = lm.solve(
        start, wanted, solutions=method.chains, sample=True, seed=method.seed, budget=budget,
        top_k=50 if method.top_k is None else method.top_k,
        temperature=1.0 if method.temperature is None else method.temperature,
    )  # fmt: skip
    rows = zip(solutions.texts, solutions.log_probs, solutions.model_log_probs, strict=True)
    for number, (line, log_prob, of_model) in enumerate(rows):
        out.write({"chain": number, "text": line, "log_prob": log_prob, "model_log_prob": of_model}, {})
    out.close()
    say(" · ".join(solutions.facts))
    return 0 if solutions.status.fine else UNSCORED


class Watched:
    """The chains on a terminal, some times a second."""

    def __init__(self, stack: ExitStack) -> None:
        from rich.console import Console
        from rich.live import Live

        self.live: Live = stack.enter_context(Live(console=Console(stderr=True), refresh_per_second=8, transient=True))
        self.shown = 0.0

    def __call__(self, step: int, chains: list[int], texts: Callable[[], list[str]]) -> None:
        if time.monotonic() - self.shown < 0.125:
            return
        from rich.table import Table
        from rich.text import Text  # in which [b] is three letters

        table = Table(title=f"step {step:,}", box=None, show_header=False, title_justify="left")
        for chain, text in zip(chains, texts(), strict=True):
            table.add_row(str(chain), Text(tables.shown(text)))
        self.live.update(table)
        self.shown = time.monotonic()
