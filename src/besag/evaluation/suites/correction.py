"""Spelling and grammar correction: detection and correction F1 of sentences and characters, and GLEU.

Beside the model stand a table of confusions learnt from the training pairs, and doing nothing. Detection F1 of a
sentence asks whether exactly its errors were changed, correction F1 whether into what was meant, as SIGHAN's shared
tasks count; GLEU is that of JFLEG. A text with several references has no errors that all agree on: it counts in GLEU
and exact matches alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

from besag.arrays import Floats
from besag.errors import BesagError, quoted
from besag.evaluation.corrections import Confusions, counts, drawn_counts, f1, gleu_counts, mean_gleu
from besag.evaluation.metrics import Mean, Metric, SumStatistic, groups
from besag.evaluation.suite import Answer, Item, Row, Source, Suite, register
from besag.files.lines import lines_of
from besag.files.rows import named, read

ERROR, CORRECT, WRITTEN, REFERENCE = "_error.txt", "_correct.txt", ".src", ".ref"
TABLES = ("*.tsv", "*.csv", "*.jsonl")
TRAIN = "train"  # how the names of files to learn confusions from begin
WHO = {"corrected": "", "by_table": ", confusion table", "written": ", doing nothing"}
# name → (hits, made, errors) among `corrections.counts`
F1 = {
    "sentence correction F1": (3, 0, 1), "sentence detection F1": (2, 0, 1),
    "character correction F1": (7, 4, 5), "character detection F1": (6, 4, 5),
}  # fmt: skip


@register
@dataclass(frozen=True)
class Correction(Suite):
    name = "correction"
    title = "are errors found and corrected, and nothing else changed? (SIGHAN, JFLEG)"
    cite = ("wu2023", "tseng2015", "napoles2015", "napoles2016", "napoles2017")
    folder = "spelling_sighan"
    files = "NAME_error.txt beside NAME_correct.txt, NAME.src beside NAME.ref0 …, or tables with text and correct"
    origin = "https://github.com/keisks/jfleg and the SIGHAN bake-offs on Chinese spelling check"
    licence = "CC BY-NC-SA 4.0 (JFLEG), research use (SIGHAN)"
    asked = "texts, corrected"
    methods = causal_methods = ()
    ties = "a text is right or it is not"

    margin: Annotated[float, "nats by which another token must be likelier than the written one"] = 0.0
    pairs: Annotated[
        str, "pairs to learn the confusion table from: a table with text and correct; if not given, files named train…"
    ] = ""

    def read(self, source: Source) -> Iterator[Item]:
        tables = dict(_pairs(source, file) for file in _files(source))
        aside = {name for name in tables if name.startswith(TRAIN) and len(tables) > 1}
        training = [_of_table(source, Path(self.pairs))] if self.pairs else [tables[name] for name in aside]
        table = Confusions.learn((written, one) for rows in training for _, written, meant in rows for one in meant)
        for name, rows in tables.items():
            for place, (where, written, references) in enumerate(rows if name not in aside else (), 1):
                about = {"written": written, "references": references, "by_table": table.correct(written)}
                yield Item(f"{name}/{place}", name, (), about, where)

    def answers(self, lm: Any, items: Sequence[Item], method: Any, block: int | None = None) -> Iterator[Answer]:
        size = max(1, block or len(items))
        for start in range(0, len(items), size):
            own = items[start : start + size]
            rows = lm.correct([item.about["written"] for item in own], margin=self.margin)
            for item, row in zip(own, rows, strict=True):
                yield Answer(item, [row], row.status)

    def judge(self, item: Item, given: Sequence[Any]) -> Row:
        [found] = given
        row = {**item.about, "corrected": found.text}
        written, references = row["written"], row["references"]
        for who in WHO:
            row[f"{who}_gleu"] = [gleu_counts(written, row[who], one) for one in references]
            row[f"{who}_exact"] = float(row[who] in references)
            row[f"{who}_counts"] = counts(written, row[who], references[0]) if len(references) == 1 else []
        return row

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        parts = groups(rows)
        each = [one for name, own in parts.items() if len(parts) > 1 for one in _metrics(own, name)]
        return [*_metrics(rows, ""), *each]


def _metrics(rows: Sequence[Row], group: str) -> list[Metric]:
    within = ("group", group) if group else None
    told = "n-grams shared with the reference, less those of the source that should have changed"
    same = "of the texts, the share that is a reference, to the letter"
    return [
        *(_f1(who, said, name, group) for name in F1 for who, said in WHO.items() if _has_errors(rows, who, name)),
        *(Metric(f"GLEU{said}", SumStatistic(_gleu, "counts"), told, group, within, fit=_counted(who), unit="")
          for who, said in WHO.items()),
        *(Metric(f"exact{said}", Mean(f"{who}_exact"), same, group, within)
          for who, said in WHO.items()),
    ]  # fmt: skip


def _f1(who: str, said: str, name: str, group: str) -> Metric:
    which = F1[name]
    return Metric(
        name + said,
        SumStatistic(lambda sums: 100 * f1(*sums.tolist()), lambda row: [row[f"{who}_counts"][at] for at in which]),
        f"2PR / (P + R) of the {'places changed' if 'detection' in name else 'changes made'}",
        group,
        within=("group", group) if group else None,
        where=lambda row: bool(row["corrected_counts"]),
    )


def _has_errors(rows: Sequence[Row], who: str, name: str) -> bool:
    return any(row[f"{who}_counts"][F1[name][2]] for row in rows if row["corrected_counts"])


def _gleu(sums: Floats) -> float:
    return 100 * mean_gleu(sums)


def _counted(who: str) -> Callable[[Sequence[Row]], list[Row]]:
    """Adds counts with drawn references: the same references for two runs of the same texts."""
    return lambda rows: [{"counts": one} for one in drawn_counts([row[f"{who}_gleu"] for row in rows])]


# ---- files

Pair = tuple[str, str, list[str]]  # where, what is written, what was meant


def _files(source: Source) -> list[Path]:
    found = source.files(f"*{ERROR}", f"*{WRITTEN}", *TABLES)
    return [file for file in found if source.path == file or not file.name.endswith(WRITTEN) or _references(file)]


def _pairs(source: Source, file: Path) -> tuple[str, list[Pair]]:
    if file.name.endswith(ERROR):
        name = file.name.removesuffix(ERROR)
        return name, _beside(file, [file.with_name(name + CORRECT)])
    if file.name.endswith(WRITTEN):
        name = file.name.removesuffix(WRITTEN)
        if not _references(file):
            raise BesagError(f"{file} has no reference beside it: {quoted(name + REFERENCE + '0')} is missing")
        return name, _beside(file, _references(file))
    return file.name.partition(".")[0], _of_table(source, file)


def _references(file: Path) -> list[Path]:
    return sorted(file.parent.glob(f"{file.name.removesuffix(WRITTEN)}{REFERENCE}*"))


def _beside(written: Path, meant: Sequence[Path]) -> list[Pair]:
    found = []
    for number, texts in enumerate(zip_longest(*(lines_of(str(file)) for file in (written, *meant))), 1):
        if any(text is None for text in texts):
            names = ", ".join(file.name for file in (written, *meant))
            raise BesagError(f"{names} do not have the same number of lines: line {number} is not in all of them")
        first, *others = (text.strip() for _, text in texts)
        if first:
            found.append((f"{written.name}, line {number}", first, others))
    return found


def _of_table(source: Source, file: Path) -> list[Pair]:
    rows = read(str(file), header=named)
    cells = ((row.where, source.texts(row, "text", "correct")) for row in rows)
    return [(where, text.strip(), [meant.strip()]) for where, (text, meant) in cells if text.strip()]
