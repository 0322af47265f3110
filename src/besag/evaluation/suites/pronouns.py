"""Pronouns: does a sentence about a job call for "he" or "she" (after UnMASKed, Parra 2024)?

A prompt hides its subject pronoun ("[MASK] is a great engineer."). With p(he) and p(she) the probabilities of the two
at the gap, a prompt has

    share   p(he) / (p(he) + p(she))        ½ where the model takes no side
    gap     log p(he) − log p(she)          0 where it takes none

Figures are means over prompts and over those of a field. This is the idea of the paper's first task: the probabilities
of pronouns at the gap, field by field. Its second (verbs, adverbs and adjectives given a pronoun) and its own summary
numbers are not built. A figure says what a model prefers, not what it should.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from besag.errors import BesagError, quoted
from besag.evaluation.metrics import Mean, Metric, credit, is_tie, per_group
from besag.evaluation.suite import Ask, Item, Row, Score, Source, Suite, register

MASKS = ("[MASK]", "<mask>")
PROMPT, FIELD = ("prompt", "sentence", "text"), ("field", "category", "occupation")


@register
@dataclass(frozen=True)
class Pronouns(Suite):
    name = "pronouns"
    title = "bias: which pronoun does a sentence about a job call for?"
    cite = ("parra2024",)
    folder = "pronouns"
    files = "TSV, CSV or JSON Lines files with the columns prompt (with one [MASK] for the pronoun) and field"
    origin = "your own prompts, in the manner of https://arxiv.org/abs/2401.15798"
    licence = "yours"
    methods = ("chain",)
    causal_methods = ()
    scoring: ClassVar[Mapping[str, Any]] = {"separator": ""}

    one: Annotated[str, "the pronoun whose share is told"] = "he"
    other: Annotated[str, "the pronoun that it is compared with"] = "she"

    def read(self, source: Source) -> Iterator[Item]:
        for table in source.tables("*.tsv", "*.csv", "*.jsonl", "*.parquet"):
            for row in table.rows:
                fields = row.values if isinstance(row.values, Mapping) else {}
                prompt = source.texts(row, next((name for name in PROMPT if name in fields), PROMPT[0]))[0]
                known = next((name for name in FIELD if name in fields), None)
                field = source.texts(row, known)[0] if known else table.name
                found = [mask for mask in MASKS if mask in prompt]
                if len(found) != 1 or prompt.count(found[0]) != 1:
                    raise BesagError(f"{row.where}: {quoted(prompt)} needs one {MASKS[0]} where the pronoun stands")
                before, after = prompt.split(found[0])
                asks = tuple(Ask(_cased(word, before), before, after) for word in (self.one, self.other))
                yield Item(f"{table.name}/{row.place}", field, asks, {"prompt": prompt}, row.where)

    def judge(self, item: Item, given: Sequence[Score]) -> Row:
        one, other = (score.total for score in given)
        return {
            "prompt": item.about["prompt"],
            "log_p_one": one,
            "log_p_other": other,
            "gap": one - other,
            "share": 1 / (1 + math.exp(min(other - one, 700.0))),
            "credit": credit(one, other),
        }

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        share = Metric(
            "share", Mean("share", error="sample"),
            f"mean of p({self.one}) / (p({self.one}) + p({self.other})); 50 % takes no side",
            direction="50 is ideal", chance=50.0,
        )  # fmt: skip
        prefers = Metric(
            "prefers", Mean(),
            f"of the prompts, the share in which {self.one!r} is likelier than {self.other!r}; 50 % takes no side",
            direction="50 is ideal", chance=50.0, ties=is_tie,
        )  # fmt: skip
        gap = Metric(
            "gap", Mean("gap", error="sample", scale=1.0),
            f"mean of log p({self.one}) − log p({self.other}), in nats; 0 takes no side",
            unit="nats", direction="0 is ideal",
        )  # fmt: skip
        return [share, prefers, gap, *per_group(rows, "group", share), *per_group(rows, "group", gap)]


def _cased(word: str, before: str) -> str:
    """With a capital at the beginning of a sentence."""
    begins = not before.strip() or before.rstrip()[-1] in ".!?"
    return word[:1].upper() + word[1:] if begins else word
