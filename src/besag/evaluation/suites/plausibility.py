"""Event plausibility: does the plausible one of two sentences score higher (EventsAdapt; Kauf et al. 2023)?

The two say who did what to whom the one way and the other, in the active voice or the passive: the teacher bought the
laptop, the laptop bought the teacher. They have the same words, so only their order tells. Of AI items (an animate and
an inanimate noun) the implausible one is impossible; of AAN items (two animate nouns) it is unlikely; of AAR items both
are plausible, and which is called so is by chance: 50 % is right there, and they are in no overall figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from besag.errors import BesagError, quoted
from besag.evaluation.metrics import Mean, Metric, credit, is_tie, per_group
from besag.evaluation.suite import Ask, Item, Row, Score, Source, Suite, register
from besag.evaluation.suites.blimp import Reduction

REVERSIBLE = "AAR"
LABELS = ("Plausible", "Implausible")


@register
@dataclass(frozen=True)
class Plausibility(Suite):
    name = "plausibility"
    title = "who did what to whom: does the plausible one of two events score higher?"
    cite = ("kauf2023events", "kauf2023")
    folder = "event_plausibility"
    files = "clean_EventsAdapt_SentenceSet.csv (ItemNum, Sentence, Plausibility, Voice, TrialType)"
    origin = "https://github.com/carina-kauf/lm-event-knowledge"
    licence = "none stated, released for research"

    reduction: Reduction = "sum"
    sentence: Annotated[str, "column of the sentence"] = "Sentence"
    plausible: Annotated[str, "column that says Plausible or Implausible"] = "Plausibility"
    pair: Annotated[str, "column that the two sentences of a pair share, beside their voice"] = "ItemNum"
    voice: Annotated[str, "column of the voice"] = "Voice"
    kind: Annotated[str, "column of the kind of event"] = "TrialType"

    def read(self, source: Source) -> Iterator[Item]:
        for table in source.tables("*.csv", "*.tsv"):
            found: dict[tuple[str, str], dict[str, tuple[str, str, str]]] = {}
            for row in table.rows:
                names = (self.sentence, self.plausible, self.pair, self.voice, self.kind)
                sentence, label, pair, voice, kind = source.texts(row, *names)
                if label not in LABELS:
                    raise BesagError(f"{row.where}: {self.plausible} is {quoted(label)}: Plausible or Implausible")
                own = found.setdefault((pair, voice), {})
                if label in own:
                    raise BesagError(f"{row.where}: item {quoted(pair)} ({voice}) has a second {label} sentence")
                own[label] = sentence, kind, row.where
            for (pair, voice), own in found.items():
                if len(own) < 2:
                    [(label, (_, _, where))] = own.items()
                    raise BesagError(f"{where}: item {quoted(pair)} ({voice}) has only the {label} sentence")
                (good, kind, where), (bad, _, _) = (own[label] for label in LABELS)
                about = {"voice": voice, "good": good, "bad": bad}
                yield Item(f"{table.name}/{pair}/{voice}", kind, (Ask(good), Ask(bad)), about, where)

    def judge(self, item: Item, given: Sequence[Score]) -> Row:
        good, bad = (one.total if self.reduction == "sum" else one.mean for one in given)
        return {**item.about, "good_score": good, "bad_score": bad, "credit": credit(good, bad)}

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        won = "of the pairs, the share in which the plausible sentence scores higher (50 % is guessing)"
        told = "of the pairs of which both are plausible, the share in which the one that is called so scores higher"
        accuracy = Metric("accuracy", Mean(), won, where=_one_sided, chance=50.0, ties=is_tie)
        reversible = replace(
            accuracy, name="reversible", meaning=told, where=lambda row: not _one_sided(row), direction="50 is ideal"
        )
        return [
            *([accuracy] if any(_one_sided(row) for row in rows) else []),
            *per_group(rows, "group", accuracy),
            *per_group(rows, "voice", replace(accuracy, name="accuracy by voice")),
            *per_group(rows, "group", reversible),
        ]


def _one_sided(row: Row) -> bool:
    """Return whether only one sentence of a pair is plausible."""
    return bool(row["group"] != REVERSIBLE)
