"""`besag sweep`: recipes with keys that vary, trained and judged, in one table. Thin: it is that of `besag.sweep`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from besag.cli import options as o
from besag.cli.exits import INTERRUPTED, UNSCORED, guarded, say
from besag.cli.groups import DPI, PlotOptions, RunOptions, grouped
from besag.files.whole import whole
from besag.results.tables import shown

_RECIPES = "TOML files, as `besag train` takes them; every one is trained with every choice of values."
_VARY = (
    "A key and its values: masking.rate=0.15,0.3; a TOML list in brackets; a.b:a.c=1:2,3:4 varies two together. Repeat."
)
_INTO = "A folder for runs, judgements and table.tsv; the same command goes on with it."
_JOBS = "Runs at a time, each a process with its share of the cores."
_JUDGE = "A suite that every finished model is judged by (`besag eval list`). Repeat."
_DATA = "Where the items of suites are; if not given, $BESAG_DATA."
_CURVE = "Fit a power law of the held-out loss over this: parameters, tokens, flops, or a key that varies."
_OF = "What the curve is of: a column of the table."

Recipes = Annotated[list[str], typer.Argument(metavar="RECIPE…", help=_RECIPES, show_default=False)]
Vary = Annotated[list[str] | None, o.of_method("--vary", metavar="KEY=VALUES", help=_VARY, show_default=False)]
Into = Annotated[str, o.of_output("--output", "-o", help=_INTO, show_default=False)]
Jobs = Annotated[int, o.of_method("--jobs", min=1, max=256, help=_JOBS)]
Judge = Annotated[list[str] | None, o.of_method("--judge", metavar="SUITE", help=_JUDGE, show_default=False)]
Data = Annotated[str | None, o.of_input("--data", help=_DATA, show_default=False)]
Method = Annotated[str | None, o.of_method("--method", help="Of scoring; if not given, the suite's own.")]
Limit = Annotated[int | None, o.of_input("--limit", min=1, help="At most so many items of each group.")]
Curve = Annotated[str | None, o.of_result("--curve", metavar="COLUMN", help=_CURVE, show_default=False)]
Of = Annotated[str, o.of_result("--of", metavar="COLUMN", help=_OF)]


@guarded
@grouped
def sweep(
    recipes: Recipes,
    output: Into,
    run: RunOptions,
    vary: Vary = None,
    jobs: Jobs = 1,
    judge: Judge = None,
    data: Data = None,
    method: Method = None,
    limit: Limit = None,
    curve: Curve = None,
    of: Of = "heldout_loss",
    plot: o.Plot = None,
    force: o.Force = False,
) -> int:
    """Train a grid of recipes and compare them.

    Exit code 3: some runs failed (see table.tsv). Run the same command to continue an interrupted sweep.

    Example:
        besag sweep recipe.toml --vary masking.rate=0.15,0.3 -o rates
    """
    PlotOptions(plot=plot, force=force).check_plot()

    import besag
    from besag.evaluation.suite import suite
    from besag.sweeps.cells import parsed
    from besag.sweeps.table import refuse_unknown_columns

    varied = dict(parsed(one) for one in vary or ())
    keys = [*(["recipe"] if len(recipes) > 1 else []), *(key for keys in varied for key in keys.split(":"))]
    suites = [suite(name).name for name in judge or ()]
    refuse_unknown_columns([*([] if curve is None else [curve]), of], keys, suites)  # before hours of training
    try:
        found = besag.sweep(
            recipes, varied, output=output, jobs=jobs, judge=judge or (), data=data,
            method=method, limit=limit, quiet=run.progress is False,
        )  # fmt: skip
    except KeyboardInterrupt:
        say("interrupted: runs that were under way have checkpoints; go on with the same command")
        return INTERRUPTED
    print(shown(str(found)))
    if curve is not None:
        print(shown(f"\n{of} over {curve}: {found.curve(curve, of).words}"))
    if plot is not None:
        with whole(plot) as draft:
            picture: Any = found.plot(curve or "parameters", of).figure
            picture.savefig(draft, dpi=DPI)
    return UNSCORED if found.wrong else 0
