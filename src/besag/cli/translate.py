"""`besag translate`: sources in, targets out."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from besag.cli import options as o
from besag.cli.config import Config
from besag.cli.exits import INTERRUPTED, UNSCORED, CtrlC, guarded, say
from besag.cli.groups import ModelOptions, RowsOptions, RunOptions, grouped
from besag.cli.score import ResumeOptions, about_model, command
from besag.cli.settings import settings
from besag.errors import BesagError
from besag.files.inputs import Record, records
from besag.files.progress import BLOCK, Resumable, Streamed

if TYPE_CHECKING:
    from besag.language_model import LanguageModel
    from besag.translation.translated import Translation, Translations

_INPUT = "A text, a file (text lines, TSV, CSV, JSON Lines, Parquet), or - for stdin, which is read as it comes."
_KERNEL = "How a masked translator writes: `besag methods` lists them; if not given, mask_predict."
_CHOOSE = "Among the targets of a source: own, length, mbr, judge, or a score (pll, chain …); own if not given."
_JUDGE = "A left-to-right translator, folder or hub name, that chooses (--choose judge)."
_TERM = "A word that every target must hold. Repeat."
_TERMS = "The name of the column with words that its target must hold, between semicolons."
_NBEST = "Targets of each source, a row each (JSON Lines: a list), as `besag rescore` reads them."
_TRACE = "Show the way of each target after 1, 2, 4, 8 … passes, on stderr, what changed in colour."

Inputs = Annotated[list[str] | None, typer.Argument(metavar="INPUT", help=_INPUT, show_default=False)]
KernelName = Annotated[str | None, o.of_method("--kernel", "-k", help=_KERNEL)]
Passes = Annotated[int | None, o.of_method("--passes", min=1, help="Forward passes to decode a target, at most.")]
Lengths = Annotated[int, o.of_method("--lengths", min=1, help="Likeliest lengths that are tried side by side.")]
Length = Annotated[int | None, o.of_method("--length", min=1, help="Tokens of a target, where none are predicted.")]
Draws = Annotated[int, o.of_method("--draws", min=1, help="Targets of each length, where tokens are drawn.")]
Restarts = Annotated[int, o.of_method("--restarts", min=0, help="Times that a target is decoded again in part.")]
NoiseShare = Annotated[float, o.of_method("--noise", min=0, max=1, help="That part: the share of its places.")]
Choose = Annotated[str | None, o.of_method("--choose", help=_CHOOSE)]
Judge = Annotated[str | None, o.of_method("--judge", help=_JUDGE)]
Utility = Annotated[Literal["chrf", "bleu"], o.of_method("--utility", help="Of --choose mbr.")]
EarlyStop = Annotated[bool, o.of_method("--early-stop", help="A target that a step did not change is done.")]
Mend = Annotated[bool, o.of_method("--mend-stutters", help="Predict tokens again that repeat the one before.")]
Terms = Annotated[list[str] | None, o.of_method("--term", help=_TERM, show_default=False)]
TermsColumn = Annotated[str | None, o.of_input("--terms-column", help=_TERMS)]
Beam = Annotated[int, o.of_method("--beam", min=1, help="Of a left-to-right translator; 1 is greedy.")]
Alpha = Annotated[float, o.of_method("--alpha", min=0, help="Its scores are log p / n^alpha.")]
Seed = Annotated[int, o.of_method("--seed", help="Of all draws.")]
NBest = Annotated[int, o.of_result("--nbest", "-n", min=1, help=_NBEST)]
Trace = Annotated[bool, o.of_result("--trace", help=_TRACE)]


@dataclass(frozen=True)
class DecodingOptions:
    """How targets are written and chosen."""

    kernel: KernelName = None
    passes: Passes = None
    lengths: Lengths = 1
    length: Length = None
    draws: Draws = 1
    restarts: Restarts = 0
    noise: NoiseShare = 0.3
    choose: Choose = None
    judge: Judge = None
    utility: Utility = "chrf"
    early_stop: EarlyStop = False
    mend_stutters: Mend = False
    beam: Beam = 5
    alpha: Alpha = 1.0
    set_: o.Set = None
    seed: Seed = 0

    def of_kernel(self) -> dict[str, Any]:
        if self.kernel is None and self.set_:
            raise BesagError("--set is an option of a kernel: say which with --kernel")
        [own] = settings("kernel", [self.kernel or "mask_predict"], self.set_).values()
        return own

    def of_verb(self, judge: LanguageModel | None) -> dict[str, Any]:
        """As arguments of `lm.translate`."""
        plain = {name: value for name, value in asdict(self).items() if name not in ("set_", "judge")}
        return {**plain, "judge": judge, **self.of_kernel()}


@guarded
@grouped
def translate(
    model: ModelOptions,
    decoding: DecodingOptions,
    rows: RowsOptions,
    output: ResumeOptions,
    run: RunOptions,
    input: Inputs = None,
    term: Terms = None,
    terms_column: TermsColumn = None,
    nbest: NBest = 1,
    trace: Trace = False,
    config: Config = None,
) -> int:
    """Translate by iterative refinement or beam search.

    Exit code 3: some sources were not translated (see the column "status"). Use --resume to continue an interrupted
    run.

    Example:
        besag translate "Zwei Hunde laufen am Strand." --model runs/translator/model
    """
    decoding.of_kernel()  # a wrong name is told before anything is loaded
    shape = output.shape
    out = output.begin(input or ["-"], rows.text)
    sources = rows.sources(input, "translate", output.output, keep=True)
    lm = model.load(run.progress)
    judge = None if decoding.judge is None else _judge(model, decoding.judge)
    work = Translating(lm, decoding.of_verb(judge), out, Shape(shape, nbest), trace)
    work.terms = Wanted(tuple(term or ()), terms_column) if term or terms_column else None
    if isinstance(out, Resumable):
        about = {
            "besag": _version(), "inputs": [source.fingerprint() for source in sources], "model": about_model(lm),
            "judge": None if judge is None else about_model(judge), "format": shape, "nbest": nbest, "term": term,
            "terms_column": terms_column, **asdict(decoding), **asdict(rows),
            "spreadsheet_safe": output.spreadsheet_safe,
        }  # fmt: skip
        work.begin(about)
    if not work.through(records(sources, skip=rows.skip, limit=rows.limit, done=work.done)):
        skip = f"--skip {rows.skip + work.done} (and --output another file)"
        say(f"interrupted after {work.done} rows; go on with {command() if isinstance(out, Resumable) else skip}")
        return INTERRUPTED
    say(" · ".join(work.facts))
    return UNSCORED if work.failed else 0


def _judge(model: ModelOptions, name: str) -> LanguageModel:
    import besag

    return besag.load(name, device=model.device, dtype=model.dtype, progress=False)


def _version() -> str:
    import besag

    return besag.__version__


@dataclass(frozen=True)
class Wanted:
    """Words that targets must hold."""

    all: tuple[str, ...]
    column: str | None

    def of(self, record: Record) -> list[str]:
        if self.column is None:
            return [*self.all]
        if self.column not in record.others:
            raise BesagError(f"{record.where} has no column {self.column!r} (--terms-column)")
        said = str(record.others[self.column] or "")
        return [*self.all, *(one.strip() for one in said.split(";") if one.strip())]


@dataclass(frozen=True)
class Shape:
    """How translations are written: as rows that a reader wants, or as lists that `besag rescore` reads."""

    format: str
    nbest: int

    def rows(self, record: Record, found: Translation) -> Iterator[dict[str, object]]:
        about = {"utt": str(record.number), "source": record.text}
        if self.format == "jsonl" and self.nbest > 1:
            hyps = [{"rank": rank, **asdict(one)} for rank, one in enumerate(found.hypotheses, 1)]
            yield {**about, "hyps": hyps, "status": str(found.status)}
            return
        ranks = range(max(1, len(found.hypotheses)))
        for rank in ranks:
            best = found.hypotheses[rank] if found.hypotheses else None
            yield {
                **about, **({"rank": rank + 1} if self.nbest > 1 else {}), "text": best.text if best else "",
                "score": best.score if best else None, "tokens": best.length if best else None,
                "passes": best.passes if best else 0, "status": str(found.status),
            }  # fmt: skip


class Translating:
    """All records, block by block."""

    def __init__(
        self, lm: LanguageModel, options: Mapping[str, Any], out: Resumable | Streamed, shape: Shape, trace: bool
    ) -> None:
        self.lm, self.options, self.out, self.shape, self.trace = lm, options, out, shape, trace
        self.terms: Wanted | None = None
        self.block = BLOCK[lm.conditionals.device.type]
        self.done = self.failed = 0
        self.facts: list[str] = []
        self.ctrl_c = CtrlC()

    def begin(self, settings: Mapping[str, Any]) -> None:
        state = self.out.begin(settings)
        self.lm.engine.repeat(None if state is None else state["batches"])
        if state is not None:
            self.done, self.failed = state["rows"], state["failed"]

    def through(self, found: Iterable[Record | None]) -> bool:
        """Translate and write all records; False after Ctrl-C."""
        waiting: list[Record] = []
        with self.ctrl_c.whole(self.out) as told:
            for record in found:
                if record is not None:
                    waiting.append(record)
                if waiting and (record is None or (self.done + len(waiting)) % self.block == 0):
                    self._block(waiting)
                    waiting = []
            if waiting:
                self._block(waiting)
        return told.finished

    def _block(self, some: list[Record]) -> None:
        terms = None if self.terms is None else [self.terms.of(record) for record in some]
        texts = [record.text for record in some]
        found = self.lm.translate(texts, nbest=self.shape.nbest, terms=terms, trace=self.trace, **self.options)
        with self.ctrl_c.held_back():
            for record, one in zip(some, found.rows, strict=True):
                for row in self.shape.rows(record, one):
                    self.out.write(row, record.others)
                self.failed += one.status != "ok"
            self.done += len(some)
            if self.done % self.block == 0:
                state = {"rows": self.done, "failed": self.failed, "batches": self.lm.engine.found}
                self.out.end_block(state)
            self.out.flush()
        self._tell(found)

    def _tell(self, found: Translations) -> None:
        self.facts = [f"{self.done - self.failed:,} of {self.done:,} sources translated", *found.facts[-6:]]
        for at, row in enumerate(found.rows if self.trace else ()):
            if row.steps:
                told = found.coloured(at) if sys.stderr.isatty() else "\n".join(_plain(found, at))
                print(f"{told}\n", file=sys.stderr)


def _plain(found: Translations, at: int) -> Iterator[str]:
    from besag.translation.tracing import marked

    for step in found.trace(at):
        yield f"{step.passes:>4}  {marked(step)}"
