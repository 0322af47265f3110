"""`besag train RECIPE.toml`, and what goes with it: `init` writes a recipe, `check` only says what a run would be,
`curves` draws runs together. Thin: a run is that of `besag.train`.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from besag.checks import number
from besag.cli import options as o
from besag.cli.exits import UNFINISHED, WRONG, guarded, say
from besag.errors import BesagError, nearest
from besag.files.whole import write_whole
from besag.files.writing import check_output

if TYPE_CHECKING:
    from besag.training.run import TrainingResult

RUN = "run"


class _RecipeFirst(TyperGroup):
    """A group whose first word may also be a recipe: `besag train RECIPE.toml` is `besag train run RECIPE.toml`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            word = args[0]
            guess = nearest(word, self.commands)
            if guess and not word.startswith("-") and not os.path.exists(word) and not Path(word).suffix:
                say(f"error: {word!r} is neither a recipe nor one of {', '.join(self.commands)}.{guess}")
                raise typer.Exit(WRONG)
            args = [RUN, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="train",
    cls=_RecipeFirst,
    no_args_is_help=True,
    help="Train, adapt or fine-tune from a recipe.",
)

RecipeFile = Annotated[
    str, typer.Argument(metavar="RECIPE", help="A TOML file (`besag train init` writes one), or the folder of a run.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the recipe: --set masking.rate=0.4. Repeat."),
]
Minutes = Annotated[float | None, typer.Option("--minutes", help="Train for so long by the clock: schedule.minutes.")]
Folder = Annotated[str | None, typer.Option("--output", "-o", help="Folder of the run: run.output.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the newest checkpoint of the output folder.")]
StopAfter = Annotated[
    float | None,
    typer.Option("--stop-after", metavar="MINUTES", help="End this sitting after so long, with a checkpoint."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
Plot = Annotated[
    bool | None,
    typer.Option("--plot/--no-plot", help="Draw curves.png while the run goes: run.plot.", show_default=False),
]


@app.command(RUN)
@guarded
def run(
    recipe: RecipeFile,
    set_: Set = None,
    resume: Resume = False,
    minutes: Minutes = None,
    output: Folder = None,
    stop_after: StopAfter = None,
    quiet: Quiet = False,
    plot: Plot = None,
) -> int:
    """Train or adapt a model from a recipe.

    The word "run" is optional. Several GPUs: torchrun --nproc-per-node 2 -m besag train recipe.toml. Ctrl-C or SIGTERM
    ends the run after the current step, with a checkpoint; use --resume to continue.

    Example:
        besag train recipe.toml
    """
    from besag.train_model import train

    result = train(
        recipe,
        _changes(set_, minutes, plot),
        output=output,
        resume=resume,
        stop_after=stop_after,
        quiet=quiet,
        command=_command(recipe, set_, minutes),
    )
    if not result.finished:
        again = [] if stop_after is None else ["--stop-after", f"{stop_after:g}"]
        said = shlex.join(["besag", "train", recipe, *_repeated(set_, minutes, output), "--resume", *again])
        say(f"stopped after step {result.step:,}, with a checkpoint; go on with: {said}")
        return UNFINISHED if result.signal is None else 128 + result.signal  # as a shell says it: 130, 143
    _tell(result)
    return 0


@app.command()
@guarded
def init(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The file to write; - is stdout.")] = "recipe.toml",
    law: Annotated[str, typer.Option("--law", help="The law of masks, with its options.")] = "uniform",
    force: o.Force = False,
) -> int:
    """Write a recipe with all keys and defaults.

    Example:
        besag train init
    """
    from besag.training.recipe import template

    text = template(law)
    if path == "-":
        print(text, end="")
        return 0
    check_output(path, force, "PATH")
    write_whole(path, text)
    say(f"{path} is written: name your texts in data.train, then run besag train {path}")
    return 0


@app.command()
@guarded
def check(recipe: RecipeFile, set_: Set = None, minutes: Minutes = None, output: Folder = None) -> int:
    """Report data, steps and memory without training.

    The data is tokenised into the cache, which the training run reuses.

    Example:
        besag train check recipe.toml
    """
    from besag.training.recipe import recipe_of
    from besag.training.run.forecast import forecast

    for name, said in forecast(recipe_of(recipe, _changes(set_, minutes), output=output)):
        print(f"{name:<16} {said}")
    return 0


@app.command()
@guarded
def head(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A TOML file with [task] and [tuning].")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the recipe: --set tuning.epochs=5. Repeat."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Folder of the finished head: run.output.")
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Fine-tune a classifier or tagger.

    Reports metrics on held-out examples. The folder can be loaded by transformers, besag predict and besag explain
    --classifier.

    Example:
        besag train head reviews.toml
    """
    from besag.heads.tuning import train_head

    result = train_head(recipe, set_ or (), output=output, tell=(lambda line: None) if quiet else say)
    for name, value in result.metrics.items():
        print(f"{name:<24} {value:,.6g}")
    say(f"the head is in {result.model}; its README.md says how it was made")
    return 0


@app.command()
@guarded
def curves(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Output folders of runs, or their log.jsonl.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The picture.")] = "curves.png",
    x: Annotated[Literal["tokens", "step", "seconds"], typer.Option("--x", help="The axis.")] = "tokens",
    force: o.Force = False,
) -> int:
    """Plot the training curves of several runs.

    Example:
        besag train curves runs/uniform runs/span -o comparison.png
    """
    from besag.training.run import curves as drawing
    from besag.training.run import logs

    check_output(output, force)
    drawing.check_format(output)
    names = _names(runs)
    read = {name: logs.read(folder) for name, folder in zip(names, runs, strict=True)}
    drawing.save(drawing.draw(read, x), output)
    for name, rows in read.items():
        losses = [row["loss"] for row in rows if not logs.is_evaluation(row)]
        print(f"{name:<{max(map(len, names))}}  {drawing.sparkline(losses)}  {losses[-1]:.4f}")
    say(f"{output} is written")
    return 0


# ---- parts


def _changes(changes: list[str] | None, minutes: float | None, plot: bool | None = None) -> list[str]:
    """What the options change, as the keys of the recipe that they are short for."""
    given = list(changes or ())
    given += [f"schedule.minutes={number(minutes, '--minutes', least=0, most=10**7)}"] if minutes is not None else []
    return given if plot is None else [*given, f"run.plot={str(plot).lower()}"]


def _repeated(changes: list[str] | None, minutes: float | None, output: str | None) -> list[str]:
    """The options that a command must repeat to mean the same run."""
    words = [word for change in changes or () for word in ("--set", change)]
    words += [] if minutes is None else ["--minutes", f"{minutes:g}"]
    return words if output is None else [*words, "--output", output]


def _command(path: str, changes: list[str] | None, minutes: float | None) -> str:
    """For the card: what was typed, without the folders of this machine."""
    return shlex.join(["besag", "train", os.path.basename(path), *_repeated(changes, minutes, None)])


def _names(runs: list[str]) -> list[str]:
    """What the runs are called in a picture: the last parts of their paths that tell them apart."""
    parts = [Path(run).resolve().parts[:-1] if run.endswith(".jsonl") else Path(run).resolve().parts for run in runs]
    depth = 1
    while len({part[-depth:] for part in parts}) < len(runs) and depth < max(map(len, parts)):
        depth += 1
    if len({part[-depth:] for part in parts}) < len(runs):
        raise BesagError(f"the same run is named twice: {' '.join(runs)}")
    return ["/".join(part[-depth:]) for part in parts]


def _tell(result: TrainingResult) -> None:
    if int(os.environ.get("RANK", 0)):
        return  # one of several processes says it
    for name, value in result.metrics.items():
        said = f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
        print(f"{name:<24} {said}" + (f"   before {result.before[name]:,.6g}" if name in result.before else ""))
    what, where = ("adapter", result.adapter) if result.adapter.is_dir() else ("model", result.model)
    say(f"the {what} is in {where}; its README.md says how it was made")
