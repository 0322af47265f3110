"""`besag eval NAME…`, `besag eval list` and `besag eval compare`: suites run, listed, and two runs compared."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from besag.cli import options as o
from besag.cli.catalogue import Entry, every, known
from besag.cli.config import Config
from besag.cli.evaluating import Evaluating, items
from besag.cli.exits import INTERRUPTED, UNSCORED, guarded, say
from besag.cli.groups import ModelsOptions, OutputOptions, RunOptions, grouped
from besag.cli.settings import settings
from besag.errors import BesagError, nearest
from besag.files.writing import choose_format, print_table, writer
from besag.results.tables import shown

if TYPE_CHECKING:
    from besag.evaluation.evaluation import Evaluation
    from besag.scores import Method

_METHODS = "Of scoring: `besag methods` lists them; if not given, the suite's own. Repeat to compare."
_SET = "An option of a suite or a method (`besag methods NAME`); NAME.OPTION=VALUE for one of several. Repeat."
_DATA = "A folder (or one with a subfolder a suite), a file, or a data set of the hub; if not given, $BESAG_DATA."
_FOLDER = "A folder for items.jsonl, figures.tsv, run.json and report.html; if not given, figures go to stdout."
_LIMIT = "At most the first N items of each group."
_PER = "What a row on stdout is."

Names = Annotated[list[str], typer.Argument(metavar="NAME…", help="Suites: `besag eval list`.", show_default=False)]
Methods = Annotated[list[str] | None, o.of_method("--method", help=_METHODS, show_default=False)]
Set = Annotated[list[str] | None, o.of_method("--set", metavar="NAME=VALUE", help=_SET, show_default=False)]
Data = Annotated[str | None, o.of_input("--data", help=_DATA, show_default=False)]
Limit = Annotated[int | None, o.of_input("--limit", min=1, help=_LIMIT, show_default=False)]
Per = Annotated[Literal["figure", "item"], o.of_result("--per", help=_PER)]
Folder = Annotated[str | None, o.of_output("--output", "-o", help=_FOLDER, show_default=False)]
A = Annotated[str, typer.Argument(metavar="A", help="A folder of results.", show_default=False)]
B = Annotated[str, typer.Argument(metavar="B", help="Another, of the same suites.", show_default=False)]

RUN = "run"


class Suites(TyperGroup):
    """`besag eval blimp` is `besag eval run blimp`: whatever is no command names a suite."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = args and args[0] in (*self.list_commands(ctx), "-h", "--help")
        return super().parse_args(ctx, [RUN, *args] if args and not own else args)


@guarded
@grouped
def run(
    names: Names,
    model: ModelsOptions,
    run: RunOptions,
    data: Data = None,
    method: Methods = None,
    set_: Set = None,
    seed: o.Seed = None,
    limit: Limit = None,
    per: Per = "figure",
    output: Folder = None,
    format: o.Format = None,
    force: o.Force = False,
    resume: o.Resume = False,
    config: Config = None,
) -> int:
    """Evaluate models on benchmarks.

    Reports each metric with n, its standard error and ties. The word "run" is optional. Exit code 3: some items could
    not be scored (see their status). Use --resume to continue an interrupted run.

    Example:
        besag eval blimp --data blimp --limit 100
    """
    wanted, chosen = _settings(names, method, set_, seed)
    model.check()

    import besag
    from besag.cli.side_by_side import column_names
    from besag.evaluation import saved
    from besag.evaluation.running import tasks
    from besag.evaluation.source import find
    from besag.evaluation.suite import suite

    suites = [suite(name, **own) for name, own in wanted.items()]
    for one in suites:
        find(one, data)  # what is missing is told before a model is loaded, and before anything is written
    kept = items(output, force, resume)
    models = model.load_all(run.progress)
    labels = column_names(list(zip(model.names, [lm.name for lm in models], strict=True)))
    work = Evaluating(tasks(suites, dict(zip(labels, models, strict=True)), _methods(chosen), data, limit), kept)
    about = _about(work, wanted, chosen, data, limit)
    work.begin(about)
    if not work.through():
        say(f"interrupted after {work.done:,} of {work.total:,} items{work.go_on}")
        return INTERRUPTED
    found = work.found()
    if output is not None:
        saved.write(output, found, {"besag": besag.__version__, "data": data or os.environ.get("BESAG_DATA"),
                                    "limit": limit, "options": wanted, "methods": chosen})  # fmt: skip
    work.finish()
    _print(found, per, choose_format(format, None))
    return UNSCORED if any(evaluation.status != "ok" for evaluation in found) else 0


def _print(found: Sequence[Evaluation], per: Literal["figure", "item"], shape: str) -> None:
    """Figures for a reader as Python shows them; whatever else as rows, and below them what they come to."""
    if shape == "table" and per == "figure":
        print("\n\n".join(shown(str(evaluation)) for evaluation in found))
        return
    out = writer(shape, None, False)
    for row in (row for evaluation in found for row in evaluation.table(per)):
        out.write(row, {})
    out.close()
    for evaluation in found:
        print(shown(" · ".join(evaluation.facts)), file=sys.stdout if shape == "table" else sys.stderr)


def _settings(
    names: Sequence[str], methods: Sequence[str] | None, said: Sequence[str] | None, seed: int | None
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """What is set of each suite, and of each method; told apart by who has such an option."""
    chosen = {one.name: one for one in (_known(name) for name in names)}
    if len(chosen) < len(names):
        raise BesagError(f"a suite is there twice: {', '.join(names)}")
    usual = [part for one in chosen.values() for part in one.facts["by"].split(", ") if part != "–"]
    scores = {one.name: one for one in (known("score", name) for name in methods or dict.fromkeys(usual))}
    own: dict[str, list[str]] = {"suite": [], "score": []}
    for one in said or ():
        own[_whose(one, chosen, scores)].append(one)
    if not methods and (own["score"] or seed is not None) and not usual:
        raise BesagError("--set and --seed are about a method of scoring, and these suites take none")
    of_suites = settings("suite", list(chosen), own["suite"])
    if not (methods or own["score"] or seed is not None):
        return of_suites, {}  # each suite has its own
    return of_suites, settings("score", list(scores), own["score"], {"seed": seed})


def _known(name: str) -> Entry:
    try:
        return known("suite", name)
    except BesagError as unknown:
        commands = nearest(name, ["overlap", "list", "compare"])
        raise BesagError(str(unknown) + (f" ({commands.strip()[:-1]}, a command?)" if commands else "")) from None


def _whose(said: str, suites: dict[str, Entry], scores: dict[str, Entry]) -> str:
    """Is it an option of a suite or of a method?"""
    place = said.partition("=")[0]
    holder, dot, _ = place.partition(".")
    if dot:
        return "suite" if holder in suites else "score"
    of_suite = any(option.name == place for one in suites.values() for option in one.options)
    of_score = any(option.name == place for one in scores.values() for option in one.options)
    if of_suite and of_score:
        raise BesagError(f"--set {said}: a suite and a method have such an option: write NAME.{place}=…")
    return "score" if of_score or (not of_suite and any(one.options for one in scores.values())) else "suite"


def _methods(chosen: dict[str, dict[str, Any]]) -> list[Method] | None:
    from besag.scores import method

    return [method(name, **own) for name, own in chosen.items()] or None


def _about(
    work: Evaluating, wanted: dict[str, Any], chosen: dict[str, Any], data: str | None, limit: int | None
) -> dict[str, Any]:
    """The settings that a run must share with the one that it goes on with."""
    import besag
    from besag.cli.score import about_model
    from besag.study.folder import checksum

    models: dict[str, Any] = {task.model: about_model(task.lm) for task in work.work}  # type: ignore[arg-type]
    read = {task.suite.name: checksum([f"{item.id}\t{item.group}\t{item.asks}\t{item.about}" for item in task.items])
            for task in work.work}  # fmt: skip
    return {"besag": besag.__version__, "suites": wanted, "methods": chosen, "limit": limit, "models": models,
            "items": read}  # fmt: skip


@guarded
def list_suites() -> int:
    """List the benchmarks and where their data is.

    Data is looked for in $BESAG_DATA. Use besag methods NAME for details.

    Example:
        besag eval list
    """
    root = os.environ.get("BESAG_DATA")
    rows = [
        {"suite": one.name, "title": one.title, "asks for": one.facts["asks for"],
         "data": _there(root, one.facts["folder"]), "from": one.facts["from"], "licence": one.facts["licence"]}
        for one in every("suite")
    ]  # fmt: skip
    print_table(list(rows), sys.stdout)
    print(
        f"\nBESAG_DATA is {root!r}." if root else "\nBESAG_DATA is not set: it names a folder with one for each suite."
    )
    return 0


def _there(root: str | None, folder: str) -> str:
    return "there" if root and os.path.exists(os.path.join(root, folder)) else "–"


@guarded
@grouped
def compare(a: A, b: B, output: OutputOptions) -> int:
    """Compare two evaluation runs item by item.

    Reports differences with bootstrap intervals, p-values and a conclusion in words.

    Example:
        besag eval compare results/bert results/roberta
    """
    out = output.open()

    from besag.evaluation import saved
    from besag.evaluation.compare import compare as differ

    found = differ(saved.read(a), saved.read(b))
    for one in found:
        for row in one.table():
            out.write({"a_part": one.a.label, "b_part": one.b.label, **row}, {})
    out.close()
    for one in found:
        print(shown(" · ".join(one.facts)), file=sys.stdout if output.on_screen else sys.stderr)
    return 0
