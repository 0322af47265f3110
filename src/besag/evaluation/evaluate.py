"""The door of suites: `besag.evaluate(lm, "blimp", data="blimp/")`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from besag.checks import checked
from besag.errors import BesagError
from besag.evaluation.asking import Model
from besag.evaluation.evaluation import Evaluation
from besag.evaluation.running import evaluations, tasks
from besag.evaluation.suite import Suite
from besag.evaluation.suite import suite as suite_named
from besag.scores import Method
from besag.scores import method as method_named


@checked
def evaluate(
    model: Model | Sequence[Model],
    suite: str | Suite,
    *,
    data: str | os.PathLike[str] | None = None,
    method: str | Method | Sequence[str | Method] | None = None,
    limit: int | None = None,
    **options: Any,
) -> Evaluation:
    """How good a model is, by a suite of published items (`besag eval list`).

    Args:
        model: a `LanguageModel`, or several.
        suite: its name.
        data: a folder, a file, or the name of a data set on the hub; if not given, its folder in `BESAG_DATA`.
        method: of scoring, or several; if not given, the one that the suite is published with.
        limit: at most so many items of each group.
        options: of the suite.

    Returns:
        An `Evaluation`: figures with n, standard errors and ties, and a row for each item.

    Examples:
        >>> with open("pairs.tsv", "w") as file:
        ...     _ = file.write("good\\tbad\\nThe cats sleep.\\tThe cats sleeps.\\nShe is here.\\tShe are here.\\n")
        >>> found = besag.evaluate(lm, "minimal_pairs", data="pairs.tsv")
        >>> found["accuracy over pairs"].value, found["accuracy over pairs"].n
        (100.0, 2)
    """
    if limit is not None and limit < 1:
        raise BesagError(f"limit={limit}: at least 1 item of each group, or None for all")
    models = [model] if isinstance(model, Model) else list(model)
    if not models:
        raise BesagError("there is no model to ask: give one, or a list of several")
    one = suite if isinstance(suite, Suite) else suite_named(suite, **options)
    named = [method] if isinstance(method, str | Method) else method
    chosen = None if named is None else [how if isinstance(how, Method) else method_named(how) for how in named]
    names = [lm.name for lm in models]
    earlier = [names[:place].count(name) for place, name in enumerate(names)]  # the second of one name gets a number
    labels = [f"{name}#{count + 1}" if count else name for name, count in zip(names, earlier, strict=True)]
    work = tasks([one], dict(zip(labels, models, strict=True)), chosen, data, limit)
    return evaluations([(task, list(task.rows())) for task in work])[0]
