"""The BabyLM challenge's zero-shot tasks (the pipeline of 2025): which of some completions is the likeliest?

    score of a completion = Σ log p(t) over the tokens that share a character with it, read in the whole sentence

The first completion is the right one. A task's figure is the published one: the mean over its subsets (of entity
tracking, over the kinds of stories, of the mean over numbers of operations); of the wug tasks, Spearman's correlation
between people's preference for the first form and exp(s₁) / (exp(s₁) + exp(s₂)). The pipeline scores masked models by
pseudo-log-likelihood at temperature 1, as `pll` does; beside it, where temperatures are given, it reports each task at
the one that suits these items best. Its reading task is `babylm_reading`; age of acquisition (of many checkpoints) is
not here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

from besag.conditionals.temper import Tempered
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.evaluation.metrics import Mean, Metric, Statistic, groups, per_group
from besag.evaluation.suite import Answer, Ask, Item, Method, Model, Row, Score, Source, Suite, register, scores_of
from besag.statistics import spearman

WON = "of the items, the share in which the right completion is the most probable"
STORIES = ("regular", "ambiref", "move_contents")  # the kinds of entity tracking
COMPS = {
    "comps_base": "base", "comps_wugs": "wugs", "comps_wugs_dist-before": "wugs_dist_before",
    "comps_wugs_dist-in-between": "wugs_dist_in_between",
}  # fmt: skip


class Choice(NamedTuple):
    """What an item of the pipeline asks: completions of contexts, the right one first."""

    subset: str  # the pipeline's UID
    contexts: Sequence[str]
    completions: Sequence[str]
    predictions: Sequence[str]  # how the pipeline writes each of them down
    ratio: float = math.nan  # of a wug: how many people prefer the first form


@register
@dataclass(frozen=True)
class BabyLM(Suite):
    name = "babylm"
    title = "BabyLM's zero-shot tasks: BLiMP, supplement, EWoK, entity tracking, COMPS, wugs"
    cite = ("charpentier2025",)
    folder = "babylm"
    files = (
        "folders of the pipeline's evaluation_data: blimp_…, supplement_…, ewok_…, entity_tracking…, comps, "
        "wug_adj_nominalization, wug_past_tense, with its JSON Lines files"
    )
    origin = "https://github.com/babylm/evaluation-pipeline-2025 (the data: https://osf.io/ryjfm)"
    licence = "that of each task"
    scoring = {"separator": ""}  # noqa: RUF012 (declared as a mapping)
    ties = "a tie is right: the pipeline takes the first of the likeliest, and the right one stands first"

    temperatures: Annotated[str, "beside 1, with commas between: each task also at the best of them"] = ""

    def __post_init__(self) -> None:
        try:
            right = all(float(one) > 0 and math.isfinite(float(one)) for one in self.degrees)
        except ValueError:
            right = False
        if not right:
            raise BesagError(f"temperatures={quoted(self.temperatures)}: numbers above 0, with commas between")

    @property
    def degrees(self) -> list[str]:
        return [one.strip() for one in self.temperatures.split(",")] if self.temperatures else []

    def read(self, source: Source) -> Iterator[Item]:
        seen: Counter[tuple[str, str]] = Counter()
        for file in source.files("*.jsonl"):
            task = _task_of(file.parts[-3:-1])
            if task is None:
                raise BesagError(f"{file} lies in no folder of a task. {source.wanted}")
            [table] = Source(file, wanted=source.wanted).tables()
            for row in table.rows:
                one = TASKS[task](source, row, table.name)
                number = seen[task, one.subset]
                seen[task, one.subset] += 1
                asks = tuple(Ask(text, before) for before, text in zip(one.contexts, one.completions, strict=True))
                about = {"task": task, "choice": one, "number": number}
                group = f"{task}/{one.subset}"
                yield Item(f"{group}_{number}", group, asks, about, row.where)

    def answers(
        self, lm: Model, items: Sequence[Item], method: Method | None, block: int | None = None
    ) -> Iterator[Answer]:
        """All completions at temperature 1, then all of them at each other temperature."""
        plain = super().answers(lm, items, method, block)
        assert method is not None
        engines = [Engine(Tempered(lm.conditionals, float(one)), progress=False) for one in self.degrees]
        others = [scores_of(engine, items, method, self.scoring, block) for engine in engines]
        for answer, *more in zip(plain, *others, strict=True):
            yield answer._replace(given=[*answer.given, *(score for _, found in more for score in found)])

    def judge(self, item: Item, given: Sequence[Score]) -> Row:
        one: Choice = item.about["choice"]
        every = [score.total for score in given]
        choices = len(one.completions)
        row = self._judged(item, every[:choices])
        for number, degree in enumerate(self.degrees, 1):
            other = self._judged(item, every[number * choices : (number + 1) * choices])
            row |= {f"{name} at {degree}": other[name] for name in ("credit", "prob") if name in other}
        return row

    def _judged(self, item: Item, totals: list[float]) -> dict[str, Any]:
        one: Choice = item.about["choice"]
        best = totals.index(max(totals))  # the first of the likeliest
        row = {
            "task": item.about["task"], "subset": one.subset, "number": item.about["number"], "scores": totals,
            "pred": one.predictions[best], "credit": float(best == 0), "ties": float(totals.count(max(totals)) > 1),
        }  # fmt: skip
        if math.isnan(one.ratio):
            return row
        return {**row, "ratio": one.ratio, "prob": 1 / (1 + math.exp(min(700.0, totals[1] - totals[0])))}

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        accuracy = Metric(
            "accuracy", Mean(over=("task", _kind_of_story, "subset")), "mean over the tasks that have an accuracy",
            where=_has_accuracy, ties="ties",
        )  # fmt: skip
        of_task = replace(accuracy, meaning=f"mean over subsets {WON}")
        correlation = Metric(
            "correlation", Statistic(spearman, ("prob", "ratio")),
            "Spearman's correlation of the model's and people's preference for the first form",
            where=lambda row: not _has_accuracy(row), unit="", chance=0.0,
        )  # fmt: skip
        tasks = {one.group: one for metric in (of_task, correlation) for one in per_group(rows, "task", metric)}
        ordered = [tasks[task] for task in groups(rows, "task")]
        of_subset = replace(accuracy, name="accuracy of a subset", estimator=Mean(), meaning=WON)
        return [
            *([accuracy] if any(map(_has_accuracy, rows)) else []),
            *ordered,
            *(_best(one, rows, self.degrees) for one in ordered if self.degrees),
            *per_group(rows, "group", of_subset),
        ]

    def documents(self, rows: Sequence[Row]) -> Mapping[str, Any]:
        """`predictions.json`: what the pipeline collates, task by task and subset by subset."""
        return {"predictions": predictions(rows)}


def predictions(rows: Sequence[Row]) -> dict[str, Any]:
    """task → subset → {"predictions": [{"id": "subset_0", "pred": …}, …]}; wugs have a "prob", too."""
    found: dict[str, Any] = {}
    for row in rows:
        one = {"id": f"{row['subset']}_{row['number']}", "pred": row["pred"]}
        one |= {"prob": row["prob"]} if "prob" in row else {}
        found.setdefault(row["task"], {}).setdefault(row["subset"], {"predictions": []})["predictions"].append(one)
    return found


def _has_accuracy(row: Row) -> bool:
    return not str(row["task"]).startswith("wug")


def _kind_of_story(row: Row) -> str:
    """Return the kind of story of entity tracking; "" for other tasks."""
    tracked = row["task"] == "entity_tracking"
    return next((kind for kind in STORIES if tracked and str(row["subset"]).startswith(kind)), "")


def _best(metric: Metric, rows: Sequence[Row], degrees: Sequence[str]) -> Metric:
    """Return the metric of a task at the temperature, 1 among them, at which it is highest: the first of equal ones."""
    own = [row for row in rows if metric.uses(row)]
    at = {degree: metric.estimator.value(_at(degree)(own)) for degree in ("1", *degrees)}
    best = max(at, key=lambda degree: at[degree])
    meaning = f"at temperature {best}, the best of {', '.join(at)} on these very items: {metric.meaning}"
    return replace(metric, name=f"best {metric.name}", meaning=meaning, fit=_at(best))


def _at(degree: str) -> Callable[[Sequence[Row]], Sequence[Row]]:
    """Puts what was scored at a temperature where the scores at 1 are."""
    if degree == "1":
        return lambda rows: rows
    columns = ("credit", "prob")
    return lambda rows: [{**row, **{name: row[f"{name} at {degree}"] for name in columns if name in row}}
                         for row in rows]  # fmt: skip


# ---- the pipeline's files


def _blimp(source: Source, row: Any, stem: str) -> Choice:
    good, bad = source.texts(row, "sentence_good", "sentence_bad")
    subset = source.texts(row, "UID")[0] if "field" in row.values else stem  # the supplement says neither
    return Choice(subset, ("", ""), (good, bad), (good, bad))


def _ewok(source: Source, row: Any, stem: str) -> Choice:
    context, first, second, domain = source.texts(row, "Context1", "Target1", "Target2", "Domain")
    return Choice(domain, (f"{context} ",) * 2, (first, second), (f" {first}", f" {second}"))


def _entity_tracking(source: Source, row: Any, stem: str) -> Choice:
    before, operations = source.texts(row, "input_prefix", "numops")
    given = row.values.get("options")
    if not isinstance(given, list) or len(given) < 2 or not all(isinstance(one, str) for one in given):
        raise BesagError(f"{row.where}: 'options' is {quoted(given)}, and should be a list of at least two texts")
    return Choice(f"{stem}_{operations}_ops", (before,) * len(given), given, given)


def _comps(source: Source, row: Any, stem: str) -> Choice:
    good, bad, said = source.texts(row, "prefix_acceptable", "prefix_unacceptable", "property_phrase")
    if stem not in COMPS:
        raise BesagError(f"{row.where}: the files of COMPS are called {', '.join(COMPS)}")
    return Choice(COMPS[stem], (f"{good} ", f"{bad} "), (said, said), (f"{good} {said}", f"{bad} {said}"))


def _wug(task: str) -> Callable[[Source, Any, str], Choice]:
    def read(source: Source, row: Any, stem: str) -> Choice:
        both, ratio = source.texts(row, "sentences", "ratio")
        forms = both.split("\t")
        try:
            number = float(ratio)
        except ValueError:
            number = math.nan
        if len(forms) != 2 or not math.isfinite(number):
            raise BesagError(
                f"{row.where}: two sentences with a tab between and a ratio, not {quoted(both)}, {ratio!r}"
            )
        return Choice(task, ("", ""), forms, forms, number)

    return read


TASKS: Mapping[str, Callable[[Source, Any, str], Choice]] = {
    "blimp": _blimp, "blimp_supplement": _blimp, "ewok": _ewok, "entity_tracking": _entity_tracking, "comps": _comps,
    "wug_adj": _wug("wug_adj"), "wug_past": _wug("wug_past"),
}  # fmt: skip


def _task_of(folders: Sequence[str]) -> str | None:
    """Whose folder it is, the innermost first: they are called blimp_filtered, supplement_fast, wug_past_tense …"""
    found = (task for one in reversed(folders) for task in TASKS if one.startswith(task.removeprefix("blimp_")))
    return next(found, None)
