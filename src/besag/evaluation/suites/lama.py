"""LAMA: which answer fills the gap of a cloze (Petroni et al. 2019), also where answers have several tokens?

The candidates of a fact are all answers of its file. A candidate y of tokens y_1 … y_n is scored by `chain` in the gap,
given what stands before and after it:

    log q(y) = Σ_t log p(y_t | the sentence, y_<t shown, y_t … y_n hidden)

so each is a probability among fillings of its own number of tokens, and the number itself is given away; `reduction`
"mean" divides by n. P@k: is the true answer among the k best? MRR: the mean of 1 / its rank. Where the true answer is
one token, its rank among the whole vocabulary is kept too, which is what LAMA published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from besag.errors import BesagError, quoted
from besag.evaluation.metrics import Mean, Metric, groups
from besag.evaluation.suite import Ask, Item, Row, Score, Source, Suite, register
from besag.files.packed import plain_name
from besag.files.rows import Row as FileRow
from besag.files.rows import read

MASK = "[MASK]"
RELATIONS = "relations.jsonl"
SUBJECT, ANSWER = "[X]", "[Y]"
AMONG = "among all answers of its file"


@register
@dataclass(frozen=True)
class Lama(Suite):
    name = "lama"
    title = "knowledge: which of all answers fills the gap of a cloze, of one token or several?"
    cite = ("petroni2019",)
    folder = "lama"
    files = (
        "JSON Lines files, one a relation (obj_label, and masked_sentences with a [MASK], or sub_label and a template "
        f"in {RELATIONS})"
    )
    origin = "https://github.com/facebookresearch/LAMA"
    licence = "CC BY-NC 4.0"
    methods = ("chain",)
    causal_methods = ()
    scoring: ClassVar[Mapping[str, Any]] = {"separator": "", "rank": True}
    ties = "answers that score alike share the better rank"

    reduction: Annotated[Literal["sum", "mean"], "over the tokens of an answer"] = "sum"

    def read(self, source: Source) -> Iterator[Item]:
        templates = _templates(source)
        for file in source.files("*.jsonl"):
            name = Path(plain_name(str(file))).stem
            if Path(plain_name(str(file))).name == RELATIONS:
                continue
            facts = [(row, source.texts(row, "obj_label")[0]) for row in read(str(file), "jsonl")]
            answers = sorted({answer for _, answer in facts})
            for row, answer in facts:
                before, after = _around(row, templates.get(name, ""))
                asks = tuple(Ask(one, before, after) for one in answers)
                about = {"answer": answer, "answers": answers, "sentence": f"{before}{MASK}{after}"}
                yield Item(f"{name}/{row.place}", name, asks, about, row.where)

    def judge(self, item: Item, given: Sequence[Score]) -> Row:
        answers = item.about["answers"]
        right = answers.index(item.about["answer"])
        values = [one.total if self.reduction == "sum" else one.mean for one in given]
        rank = 1 + sum(one > values[right] for one in values)
        row = {
            "sentence": item.about["sentence"],
            "answer": item.about["answer"],
            "chosen": answers[values.index(max(values))],
            "rank": rank,
            "answers": len(answers),
            "tokens": len(given[right].tokens),
            "p1": float(rank == 1),
            "p10": float(rank <= 10),
            "reciprocal": 1 / rank,
        }
        if row["tokens"] == 1 and given[right].rank is not None:
            row["vocabulary_rank"] = int(given[right].rank[0])
        return row

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        known = Metric(
            "P@1 in the vocabulary", Mean(lambda row: row["vocabulary_rank"] == 1),
            "of answers of one token, the share that is the most probable token of the vocabulary, as published",
            where=lambda row: "vocabulary_rank" in row, chance=0.0,
        )  # fmt: skip
        several = Metric(
            "P@1 of several tokens", Mean("p1"), f"of answers of several tokens, the share that is first {AMONG}",
            where=lambda row: row["tokens"] > 1, chance=0.0,
        )  # fmt: skip
        return [
            *_three(rows),
            *(one for one in (known, several) if any(map(one.where, rows))),
            *(one for name, own in groups(rows).items() for one in _three(own, name)),
        ]


def _three(rows: Sequence[Row], group: str = "") -> list[Metric]:
    guessing = 100 * sum(1 / row["answers"] for row in rows) / len(rows)
    first, ten = f"of the facts, the share whose answer is first {AMONG}", f"among the ten best {AMONG}"
    within = ("group", group) if group else None
    return [
        Metric("P@1", Mean("p1"), first, group, within, chance=guessing),
        Metric("P@10", Mean("p10"), f"of the facts, the share whose answer is {ten}", group, within, chance=0.0),
        Metric("MRR", Mean("reciprocal", error="sample", scale=1.0), f"mean of 1 / the rank of the true answer {AMONG}",
               group, within, unit=""),
    ]  # fmt: skip


def _around(row: FileRow, template: str) -> tuple[str, str]:
    """What stands before and after the gap of a fact."""
    fields = row.values if isinstance(row.values, Mapping) else {}
    given = fields.get("masked_sentences")
    if given is not None and (not isinstance(given, list) or not all(isinstance(one, str) for one in given)):
        raise BesagError(f"{row.where}: 'masked_sentences' is {quoted(given)}, not a list of texts")
    if given:
        sentence = " ".join(given)
    elif template:
        subject = fields.get("sub_label")
        if not isinstance(subject, str):
            raise BesagError(f"{row.where} has no 'sub_label', which the template {quoted(template)} needs")
        sentence = template.replace(SUBJECT, subject).replace(ANSWER, MASK)
    else:
        raise BesagError(f"{row.where} has no 'masked_sentences', and {RELATIONS} has no template for its relation")
    if sentence.count(MASK) != 1:
        raise BesagError(f"{row.where}: {quoted(sentence)} needs one {MASK}, and has {sentence.count(MASK)}")
    before, after = sentence.split(MASK)
    return before, after


def _templates(source: Source) -> dict[str, str]:
    """Of each relation, where a file says so."""
    if source.path is None or not source.path.is_dir():
        folder = source.path.parent if source.path is not None else None
    else:
        folder = source.path
    found: dict[str, str] = {}
    for file in sorted(folder.rglob(RELATIONS)) if folder is not None else []:
        for row in read(str(file), "jsonl"):
            relation, template = source.texts(row, "relation", "template")
            found[relation] = template
    return found
