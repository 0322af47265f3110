"""Deep mutational scans: do the effects that a model gives to variants rank them as the laboratory did?

A row of a file is a variant and what was measured of it; higher is fitter. Effects are those of `lm.variants`; the
published figure is Spearman's correlation within an assay, averaged over assays, with NDCG and the recall of the best
tenth beside it (ProteinGym: Notin et al. 2023). Whether the wild type is right is checked for every variant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from besag.errors import BesagError, quoted
from besag.evaluation.asking import Model
from besag.evaluation.metrics import Average, Metric, Statistic, per_group
from besag.evaluation.ranking import ndcg, top_recall
from besag.evaluation.suite import Answer, Item, Row, Source, Suite, register
from besag.files.rows import Row as FileRow
from besag.scores import Method
from besag.statistics import spearman
from besag.variants.effects import effects, named
from besag.variants.mutations import read_mutations, variants_of, wild_type_of
from besag.variants.protein import Protein, only_sequence, plain

FROM_MUTATIONS = "mutations"
MUTATED = "mutated_sequence"  # ProteinGym's column
TOGETHER = 1024  # variants that are asked at a time


@register
@dataclass(frozen=True)
class DeepMutationalScans(Suite):
    name = "variants"
    title = "proteins: do effects of variants rank them as measured?"
    cite = ("notin2023", "meier2021")
    folder = "dms_small"
    files = "a CSV file an assay (mutant, mutated_sequence, DMS_score)"
    origin = "https://proteingym.org"
    licence = "MIT; each assay has its own"
    asked = "effects of variants"
    methods = causal_methods = ()
    ties = "equal scores share their mean rank"

    strategy: Annotated[
        str, "how a variant is scored: masked_marginals, masked_marginals_alone, wt_marginals, pseudo_ppl, ag, hcb …"
    ] = "masked_marginals"
    mutant: Annotated[str, "the column of variants"] = "mutant"
    measured: Annotated[str, "the column of what was measured, higher is fitter"] = "DMS_score"
    wild_type: Annotated[
        str, "a sequence, a FASTA file, a column, or 'mutations': as these name it; '': what mutated_sequence undoes"
    ] = ""
    offset: Annotated[int, "the number of a residue minus its place in the wild type, counted from 1"] = 0

    def read(self, source: Source) -> Iterator[Item]:
        named(self.strategy)
        for table in source.tables("*.csv", "*.tsv", "*.jsonl", "*.parquet"):
            rows = [(row, source.texts(row, self.mutant, self.measured)) for row in table.rows]
            if not rows:
                continue
            sequence, offset = self._wild_type([row for row, _ in rows], [mutant for _, (mutant, _) in rows])
            for row, (mutant, measured) in rows:
                about = {"variant": mutant, "measured": _number(measured, row, self.measured)}
                try:
                    variants_of(sequence, [mutant], offset)
                except BesagError as wrong:
                    raise BesagError(f"{row.where}: {wrong}") from wrong
                about |= {"wild_type": sequence, "offset": offset}
                yield Item(f"{table.name}/{row.place}", table.name, about=about, where=row.where)

    def answers(
        self, lm: Model, items: Sequence[Item], method: Method | None, block: int | None = None
    ) -> Iterator[Answer]:
        how, size = named(self.strategy), min(block or TOGETHER, TOGETHER)
        for start in range(0, len(items), size):
            part = items[start : start + size]
            found: dict[str, Any] = {}
            for (sequence, offset), own in _by_wild_type(part).items():
                protein = Protein.of(lm.conditionals, sequence)
                asked = variants_of(sequence, [item.about["variant"] for item in own], offset)
                found |= dict(zip([item.id for item in own], effects(lm.engine, protein, asked, how), strict=True))
            for item in part:
                effect = found[item.id]
                yield Answer(item, [effect], effect.status)

    def judge(self, item: Item, given: Sequence[Any]) -> Row:
        [effect] = given
        row = {
            "variant": item.about["variant"],
            "mutations": len(read_mutations(item.about["variant"])),
            "measured": item.about["measured"],
            "effect": effect.effect,
        }
        return row if math.isnan(effect.epistasis) else {**row, "epistasis": effect.epistasis}

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        return [metric for name in METRICS for metric in _over_assays(name, rows)]

    def _wild_type(self, rows: Sequence[FileRow], mutants: Sequence[str]) -> tuple[str, int]:
        """The wild type of a file, and its offset."""
        given, first = self.wild_type, rows[0]
        if given == FROM_MUTATIONS:
            return wild_type_of(mutants)
        if given and Path(given).is_file():
            return only_sequence(given), self.offset
        has: Mapping[str, object] = first.values if isinstance(first.values, Mapping) else {}
        if given in has:
            return _one([plain(str(_cell(row, given))) for row in rows], rows, given), self.offset
        if given:
            return plain(given), self.offset
        if MUTATED in has:
            undone = [_undone(row, mutant, self.offset) for row, mutant in zip(rows, mutants, strict=True)]
            return _one(undone, rows, MUTATED), self.offset
        raise BesagError(
            f"{first.where} has no {MUTATED!r}, so the wild type must be said: --set wild_type= a sequence, a FASTA "
            f"file, the name of a column, or {FROM_MUTATIONS!r} where variants name all residues of a stretch"
        )


METRICS = {
    "Spearman": (spearman, "correlation of the ranks by effect and by measurement; 0 is guessing, 1 the same order"),
    "NDCG": (ndcg, "how much of what was measured stands in the tenth with the best scores; 1 is the best possible"),
    "top recall": (top_recall, "of the best tenth by measurement, the share that is in the best tenth by effect"),
}


def _over_assays(name: str, rows: Sequence[Row]) -> list[Metric]:
    """Return the mean over assays, then that of each."""
    function, meaning = METRICS[name]
    one = Statistic(function, ("measured", "effect"))
    return [
        Metric(name, Average(one), f"mean over assays: {meaning}", unit=""),
        *per_group(rows, "group", Metric(name, one, meaning, unit="")),
    ]


def _by_wild_type(items: Sequence[Item]) -> dict[tuple[str, int], list[Item]]:
    found: dict[tuple[str, int], list[Item]] = {}
    for item in items:
        found.setdefault((item.about["wild_type"], item.about["offset"]), []).append(item)
    return found


def _number(written: str, row: FileRow, name: str) -> float:
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BesagError(f"{row.where}: {name!r} is {quoted(written)}, not a number: leave the row out")
    return value


def _cell(row: FileRow, name: str) -> object:
    return row.values[name] if isinstance(row.values, Mapping) else row.values


def _undone(row: FileRow, mutant: str, offset: int) -> str:
    """The wild type of a mutated sequence."""
    sequence = plain(str(_cell(row, MUTATED)))
    swapped = [f"{one.mutant}{one.number}{one.wild}" for one in read_mutations(mutant)]
    try:
        [back] = variants_of(sequence, [":".join(swapped)], offset)
    except BesagError as wrong:
        raise BesagError(f"{row.where}: {MUTATED!r} is not what {mutant!r} makes: undone, {wrong}") from wrong
    return back.of(sequence)


def _one(found: Sequence[str], rows: Sequence[FileRow], name: str) -> str:
    """The wild type that all rows agree on."""
    for sequence, row in zip(found, rows, strict=True):
        if sequence != found[0]:
            differ = next(
                (at for at, (a, b) in enumerate(zip(sequence, found[0], strict=False)) if a != b), len(sequence)
            )
            raise BesagError(
                f"{row.where}: by {name!r} the wild type differs from that of {rows[0].where}, first at residue "
                f"{differ + 1} of the sequence: one file has one wild type"
            )
    return found[0]
