"""The command line: `besag score | fill | sample | joint | eval | train | …`, one thin file a command.

Data goes to stdout, everything else to stderr; `exits.py` lists the exit codes. Nothing heavy is imported before a
command needs it, so `besag --help` takes a fraction of a second.

The first line of a command's docstring is its line in `besag --help`; the section "Example:" ends its own `--help`.
"""

from __future__ import annotations

import inspect
import io
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import besag
from besag.cli.answer import answer
from besag.cli.augment import augment
from besag.cli.autoprompt import autoprompt
from besag.cli.binders import binders
from besag.cli.bulk import bulk
from besag.cli.choose import choose
from besag.cli.cite import cite
from besag.cli.compare import compare
from besag.cli.correct import correct
from besag.cli.diagnose import diagnose
from besag.cli.distil_scorer import distil_scorer
from besag.cli.distil_translations import distil_translations
from besag.cli.edit import edit
from besag.cli.embed import embed
from besag.cli.eval import evaluate
from besag.cli.examples import examples
from besag.cli.explain import explain
from besag.cli.explore import explore
from besag.cli.export import export
from besag.cli.fill import fill
from besag.cli.joint import joint
from besag.cli.lab import lab
from besag.cli.lengths import lengths
from besag.cli.marginals import marginals
from besag.cli.match import match
from besag.cli.methods import methods
from besag.cli.models import models
from besag.cli.pairs import pairs
from besag.cli.predict import predict
from besag.cli.probe import probe
from besag.cli.rescore import rescore
from besag.cli.sample import sample
from besag.cli.score import score
from besag.cli.serve import serve
from besag.cli.sweep import sweep
from besag.cli.tokenizer import tokenizer
from besag.cli.train import app as train
from besag.cli.translate import translate

LONGEST = 240  # letters of a usage error


class Commands(TyperGroup):
    """All commands; what is wrong with an option is told in a line, however long its value is."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as wrong:
            if len(wrong.message) > LONGEST:
                wrong.message = f"{wrong.message[:120]} … {wrong.message[-60:]}"
            raise

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order of `GROUPS`; typer lists those with subcommands last."""
        members = [member for members in GROUPS.values() for member in members]
        names = [one.info.name if isinstance(one, typer.Typer) else one.__name__ for one in members]
        return [str(name).replace("_", "-") for name in names]


GROUPS: dict[str, tuple[Callable[..., None] | typer.Typer, ...]] = {  # in the order of `besag --help`
    "Score": (score, marginals, choose, answer, lengths, embed, explain),
    "Fill and sample": (fill, sample, augment, edit, correct),
    "Joint and diagnose": (joint, compare, pairs, diagnose),
    "Evaluate and rescore": (evaluate, probe, rescore),
    "Train and adapt": (train, tokenizer, sweep, predict, autoprompt, distil_scorer, export),
    "Translate": (translate, distil_translations),
    "Proteins": (binders, match),
    "Serve and scale": (serve, explore, bulk),
    "Theory": (lab,),
    "Reference": (models, methods, cite, examples),
}
EXAMPLE = "\n\nExample:\n"  # the last section of every command's docstring


def add_examples(group: typer.Typer) -> str:
    """Split the docstring of each command into help and a final example; return the first example of the group."""
    for command in group.registered_commands:
        text, _, example = (inspect.getdoc(command.callback) or "").partition(EXAMPLE)
        command.help = "\n\n".join(" ".join(one.split()) for one in text.split("\n\n"))  # wrapped by the terminal only
        command.epilog = f"Example:\n\n{example.strip()}"
    return str(group.registered_commands[0].epilog)


app = typer.Typer(
    name="besag",
    cls=Commands,
    epilog="Exit codes: 0 success, 1 unusable model, 2 invalid input, 3 some rows or checks failed, 70 internal error, "
    "75 training stopped early, 130 Ctrl-C, 141 closed pipe, 143 SIGTERM.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for title, members in GROUPS.items():
    for member in members:
        if isinstance(member, typer.Typer):
            app.add_typer(member, rich_help_panel=title, epilog=add_examples(member))
        else:
            app.command(rich_help_panel=title)(member)
add_examples(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(besag.__version__)
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_print_version)] = False,
) -> None:
    """Score, infill and sample text with masked language models, and train them."""


def main() -> None:
    """The `besag` command."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before we began
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (for as long as we run)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # texts go out as they came in, whatever the locale is; what no encoding can write is shown
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    app(prog_name="besag")
