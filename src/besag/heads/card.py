"""The card of a head, README.md and recipe.toml: from its recipe and what was measured. Nothing is made up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from besag import models
from besag.files.whole import write_whole
from besag.heads.examples import Split
from besag.heads.recipe import HeadRecipe
from besag.results.words import counted
from besag.training.recipe import text as recipe_text
from besag.training.recipe import values as recipe_values

METRICS = {
    "accuracy": "accuracy",
    "macro_f1": "F1, mean over labels",
    "span_f1": "F1 of whole spans",
    "usual_accuracy": "accuracy of the most frequent label alone",
    "masked_accuracy": "accuracy with a random share of the tokens hidden",
}


def write(
    folder: Path,
    name: str,
    recipe: HeadRecipe,
    examples: Split,
    architecture: str,
    metrics: Mapping[str, float],
    cut: int,
) -> None:
    write_whole(folder / "README.md", "\n".join(_lines(name, recipe, examples, architecture, metrics, cut)) + "\n")
    write_whole(folder / "recipe.toml", _toml(recipe))


def _lines(
    name: str, recipe: HeadRecipe, examples: Split, architecture: str, metrics: Mapping[str, float], cut: int
) -> Iterator[str]:
    what = "Labels texts" if recipe.task.kind == "classify" else "Tags words"
    auto = "AutoModelForSequenceClassification" if recipe.task.kind == "classify" else "AutoModelForTokenClassification"
    start = models.EMBEDDED if models.is_bundled(recipe.model.start) else Path(recipe.model.start).name
    yield from (
        f"# {name}",
        "",
        f"{what}: {', '.join(examples.names)}. {architecture} on `{start}`, tuned by besag.",
        "",
    )
    yield from ("| on examples held out | |", "|---|---|")
    yield from (f"| {said} | {metrics[key]:.4f} |" for key, said in METRICS.items() if key in metrics)
    yield f"| held out | {counted(len(examples.valid), 'example')} |"
    yield f"| learned from | {counted(len(examples.train), 'example')} |"
    if cut:
        yield f"| cut to {recipe.task.max_length} tokens in training | {counted(cut, 'example')} |"
    yield ""
    if recipe.tuning.masked:
        yield "Half of the examples were shown with a random share of their tokens hidden: masks mean something to it."
        yield ""
    yield from ("```python", f"besag.load_head(folder).predict([…])   # or {auto} of transformers", "```")


def _toml(recipe: HeadRecipe) -> str:
    """As it can be run again, but that files go by their names alone."""
    table = recipe_values.as_table(recipe)
    for section, key in (("task", "train"), ("task", "valid"), ("model", "start"), ("run", "output")):
        if table[section][key] is not None:
            table[section][key] = Path(table[section][key]).name
    return recipe_text.write(HeadRecipe, table, comments=False)
