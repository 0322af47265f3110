"""Translation: targets beside references, by sacrebleu's BLEU and chrF, with what they cost and how they stutter.

    BLEU, chrF    sacrebleu's corpus figures with their usual settings, whose signatures are told; intervals by the
                  bootstrap over sentences; two runs are compared on the same draws (`besag eval compare`)
    stutter       words that repeat the word before, a thousand words
    passes        forward passes of the network for a source, over all targets that were tried
    latency       milliseconds for a source, on this machine, of all sources together or (`alone`) one at a time

How targets are written is said by the options, which are those of `lm.translate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from besag.errors import BesagError, quoted, require
from besag.evaluation.metrics import LOWER, Mean, Metric, Ratio, SumStatistic
from besag.evaluation.suite import Answer, Item, Row, Source, Suite, register
from besag.samplers.kernels.stutter import count


@register
@dataclass(frozen=True)
class Translation(Suite):
    name = "translation"
    title = "translations beside references: BLEU, chrF, stutter, passes, latency"
    cite = ("post2018", "popovic2015")
    folder = "translation"
    files = "tables (TSV, CSV, JSON Lines, Parquet) with the columns source and target"
    origin = "any parallel text, such as Multi30k or Tatoeba"
    licence = "that of the text"
    asked = "translations"
    methods = ()
    causal_methods = ()
    ties = "there are none"

    source: Annotated[str, "the column of the sources"] = "source"
    target: Annotated[str, "the column of the references"] = "target"
    kernel: Annotated[str | None, "of a masked translator; if none, mask_predict"] = None
    passes: Annotated[int | None, "of the network for a target, at most"] = None
    lengths: Annotated[int, "likeliest lengths that are tried"] = 1
    choose: Annotated[str | None, "among them: own, length, mbr, pll …"] = None
    early_stop: Annotated[bool, "a target that a step did not change is done"] = False
    mend_stutters: Annotated[bool, "predict tokens again that repeat the one before"] = False
    beam: Annotated[int, "of a left-to-right translator"] = 5
    alpha: Annotated[float, "its scores are log p / n^alpha"] = 1.0
    alone: Annotated[bool, "one source at a time, for latency"] = False
    seed: Annotated[int, "of all draws"] = 0

    def read(self, source: Source) -> Iterator[Item]:
        require("sacrebleu", extra="rescore")
        for table in source.tables("*.tsv", "*.csv", "*.jsonl", "*.parquet"):
            for row in table.rows:
                one, other = source.texts(row, self.source, self.target)
                for side, text in (("source", one), ("reference", other)):
                    if not text.strip():
                        raise BesagError(f"{row.where} has an empty {side}: {quoted(text)}. Leave such rows out")
                about = {"source": one.strip(), "reference": other.strip()}
                yield Item(f"{table.name}/{row.place}", table.name, (), about, row.where)

    def answers(self, lm: Any, items: Sequence[Item], method: Any, block: int | None = None) -> Iterator[Answer]:
        size = 1 if self.alone else block or len(items)
        for start in range(0, len(items), size):
            some = items[start : start + size]
            found = lm.translate([item.about["source"] for item in some], **self._asked(lm))
            each = 1000 * found.seconds / len(some)
            for item, row in zip(some, found, strict=True):
                yield Answer(item, (row, each), row.status)

    def _asked(self, lm: Any) -> dict[str, Any]:
        if lm.conditionals.sees == "left":
            return {"beam": self.beam, "alpha": self.alpha, "seed": self.seed}
        names = ("kernel", "passes", "lengths", "choose", "early_stop", "mend_stutters", "seed")
        return {name: getattr(self, name) for name in names}

    def judge(self, item: Item, given: Sequence[Any]) -> Row:
        row, each = given
        twice, pairs = count(row.text)
        return {
            **item.about, "text": row.text, "score": row.score, "passes": row.passes, "tried": row.tried,
            "repeated_words": twice, "words_after_words": pairs, "milliseconds": each,
        }  # fmt: skip

    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        latency = "for a source, on this machine"
        return [
            *(_corpus(name, rows) for name in ("BLEU", "chrF")),
            Metric("stutter", Ratio("repeated_words", "words_after_words", 1000.0),
                   "words that repeat the word before, a thousand words that have one", unit="‰", direction=LOWER),
            Metric("passes", Mean("passes", error="sample", scale=1.0), "forward passes of the network for a source",
                   unit="", direction=LOWER),
            Metric("latency", Mean("milliseconds", error="sample", scale=1.0), latency, unit="ms", direction=LOWER),
        ]  # fmt: skip


def _corpus(name: Literal["BLEU", "chrF"], rows: Sequence[Row]) -> Metric:
    from besag.rescoring.metrics import Translation as Counts

    counts = Counts("bleu" if name == "BLEU" else "chrf")

    def fit(some: Sequence[Row]) -> list[Row]:
        texts = [[str(row[side]) for row in some] for side in ("reference", "text")]
        return [{"counts": one} for one in counts.statistics(*texts)]

    fit(rows[:1])  # before which there is no signature
    return Metric(name, SumStatistic(counts.value, "counts"), f"sacrebleu, {counts.signature}", fit=fit, unit="")
