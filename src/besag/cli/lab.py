"""`besag lab`: claims of the theory, measured on systems small enough for exact answers; listed, run, on one page."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from besag.checks import whole_number
from besag.cli import options as o
from besag.cli.catalogue import every
from besag.cli.config import Config
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import PlotOptions, grouped
from besag.cli.settings import settings
from besag.errors import BesagError
from besag.files.writing import check_output, print_table

if TYPE_CHECKING:
    from besag.lab.finding import Finding

_NAMES = "Experiments: `besag lab list`."
_SET = "An option of an experiment (`besag methods NAME`); NAME.OPTION=VALUE for one of several. Repeat."
_FULL = "Larger systems and more repetitions; minutes, not seconds."
_SEEDS = "Number of seeds of each experiment: --seed and those that follow it. Figures are those of the first."
_PAGE = "The page, an HTML file that needs nothing else."

Names = Annotated[list[str], typer.Argument(metavar="NAME…", help=_NAMES, show_default=False)]
Some = Annotated[list[str] | None, typer.Argument(metavar="[NAME…]", help=f"{_NAMES} All if not given.")]
Set = Annotated[list[str] | None, o.of_method("--set", metavar="NAME=VALUE", help=_SET, show_default=False)]
Full = Annotated[bool, o.of_method("--full", help=_FULL)]
Page = Annotated[str, o.of_output("--output", "-o", help=_PAGE, show_default=False)]
Seeds = Annotated[int, o.of_method("--seeds", metavar="N", help=_SEEDS)]
Quiet = Annotated[bool, o.of_run("--quiet", help="Say nothing on stderr until all are done.")]

lab = typer.Typer(name="lab", help="Run exact experiments on small systems.", no_args_is_help=True)


@lab.command("list")
@guarded
def list_experiments() -> int:
    """List the experiments.

    Use besag methods NAME for details.

    Example:
        besag lab list
    """
    print_table([{"experiment": one.name, "about": one.title} for one in every("experiment")], sys.stdout)
    return 0


@lab.command("run")
@guarded
@grouped
def run(
    names: Names, output: PlotOptions, set_: Set = None, seed: o.Seed = None, full: Full = False, config: Config = None
) -> int:
    """Run experiments and check their claims.

    --format jsonl writes all results with their arrays; the other formats write the tables. Exit code 3: a claim is not
    confirmed by these numbers.

    Example:
        besag lab run star_order
    """
    chosen = settings("experiment", names, set_, {"seed": seed})
    if output.plot is not None and len(chosen) > 1:
        raise BesagError(f"--plot {output.plot!r} is one picture, and there are {len(chosen)} experiments: run one")
    out = output.open()
    every_finding = []
    for found in _run(chosen, full):
        every_finding.append(found)
        output.save(found)
        if output.on_screen:
            print(found, end="\n\n")
        else:
            say(f"{found.name}: {_verdict(found)}")
    for row in [] if output.on_screen else _rows(every_finding, output.shape):
        out.write(row, {})
    out.close()
    return 0 if all(found.holds for found in every_finding) else UNSCORED


@lab.command("report")
@guarded
@grouped
def report(
    output: Page, names: Some = None, seed: o.Seed = None, seeds: Seeds = 1, full: Full = False, force: o.Force = False,
    quiet: Quiet = False, config: Config = None,
) -> int:  # fmt: skip
    """Write an HTML report of experiments.

    The page has figures, tables, text and the command for each experiment. Exit code 3: a claim is not confirmed by
    these numbers.

    Example:
        besag lab report star_order -o lab.html
    """
    chosen = settings("experiment", names or [one.name for one in every("experiment")], None, {"seed": seed})
    whole_number(seeds, "--seeds", most=1000)
    check_output(output, force)

    import besag
    from besag.files.whole import write_whole
    from besag.lab.report import by_seed, page

    found: dict[int, list[Finding]] = {}
    began = time.monotonic()
    for number in range(seed or 0, (seed or 0) + seeds):
        for one in _run({name: {**own, "seed": number} for name, own in chosen.items()}, full):
            found.setdefault(number, []).append(one)
            if not quiet:
                which = f"{one.name}, seed {number}" if seeds > 1 else one.name
                say(f"{which}: {_verdict(one)}, {time.monotonic() - began:.1f} s so far")
    table = by_seed(found) if seeds > 1 else []
    write_whole(output, page(found[seed or 0], {"besag": besag.__version__, "full": full, "seed": seed or 0}, table))
    if table:
        print_table([*table], sys.stdout)
    every_finding = [one for some in found.values() for one in some]
    say(f"{sum(one.holds for one in every_finding)} of {len(every_finding)} experiments hold what they claim: {output}")
    return 0 if all(one.holds for one in every_finding) else UNSCORED


def _run(chosen: dict[str, dict[str, Any]], full: bool) -> Iterator[Finding]:
    from besag.lab.experiment import experiment

    for name, own in chosen.items():
        yield experiment(name, **own).run(full)


def _verdict(found: Finding) -> str:
    return "holds" if found.holds else "DOES NOT HOLD"


def _rows(every_finding: Sequence[Finding], shape: str) -> Sequence[dict[str, Any]]:
    """Of JSON Lines each finding whole; else a row for each row of a table, all with the same columns."""
    if shape == "jsonl":
        return [found.to_dict() for found in every_finding]
    rows = [row for found in every_finding for row in found.rows()]
    columns = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name, "") for name in columns} for row in rows]
