"""`besag rescore`: hypotheses of another system, ranked anew."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from besag.cli import options as o
from besag.cli.config import Config
from besag.cli.exits import INTERRUPTED, UNSCORED, CtrlC, guarded, say
from besag.cli.groups import ModelsOptions, PlotOptions, RunOptions, grouped
from besag.cli.settings import MethodsOptions
from besag.errors import BesagError, quoted
from besag.files.writing import check_output, choose_format, claimed, write_rows, writer
from besag.results.tables import shown

if TYPE_CHECKING:
    from besag.rescoring.ledger import Scorer
    from besag.rescoring.lists import NBest
    from besag.rescoring.result import Rescoring

_NBEST = "A file or folder of hypotheses with scores: mlm-scoring, ESPnet, Kaldi, Moses, HyPoradise, JSON Lines, TSV."
_FORMAT = "Of NBEST; if not given, by what is in it."
_REF = "References, where NBEST has none: `id words…` a line, mlm-scoring's JSON; a line for each list (Moses)."
_DEV = "Tune λ on these hypotheses, in the same format, and freeze it."
_FOLDS = (
    "speaker: two folds by what stands before the first - or _ of an id; K: K folds of utterances. λ of each fold is "
    "tuned on all others."
)
_TUNE = "Tune λ on NBEST itself: to find a weight, not to judge by."
_SOURCES = "What was translated, in the format of --ref: for a model that is given it."
_WEIGHT = "λ of every method, or (repeated) of each in turn: frozen."
_MISSING = "Of hypotheses without a score: refuse them, or take −ln rank, or 0."
_SCORES = "Keep the scores of texts here, as they come: they are not made again, and a stopped run goes on."
_OUT = "The lists in their new order with their new scores, in the format of NBEST."
_REPORT = "Also save the table, or with --per its rows: .tsv, .csv, .jsonl or .parquet."
_LENGTH = "Divide a language model's score by nothing, by its tokens, or by ((5 + n) / 6)^ALPHA."

Nbest = Annotated[str, typer.Argument(metavar="NBEST", help=_NBEST, show_default=False)]
Formats = Literal["mlm-scoring", "espnet", "kaldi", "moses", "hyporadise", "jsonl", "tsv"]


@dataclass(frozen=True)
class ListOptions:
    """Where hypotheses and references are."""

    format: Annotated[Formats | None, o.of_input("--format", help=_FORMAT)] = None
    ref: Annotated[str | None, o.of_input("--ref", help=_REF, show_default=False)] = None
    dev: Annotated[str | None, o.of_input("--dev", help=_DEV, show_default=False)] = None
    dev_ref: Annotated[str | None, o.of_input("--dev-ref", help="References of --dev.", show_default=False)] = None
    sources: Annotated[str | None, o.of_input("--sources", help=_SOURCES, show_default=False)] = None
    dev_sources: Annotated[str | None, o.of_input("--dev-sources", help="Sources of --dev.", show_default=False)] = None
    missing_scores: Annotated[Literal["refuse", "zero", "rank"], o.of_input("--missing-scores", help=_MISSING)] = (
        "refuse"
    )
    casing: Annotated[
        Literal["keep", "lower", "upper", "sentence"], o.of_input("--casing", help="Of the text that is scored.")
    ] = "keep"
    full_stop: Annotated[bool, o.of_input("--full-stop", help="End the text that is scored with a full stop.")] = False

    def read(self, path: str, ref: str | None, sources: str | None) -> list[NBest]:
        from besag.rescoring.formats import lists_of

        return lists_of(path, self.format, ref, sources)


@dataclass(frozen=True)
class WeightOptions:
    """Where λ comes from, and what it multiplies."""

    weight: Annotated[list[float] | None, o.of_method("--weight", help=_WEIGHT, show_default=False)] = None
    folds: Annotated[str | None, o.of_method("--folds", metavar="speaker|K", help=_FOLDS, show_default=False)] = None
    tune: Annotated[bool, o.of_method("--tune", help=_TUNE)] = False
    combine: Annotated[bool, o.of_method("--combine", help="Also all methods together, a weight each.")] = False
    length: Annotated[Literal["none", "length", "gnmt"], o.of_method("--length", help=_LENGTH)] = "none"
    alpha: Annotated[float, o.of_method("--alpha", min=0.0, help="The power of GNMT's penalty.")] = 1.0
    metric: Annotated[
        Literal["wer", "cer", "bleu", "chrf", "ter"], o.of_method("--metric", help="Tuned and judged by.")
    ] = "wer"

    def chosen_folds(self) -> Literal["speaker"] | int | None:
        if self.folds is None:
            return None
        if self.folds == "speaker":
            return "speaker"
        if not re.fullmatch(r"[0-9]{1,9}", self.folds):
            raise BesagError(f"--folds {quoted(self.folds)}: give speaker, or a number of folds, at least 2")
        return int(self.folds)


@dataclass(frozen=True)
class ResultOptions:
    """What is written."""

    per: Annotated[
        Literal["system", "utterance", "weight"], o.of_result("--per", help="What a row of the result is.")
    ] = "system"
    output: Annotated[str | None, o.of_output("--output", "-o", help=_OUT, show_default=False)] = None
    report: Annotated[str | None, o.of_output("--report", help=_REPORT, show_default=False)] = None
    scores: Annotated[str | None, o.of_output("--scores", help=_SCORES, show_default=False)] = None
    plot: o.Plot = None
    force: o.Force = False

    def check(self, nbest: str, folder: bool, systems: int) -> None:
        """May all of it be written? Known before anything is scored."""
        if self.output is not None and systems > 1:
            raise BesagError("--output holds one ranking, and there are several: give one method and one model")
        for path in (self.output, self.report, self.scores):
            if path is not None and os.path.exists(path) and os.path.exists(nbest) and os.path.samefile(path, nbest):
                raise BesagError(f"{path!r} is the input: it is not written over")
        if self.output is not None and folder:
            if os.path.exists(self.output) and not self.force:
                raise BesagError(f"{self.output!r} exists already: choose another --output, or say --force")
        elif self.output is not None:
            claimed(self.output, self.force)
        if self.report is not None:
            check_output(self.report, self.force, "--report")
            choose_format(None, self.report)
        PlotOptions(plot=self.plot, force=self.force).check_plot()


@guarded
@grouped
def rescore(
    nbest: Nbest,
    model: ModelsOptions,
    scored: MethodsOptions,
    lists: ListOptions,
    weights: WeightOptions,
    out: ResultOptions,
    run: RunOptions,
    config: Config = None,
) -> int:
    """Rerank n-best lists.

    The new score is: original score + λ · language-model score. λ is given by --weight or tuned by --dev, --folds or
    --tune. Exit code 3: some lists contain a hypothesis that cannot be scored, and are unchanged.

    Example:
        besag rescore nbest.jsonl --dev dev.jsonl -o ranked.jsonl
    """
    from besag.rescoring.formats import FOLDERS, sniffed, write_nbest
    from besag.rescoring.rescore import Reading, refuse
    from besag.rescoring.rescore import run as rescored

    methods = scored.chosen()
    model.check()
    shape = lists.format or sniffed(nbest)
    found = lists.read(nbest, lists.ref, lists.sources)
    dev = None if lists.dev is None else lists.read(lists.dev, lists.dev_ref, lists.dev_sources)
    weight = None if weights.weight is None else weights.weight if len(weights.weight) > 1 else weights.weight[0]
    out.check(nbest, shape in FOLDERS, len(model.named) * len(methods) + weights.combine)
    folds = weights.chosen_folds()
    refuse(weight, dev, folds, weights.tune, len(model.named) * len(methods))
    scorers = _scorers(model, methods, run.progress)
    reading = Reading(
        lists.casing, lists.full_stop, weights.length, weights.alpha, lists.missing_scores, out.scores,
        say if run.progress is not False else None,
    )  # fmt: skip
    with CtrlC().watched():
        try:
            result = rescored(
                scorers, reading, found, weights.metric, weight, dev, folds, weights.tune, weights.combine,
                seed=scored.seed or 0,
            )  # fmt: skip
        except KeyboardInterrupt:
            say("interrupted" if out.scores is None else "interrupted; the same command goes on")
            return INTERRUPTED
    _show(result, out)
    if out.output is not None:
        write_nbest(result.reranked(), out.output, shape)
    return 0 if result.status.fine else UNSCORED


def _scorers(model: ModelsOptions, methods: Any, progress: bool | None) -> list[Scorer]:
    from besag.cli.side_by_side import pair
    from besag.rescoring.ledger import Scorer

    models = model.load_all(progress)
    return [
        Scorer(f"{one.label.model} {one.label.method}" if one.label.several_models else one.label.method,
               one.lm.engine, one.method)
        for one in pair(models, methods, {}, [None] * len(models), model.names)
    ]  # fmt: skip


def _show(result: Rescoring, out: ResultOptions) -> None:
    rows = result.table(out.per)
    if out.report is not None:
        write_rows(out.report, rows)
    PlotOptions(plot=out.plot, force=True).save(result)
    shape = choose_format(None, None)
    if shape == "table" and out.per == "system":
        print(result)
        return
    table = writer(shape, None, False)
    for row in rows:
        table.write(row, {})
    table.close()
    facts = shown(" · ".join(result.facts))
    print(f"\n{facts}" if shape == "table" else facts, file=sys.stdout if shape == "table" else sys.stderr)
