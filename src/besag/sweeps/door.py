"""The door to sweeps: everything that can be refused is refused first; then runs, judgements, and the table."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from besag.checks import checked, whole_number
from besag.errors import BesagError, require
from besag.evaluation.source import find
from besag.evaluation.suite import suite
from besag.files.claim import Claim
from besag.sweeps.cells import Cell, Source, cells
from besag.sweeps.running import RUNS, Judges, Work, carried_out, judging, training, write_recipes
from besag.sweeps.table import Sweep, table
from besag.training.recipe import Recipe, is_apart

MOST_JOBS = 256


@checked
def sweep(
    recipes: Source | Sequence[Source],
    vary: Mapping[str, Sequence[Any]] | None = None,
    *,
    output: str | Path,
    jobs: int = 1,
    judge: str | Sequence[str] = (),
    data: str | Path | None = None,
    method: str | None = None,
    limit: int | None = None,
    quiet: bool = False,
) -> Sweep:
    """Train recipes with keys that vary, judge every model by suites, and put all of it into one table.

    Args:
        recipes: one recipe or several, as `besag.train` takes them.
        vary: keys of the recipe and the values of each; every choice is a run. "a.b:a.c" varies two keys together.
        output: a folder; another call with it goes on, trains what is missing, and may add runs.
        jobs: runs at a time, each a process with its share of the cores.
        judge: suites (`besag eval list`) that every finished model is judged by.
        data: where their items are; if not given, in `BESAG_DATA`.
        method: of scoring; if not given, that of each suite.
        limit: at most so many items of each group.
        quiet: show no progress bar.

    Returns:
        A `Sweep`: a row for each run, with its values, size, tokens, seconds, held-out numbers and figures.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("text.txt").write_text("The cats sleep. The dogs run. " * 20)
        >>> small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 16}
        >>> data = {"train": ["text.txt"], "valid": ["text.txt"]}
        >>> recipe = {"data": data, "tokenizer": {"size": 280}, "model": {"config": small}, "schedule": {"steps": 2}}
        >>> found = besag.sweep(recipe, {"masking.rate": [0.15, 0.3]}, output="rates", quiet=True)
        >>> [row["masking.rate"] for row in found.rows]
        [0.15, 0.3]
    """
    require("accelerate", extra="train")
    whole_number(jobs, "jobs", most=MOST_JOBS)
    if limit is not None:
        whole_number(limit, "limit", most=10**9)
    one = isinstance(recipes, Recipe | str | Path | Mapping)
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise BesagError(f"output={str(folder)!r} is a file: a sweep is written into a folder")
    plan = cells([recipes] if one else list(recipes), vary or {}, folder / RUNS)  # type: ignore[list-item, arg-type]
    _refuse_adapters(plan)
    place = None if data is None else str(data)
    judges = Judges([judge] if isinstance(judge, str) else list(judge), place, method, limit)
    for name in judges.suites:
        find(suite(name), place)  # what is missing is told before hours of training
    write_recipes(folder, plan)
    claim = Claim(folder, "choose another folder")
    try:
        wrong = _done(training(folder, plan), jobs, "run", quiet)
        wrong |= _done(judging(folder, plan, judges), jobs, "judgement", quiet, accepted=(0, 3))  # 3: not all items
        return _told(folder, plan, judges, wrong)
    finally:
        claim.release()


def _refuse_adapters(plan: Sequence[Cell]) -> None:
    for cell in plan:
        if is_apart(cell.recipe.adapt):
            raise BesagError(
                f"adapt.method = {cell.recipe.adapt.method!r} of {cell.name!r} keeps an adapter apart, and a sweep is "
                "of whole models: use 'lora' with adapt.keep = 'merged'"
            )


def _done(work: list[Work], jobs: int, unit: str, quiet: bool, accepted: Sequence[int] = (0,)) -> dict[str, str]:
    """Everything carried out; name → what went wrong."""
    wrong = {}
    with closing(carried_out(work, jobs, accepted)) as pieces, tqdm(total=len(work), unit=unit, disable=quiet) as bar:
        for one, problem in pieces:
            bar.update()
            if problem:
                wrong[one.name] = problem
                if not quiet:
                    bar.write(f"{one.name}: {problem}", file=sys.stderr)
    return wrong


def _told(folder: Path, plan: Sequence[Cell], judges: Judges, wrong: Mapping[str, str]) -> Sweep:
    found = table(folder, plan, judges.suites, wrong)
    found.write()
    return found
