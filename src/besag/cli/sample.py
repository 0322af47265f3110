"""`besag sample`: text from the model, by any of the kernels."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from besag.cli import options as o
from besag.cli.exits import INTERRUPTED, UNSCORED, guarded, say
from besag.cli.lengths import length_model
from besag.cli.positions import Free, Keep, positions
from besag.cli.writing import choose_format, writer
from besag.errors import BesagError

if TYPE_CHECKING:
    from rich.live import Live

    from besag.constraints import Constraint

Template = Annotated[
    str | None,
    typer.Argument(metavar="[TEXT]", help="With one [MASK] or more; or any text with --free.", show_default=False),
]
KernelName = Annotated[str, o.of_method("--kernel", "-k", help="`besag methods` lists them.")]
Chains = Annotated[int, o.of_method("--chains", "-c", min=1, help="Chains, all run together.")]
Steps = Annotated[int | None, o.of_method("--steps", min=1, help="If not given: a decoder's own, or 10 a free place.")]
Length = Annotated[int | None, o.of_method("--length", min=1, help="Tokens to draw from nothing.")]
Lengths = Annotated[
    str | None,
    o.of_method("--lengths", help="File of texts, or what `besag lengths` saved, to draw lengths from."),
]
End = Annotated[str, o.of_method("--end", help="Closes a text from nothing, such as a full stop.")]
FreeAll = Annotated[bool, o.of_method("--free-all", help="Every word of the text may change.")]
Temperature = Annotated[float | None, o.of_method("--temperature", "-t", help="1 draws from the model's own law.")]
TopK = Annotated[int | None, o.of_method("--top-k", help="Draw from the k likeliest tokens.")]
TopP = Annotated[float | None, o.of_method("--top-p", help="Draw from the fewest tokens that hold this share.")]
Set = Annotated[
    list[str] | None,
    o.of_method("--set", metavar="KEY=VALUE", help="An option of the kernel: --set scan=subset. Repeat."),
]
Require = Annotated[list[str] | None, o.of_method("--require", help="A word that must stand in the text. Repeat.")]
Forbid = Annotated[list[str] | None, o.of_method("--forbid", help="A word that must not. Repeat.")]
Matching = Annotated[str | None, o.of_method("--pattern", help="A regular expression that the whole text matches.")]
Characters = Annotated[str | None, o.of_method("--characters", metavar="LEAST:MOST", help="Of the whole text.")]
Words = Annotated[str | None, o.of_method("--words", metavar="LEAST:MOST", help="Of the whole text.")]
Budget = Annotated[int, o.of_method("--budget", min=1, help="With constraints: forward passes of one search.")]
Seed = Annotated[int, o.of_method("--seed", help="Of all draws.")]
Every = Annotated[int | None, o.of_result("--every", min=1, help="--record: keep every so many steps.")]
RecordFile = Annotated[
    str | None, o.of_result("--record", help="File (.jsonl, .parquet) for what the chains say on the way.")
]
Resume = Annotated[bool, o.of_run("--resume", help="Go on with the run that --record names.")]
LiveView = Annotated[bool, o.of_run("--live", help="Show the chains while they run, on stderr.")]


@guarded
def sample(
    text: Template = None,
    kernel: KernelName = "gibbs",
    chains: Chains = 4,
    steps: Steps = None,
    length: Length = None,
    lengths: Lengths = None,
    end: End = "",
    free: Free = None,
    free_all: FreeAll = False,
    keep: Keep = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    set_: Set = None,
    require: Require = None,
    forbid: Forbid = None,
    pattern: Matching = None,
    characters: Characters = None,
    words: Words = None,
    budget: Budget = 1000,
    seed: Seed = 0,
    model: o.Model = None,
    device: o.Device = None,
    dtype: o.Dtype = None,
    revision: o.Revision = None,
    allow_pickle: o.AllowPickle = False,
    compile: o.Compile = False,
    every: Every = None,
    record: RecordFile = None,
    resume: Resume = False,
    live: LiveView = False,
    format: o.Format = None,
    output: o.Output = None,
    force: o.Force = False,
    batch_tokens: o.BatchTokens = None,
    progress: o.Progress = None,
) -> int:
    """Draw text from the model: the masks of a text, or a text from nothing.

    besag sample "The [MASK] [MASK] sat on the [MASK]."

    besag sample --length 12 --end . --kernel ordered --chains 8 --seed 1

    besag sample "The old man walked home." --free-all --keep man --steps 200 --record chains.jsonl

    besag sample --length 8 --end . --require sea --forbid blue --characters 20:40

    Words, patterns and lengths that a text must keep to are searched for: the model's likely tokens, with turning back.
    Exit code 3: not found, or impossible, and stderr says which.

    stderr says what was run and what law it has. A recorded run that was interrupted goes on with --resume.
    """
    shape = choose_format(format, output)
    out = writer(shape, output, force)
    if length is not None and lengths is not None:
        raise BesagError("--length is one length, --lengths a file to draw them from: say one of them")
    if free and free_all:
        raise BesagError("--free names places, --free-all frees all of them: say one of them")
    if record is None and (every is not None or resume):
        told = "--every says which steps are recorded" if every is not None else "--resume goes on with a recorded run"
        raise BesagError(f"{told}: name a file with --record")
    if record is not None and output is not None and Path(record).resolve() == Path(output).resolve():
        raise BesagError(f"--output and --record are both {record!r}: give each a file of its own")

    import besag
    from besag.places.reading import masks

    lm = besag.load(
        model, device=device, dtype=dtype, revision=revision, allow_pickle=allow_pickle, compile=compile,
        batch_tokens=batch_tokens, progress=False if live else progress,
    )  # fmt: skip
    wanted = _constraints(require, forbid, pattern, characters, words)
    if wanted:
        if kernel != "gibbs" or steps or record or lengths or free or free_all or keep or set_ or top_p:
            raise BesagError(
                "words, patterns and lengths are kept to by a search of its own: say a text or a length, --chains, "
                "--top-k, --temperature, --budget and --seed beside them, and nothing else"
            )
        if (text is None) == (length is None):
            raise BesagError("give a text with masks, or --length for a text from nothing, and not both")
        start = text if text is not None else masks(lm.vocabulary, length or 0) + end
        solutions = lm.solve(
            start, wanted, solutions=chains, sample=True, seed=seed, budget=budget,
            top_k=50 if top_k is None else top_k, temperature=1.0 if temperature is None else temperature,
        )  # fmt: skip
        rows = zip(solutions.texts, solutions.log_probs, solutions.model_log_probs, strict=True)
        for number, (line, log_prob, of_model) in enumerate(rows):
            out.write({"chain": number, "text": line, "log_prob": log_prob, "model_log_prob": of_model}, {})
        out.close()
        say(" · ".join(solutions.told))
        return 0 if solutions.status in ("solved", "all") else UNSCORED
    law = None if lengths is None else length_model(lengths, lm)
    common = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    options = {name: value for name, value in common.items() if value is not None} | settings(set_)
    try:
        with ExitStack() as stack:
            watch = Watched(stack) if live else None
            found = lm.sample(
                text, kernel, chains=chains, steps=steps, length=length if law is None else law, end=end,
                free="all" if free_all else positions(free), keep=positions(keep) or (), every=every, seed=seed,
                record=record, resume=resume, watch=watch, **options,
            )  # fmt: skip
    except KeyboardInterrupt:
        if record is None or not Path(f"{record}.state").exists():
            raise
        again = [*sys.argv[1:], *([] if resume else ["--resume"])]
        say(f"interrupted; what was said is in {record}. Go on with: {shlex.join(['besag', *again])}")
        return INTERRUPTED
    if shape == "jsonl":
        for row in found.to_dict()["chains"]:
            out.write(row, {})
    else:
        for chain, line in enumerate(found.texts):
            numbers = {name: value for name, value in found.summary(chain).items() if name != "changed"}
            out.write({"chain": chain, "text": line, **numbers}, {})
    out.close()
    say(" · ".join(found.told))
    return 0


def _constraints(
    require: list[str] | None,
    forbid: list[str] | None,
    pattern: str | None,
    characters: str | None,
    words: str | None,
) -> list[Constraint]:
    from besag.constraints import Forbidden, Length, Pattern, Required

    found: list[Constraint] = [*map(Required, require or ()), *map(Forbidden, forbid or ())]
    if pattern is not None:
        found.append(Pattern(regex=pattern))
    for of, said in (("characters", characters), ("words", words)):
        if said is not None:
            least, colon, most = said.partition(":")
            if not colon or not (least or "0").isdecimal() or not (most or "0").isdecimal():
                raise BesagError(f"--{of} {said!r}: write LEAST:MOST, such as 20:40, 20: or :40")
            found.append(Length(int(least or 0), int(most) if most else None, of=of))  # type: ignore[arg-type]
    return found


def settings(given: list[str] | None) -> dict[str, Any]:
    """KEY=VALUE as a kernel's options: numbers, true, false and null as JSON writes them, the rest as words."""
    found: dict[str, Any] = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise BesagError(f"--set {one!r}: write KEY=VALUE, such as scan=subset")
        try:
            read = json.loads(value)
        except ValueError:
            read = value
        found[name] = tuple(read) if isinstance(read, list) else read
    return found


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

        table = Table(title=f"step {step:,}", box=None, show_header=False, title_justify="left")
        for chain, text in zip(chains, texts(), strict=True):
            table.add_row(str(chain), text)
        self.live.update(table)
        self.shown = time.monotonic()
