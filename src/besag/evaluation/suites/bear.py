"""BEAR: is the true one of many statements the likeliest (Wiland et al. 2024)?

A relation has templates ("[X] was born in [Y].") and a closed set of answers. For every subject each answer is filled
in and the whole statement scored, by `word_l2r` (a causal model: its log-probability); the answer of the best statement
is the model's. Accuracy is over all subjects and templates together, so each subject counts by the mean over templates.
Of answers that score alike the first wins, as published. The scores are those of the package lm-pub-quiz.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from besag.errors import BesagError, quoted
from besag.evaluation.metrics import Mean, Metric, column, groups
from besag.evaluation.suite import Ask, Item, Row, Score, Source, Suite, register
from besag.files.lines import small_file
from besag.files.packed import plain_name
from besag.files.rows import read

RELATIONS = "metadata_relations.json"
SUBJECT, ANSWER = "[X]", "[Y]"
EVERY = 0


@register
@dataclass(frozen=True)
class Bear(Suite):
    name = "bear"
    title = "knowledge: is the true one of all statements of a relation the likeliest?"
    cite = ("wiland2024",)
    folder = "bear/BEAR"
    files = f"a JSON Lines file a relation (sub_label, answer_idx), with {RELATIONS} (templates, answer_space_labels)"
    origin = "https://github.com/lm-pub-quiz/BEAR"
    licence = "none stated"
    methods = ("word_l2r",)
    ties = "of answers that score alike the first wins, as published"

    template: Annotated[int, "which of the templates, from 1; 0: all of them"] = EVERY

    def read(self, source: Source) -> Iterator[Item]:
        for file in source.files("P*.jsonl"):
            name = Path(plain_name(str(file))).stem
            templates, answers = self._relation(file.parent / RELATIONS, name)
            for row in read(str(file), "jsonl"):
                subject, right = source.texts(row, "sub_label", "answer_idx")
                if not right.isdecimal() or int(right) >= len(answers):
                    last = len(answers) - 1
                    raise BesagError(
                        f"{row.where}: answer_idx is {quoted(right)}; {name!r} has the answers 0 to {last}"
                    )
                asks = [Ask(statement(template, subject, answer)) for template in templates for answer in answers]
                about = {"subject": subject, "answers": answers, "right": int(right)}
                yield Item(f"{name}/{row.place}", name, tuple(asks), about, row.where)

    def judge(self, item: Item, given: Sequence[Score]) -> Row:
        answers, right = item.about["answers"], item.about["right"]
        totals = [one.total for one in given]
        by_template = [totals[start : start + len(answers)] for start in range(0, len(totals), len(answers))]
        chosen = [scores.index(max(scores)) for scores in by_template]
        return {
            "subject": item.about["subject"],
            "answer": answers[right],
            "chosen": [answers[one] for one in chosen],
            "correct": [int(one == right) for one in chosen],
            "credit": sum(one == right for one in chosen) / len(chosen),
            "tied": int(any(scores.count(max(scores)) > 1 for scores in by_template)),
            "answers": len(answers),
        }

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        whole = _accuracy("accuracy", rows)
        templates = range(len(rows[0]["correct"]))
        several = len(templates) > 1 and all(len(row["correct"]) == len(templates) for row in rows)
        return [
            whole,
            *(
                replace(whole, name=f"accuracy by template {at + 1}", estimator=_mean(at))
                for at in templates
                if several
            ),
            *(_accuracy("accuracy of a relation", own, name) for name, own in groups(rows).items()),
        ]

    def _relation(self, file: Path, name: str) -> tuple[list[str], list[str]]:
        """Its templates, those that are asked, and its answers."""
        known = _document(file)
        relation = known.get(name)
        if not isinstance(relation, Mapping):
            raise BesagError(f"{file} says nothing of the relation {name!r}: it has {', '.join(list(known)[:10])} …")
        templates, answers = (_texts(relation.get(key)) for key in ("templates", "answer_space_labels"))
        if not templates or not answers:
            raise BesagError(f"{file}: {name!r} needs 'templates' and 'answer_space_labels', lists of texts")
        for template in templates:
            if ANSWER not in template:
                raise BesagError(f"{file}: the template {quoted(template)} of {name!r} has no {ANSWER} for the answer")
        if self.template == EVERY:
            return templates, answers
        if not 1 <= self.template <= len(templates):
            raise BesagError(f"template={self.template}: {name!r} has {len(templates)}, from 1; 0 asks all of them")
        return [templates[self.template - 1]], answers


def statement(template: str, subject: str, answer: str) -> str:
    """A template filled in, with a capital at its beginning."""
    text = answer.join(part.replace(SUBJECT, subject) for part in template.split(ANSWER))
    return text[:1].upper() + text[1:]


def _mean(template: int) -> Mean:
    return Mean(lambda row: row["correct"][template], error="sample")


def _accuracy(name: str, rows: Sequence[Row], relation: str = "") -> Metric:
    """Its error is that of a mean over subjects: of one subject the templates agree more than by chance."""
    return Metric(
        name,
        Mean(error="sample"),
        "of the statements' subjects and templates, the share whose most probable statement is the true one",
        relation,
        within=("group", relation) if relation else None,
        chance=100 * float((1 / column(rows, "answers")).mean()),
        ties="tied",
    )


def _document(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise BesagError(f"{file} is missing: it holds the templates and answers of the relations beside it")
    try:
        found = json.loads(small_file(str(file)))
    except ValueError as failure:
        raise BesagError(f"{file} is no JSON: {failure}") from failure
    if not isinstance(found, dict):
        raise BesagError(f"{file} is JSON, but no object of relations")
    return found


def _texts(found: object) -> list[str]:
    """The list of texts that it is; otherwise nothing."""
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
