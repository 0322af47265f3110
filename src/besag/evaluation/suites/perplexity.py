"""Perplexity: what a model makes of a text, per token, word, character and byte, and which of these numbers is one.

Texts are lines. Over texts i with score t_i (nats) and m_i units (tokens, words, characters, bytes),

    R = Σ t_i / Σ m_i          perplexity exp(−R)          bits −R / log 2

    se(R)² = m / (m − 1) · Σ (t_i − R m_i)² / (Σ m_i)²      se(exp(−R)) = exp(−R) se(R)

R is a ratio over texts, the units that were drawn, so the tokens of one text need not be independent. Where the method
gives a probability (`chain`, `causal`), exp(−R) is a perplexity, over token sequences of the text's length; where it
gives none (`pll`), it is a pseudo-perplexity, usually far lower than the perplexity, which compares with no such;
a lower bound (`elbo`) gives an upper bound. Only units that all models share (words, characters, bytes) compare models
with different tokenizers. Words are separated by white space.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from besag.evaluation.metrics import LOWER, Metric, Ratio, groups, per_group
from besag.evaluation.suite import Ask, Item, Row, Score, Source, Suite, register
from besag.scores.score import n_bytes

UNITS = {"n_tokens": "token", "n_words": "word", "n_characters": "character", "n_bytes": "byte"}


@register
@dataclass(frozen=True)
class Perplexity(Suite):
    name = "perplexity"
    title = "a text of your own: perplexity and pseudo-perplexity per token, word, character and byte"
    cite = ("salazar2020",)
    folder = "lm_heldout"
    files = "text files (.txt, .tokens), a text a line; or a table with a column text"
    origin = "any held-out text, such as WikiText-2 (https://huggingface.co/datasets/Salesforce/wikitext)"
    licence = "that of the text"
    methods = ("pll", "chain")
    ties = "there are none"

    column: Annotated[str, "of a table: where the texts are"] = "text"

    def read(self, source: Source) -> Iterator[Item]:
        for table in source.tables("*.txt", "*.tokens", "*.tsv", "*.csv", "*.jsonl", "*.parquet"):
            for row in table.rows:
                text = row.values if isinstance(row.values, str) else source.texts(row, self.column)[0]
                if text.strip():
                    yield Item(f"{table.name}/{row.place}", table.name, (Ask(text.strip()),), {}, row.where)

    def judge(self, item: Item, given: Sequence[Score]) -> Row:
        [score] = given
        return {
            "text": score.text, "score": score.total, "n_tokens": len(score.tokens), "n_words": len(score.text.split()),
            "n_characters": len(score.text), "n_bytes": n_bytes(score.text), "n_unknown": score.unknown,
            "normalised": score.normalised,
        }  # fmt: skip

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        kind, what = _named(rows)
        several = len(groups(rows)) > 1
        tokens, words = (_perplexity(kind, what, unit) for unit in ("n_tokens", "n_words"))
        characters, *others = (_bits(kind, what, unit) for unit in ("n_characters", "n_bytes", "n_tokens"))
        each = [one for metric in (tokens, characters) if several for one in per_group(rows, "group", metric)]
        return [tokens, words, characters, *others, *each]


def _named(rows: Sequence[Row]) -> tuple[str, str]:
    """What the number is, by what its method says of itself."""
    normalised = str(rows[0]["normalised"])
    if not normalised:
        return "pseudo-", "of a score that is no probability, so it compares with other such scores alone"
    bound = "an upper bound of that " if "bound" in normalised else ""
    return "", f"{bound}of a probability over {normalised.removesuffix(' (a lower bound)')}"


def _perplexity(kind: str, what: str, unit: str) -> Metric:
    name, meaning = f"{kind}perplexity per {UNITS[unit]}", f"exp of nats per {UNITS[unit]}, {what}"
    return Metric(name, Ratio("score", unit, -1.0, exponential=True), meaning, unit="", direction=LOWER)


def _bits(kind: str, what: str, unit: str) -> Metric:
    name, meaning = f"{kind}bits per {UNITS[unit]}", f"−log₂ per {UNITS[unit]}, {what}"
    return Metric(name, Ratio("score", unit, -1 / math.log(2)), meaning, unit="bits", direction=LOWER)
