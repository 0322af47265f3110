"""The command line: `besag score | fill | sample | joint | eval | train | …`, one thin file a command.

Data goes to stdout, everything else to stderr; `exits.py` says what the exit codes mean. Nothing heavy is imported
before a command needs it, so that `besag --help` answers at once.
"""

from __future__ import annotations

import io
import os
import sys
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


app = typer.Typer(
    name="besag",
    cls=Commands,
    epilog="Exit codes: 0 done, 1 a model that cannot be used, 2 wrong input, 3 some rows were not scored, 70 a fault "
    "of besag, 130 Ctrl-C, 141 the pipe was closed, 143 SIGTERM.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    score,
    marginals,
    choose,
    answer,
    autoprompt,
    fill,
    sample,
    translate,
    augment,
    edit,
    correct,
    joint,
    compare,
    diagnose,
    explain,
    predict,
    embed,
    probe,
    match,
    binders,
    pairs,
    rescore,
    lengths,
    distil_scorer,
    distil_translations,
    sweep,
    export,
    explore,
    serve,
    models,
    methods,
    cite,
    examples,
):
    app.command()(command)
for group in (evaluate, lab, train, tokenizer, bulk):
    app.add_typer(group)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(besag.__version__)
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", help="Say which besag this is.", callback=_print_version)
    ] = False,
) -> None:
    """Turn any masked language model into a language model."""


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
