"""The door to training: what a recipe says is trained, evaluated on the way, and stopped by Ctrl-C without a loss.

Knows which evaluation a run is watched by, and what its card says it came from. Everything is done by
`besag.training`, which knows no evaluation, and by `besag.evaluation`.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from besag.checks import checked, number
from besag.training.recipe import Changes, Recipe, is_parallel, recipe_of
from besag.training.run import TrainingResult
from besag.training.run import train as carry_out
from besag.training.run.stopping import stoppable

__all__ = ["TrainingResult", "train"]


@checked
def train(
    recipe: Recipe | str | Path | Mapping[str, Any],
    changes: Changes = (),
    *,
    output: str | Path | None = None,
    resume: bool = False,
    stop_after: float | None = None,
    quiet: bool = False,
    command: str | None = None,
) -> TrainingResult:
    """Train, continue or adapt a masked model as a recipe says: the same run as `besag train`.

    Args:
        recipe: a TOML file, the folder of a run, a table of tables as such a file has them, or a `Recipe`.
        changes: keys of the recipe to change, `["masking.rate=0.4"]` or `{"masking.rate": 0.4}`.
        output: the folder of the run (run.output).
        resume: go on from the newest checkpoint of that folder.
        stop_after: minutes by the clock, from now on and with everything counted, after which the run is stopped.
        quiet: show no progress bar.
        command: what the model's card says the run was begun with; if not given, the command that does the same.

    Returns:
        A `TrainingResult`: the folder, the last of each number in the log, and whether the run is finished. Ctrl-C or
        SIGTERM ends it after its step, with a checkpoint from which `resume=True` goes on; a second one ends it then.
        So does `stop_after`.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("text.txt").write_text("The cats sleep. The dogs run. " * 20)
        >>> small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 16}
        >>> data = {"train": ["text.txt"], "valid": ["text.txt"]}
        >>> recipe = {"data": data, "tokenizer": {"size": 280}, "model": {"config": small}}
        >>> result = besag.train(recipe, {"schedule.steps": 2}, output="run", quiet=True)
        >>> result.step, result.finished
        (2, True)
        >>> lm = besag.load(result.model)
    """
    wanted = recipe_of(recipe, changes, output=output)
    said = _command(recipe, changes) if command is None else command
    minutes = None if stop_after is None else number(stop_after, "stop_after", least=0, most=10**7)
    with stoppable(minutes) as stop:
        result = carry_out(wanted, resume=resume, monitor=evaluation_of, stop=stop, command=said, quiet=quiet)
    return result if result.finished else replace(result, signal=stop.signal)


def evaluation_of(built: Any) -> Any:
    """What evaluates during the run, made once everything else is."""
    from besag.evaluation.monitor import Monitor
    from besag.evaluation.pair_monitor import PairMonitor
    from besag.evaluation.translating import TranslationMonitor

    if built.recipe.model.decoder != "none":
        return TranslationMonitor(built)
    if is_parallel(built.recipe.data):
        return PairMonitor(built)
    return Monitor(
        built.recipe, built.vocabulary, built.valid, contexts=built.valid_contexts, purpose=built.objective.purpose
    )


def _command(recipe: object, changes: Changes) -> str:
    """The command that trains the same, without the folders of this machine; none where no file holds the recipe."""
    if not isinstance(recipe, str | Path):
        return ""
    if isinstance(changes, Mapping):  # JSON is TOML, but for null, which is what --set calls nothing
        changes = [f"{key}={'' if value is None else json.dumps(value)}" for key, value in changes.items()]
    sets = [word for change in changes for word in ("--set", change)]
    return shlex.join(["besag", "train", os.path.basename(os.path.normpath(recipe)), *sets])
