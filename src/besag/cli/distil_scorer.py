"""`besag distil-scorer`: from a model and texts to the same model with a one-pass scorer."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from besag.cli import options as o
from besag.cli.exits import INTERRUPTED, CtrlC, at_end, guarded, say
from besag.cli.groups import RowsOptions, RunOptions, grouped
from besag.errors import BesagError, quoted
from besag.files.encoding import Row
from besag.files.folders import whole_folder
from besag.files.inputs import Input, records
from besag.files.writing import table

if TYPE_CHECKING:
    from besag.language_model import LanguageModel
    from besag.scores.distilling import Figures, Speed
    from besag.scores.regression import Regression
    from besag.scores.terms import Kept

_TEXTS = "A file of texts (text lines, TSV, CSV, JSON Lines, Parquet; packed or not), or a text. Repeat."
_INTO = "Folder of the model with its scorer; beside it FOLDER.terms.jsonl, what the teacher said."
_SENTENCES = "Cut each text at the ends of its sentences."
_LONGEST = "Leave out texts of more words: the teacher's work grows with the square of the length."
_HELD_OUT = "Texts, the last ones, to judge by."

Inputs = Annotated[list[str], typer.Argument(metavar="TEXTS…", help=_TEXTS, show_default=False)]
Teacher = Annotated[
    str | None, o.of_model("--teacher", "-t", help="A folder, a hub name; if not given, the embedded model.")
]
Into = Annotated[str, o.of_output("--output", "-o", help=_INTO, show_default=False)]
Sentences = Annotated[bool, o.of_input("--sentences/--whole", help=_SENTENCES)]
Longest = Annotated[int, o.of_input("--longest", min=1, help=_LONGEST)]
HeldOut = Annotated[int, o.of_input("--held-out", min=20, help=_HELD_OUT)]


@dataclass(frozen=True)
class TeacherOptions:
    """Who is asked, and how it is loaded."""

    teacher: Teacher = None
    device: o.Device = None
    dtype: o.Dtype = None
    revision: o.Revision = None
    batch_tokens: o.BatchTokens = None

    def load(self, progress: bool | None) -> LanguageModel:
        import besag

        return besag.load(
            self.teacher, device=self.device, dtype=self.dtype, revision=self.revision, batch_tokens=self.batch_tokens,
            progress=progress,
        )  # fmt: skip


@guarded
@grouped
def distil_scorer(
    input: Inputs,
    teacher: TeacherOptions,
    rows: RowsOptions,
    run: RunOptions,
    output: Into,
    sentences: Sentences = False,
    longest: Longest = 60,
    held_out: HeldOut = 300,
    force: o.Force = False,
) -> int:
    """Fit a one-pass PLL estimator.

    Writes a copy of the teacher with the estimator, for score --method maskless. The teacher scores all texts first;
    its scores are kept in FOLDER.terms.jsonl, so running the same command again continues an interrupted run.

    Example:
        besag distil-scorer corpus.txt --limit 5000 -o small-en-scorer
    """
    folder = _free(output, force)
    sources = rows.sources(input, "distil-scorer", None, keep=False)
    lm = teacher.load(run.progress)

    from besag.scores import distilling
    from besag.scores.regression import view_of

    view_of(lm.conditionals)
    if getattr(lm.conditionals, "folder", None) is None:
        raise BesagError(f"{quoted(lm.name)} lies in no folder that could be copied")
    texts = list(dict.fromkeys(_texts(sources, rows, sentences, longest)))
    _enough(len(texts), held_out)
    kept = _kept(lm, f"{os.path.normpath(output)}.terms.jsonl", force)
    at_end(kept.close)
    if not _ask_teacher(lm, kept, texts):
        say(f"interrupted after {len(kept.terms)} texts; the same command goes on from there")
        return INTERRUPTED
    learn, judge = distilling.held_out(kept.of(texts), held_out)
    found, penalty = distilling.teach(lm.engine, learn)
    distilling.use(lm.engine, found)
    figures, speed = distilling.judge(lm.engine, judge), distilling.race(lm.engine, judge)
    told = _told(figures, speed)
    facts = {
        "teacher": lm.name,
        "learned from": f"{len(learn):,} texts, {sum(map(len, learn.values())):,} tokens",
        "judged by": f"{len(judge):,} held-out texts, {sum(map(len, judge.values())):,} tokens",
        "asked by": "twins: a hidden copy beside each token" if found.view == "twins" else "the shown tokens alone",
        "penalty": f"{penalty:g}",
        "device": f"{lm.conditionals.device}, {lm.dtype}",
    }
    _write(lm, found, folder, _card(facts, told))
    print(told)
    say(f"{folder} is {lm.name} with a scorer: besag score … --model {folder} --method maskless")
    return 0


def _free(output: str, force: bool) -> Path:
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise BesagError(f"{quoted(output)} is a file: choose another --output")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise BesagError(f"{quoted(output)} exists already: choose another --output, or say --force to write over it")
    return folder


def _enough(texts: int, held_out: int) -> None:
    """Reject too few texts before the teacher scores any and a file is written."""
    from besag.scores.distilling import FEWEST

    if texts < FEWEST + held_out:
        raise BesagError(
            f"there are {texts:,} distinct texts, and --held-out {held_out} of them are for judging: give at least "
            f"{FEWEST + held_out:,}, and better some thousands, or hold out fewer"
        )


def _texts(sources: list[Input], rows: RowsOptions, cut: bool, longest: int) -> Iterator[str]:
    from besag.training.data.sentences import sentences

    count = 0
    for record in records(sources, skip=rows.skip):
        whole = "" if record is None else record.text
        for text in [whole[start:end] for start, end in sentences(whole)] if cut else [whole]:
            if text.strip() and len(text.split()) <= longest:
                yield text.strip()
                count += 1
                if count == rows.limit:
                    return


def _kept(lm: LanguageModel, path: str, force: bool) -> Kept:
    from besag.cli.score import about_model
    from besag.scores.terms import Kept

    about = about_model(lm)
    about.pop("device")  # terms are the same wherever they are computed
    return Kept(path, {"teacher": about, "method": "pll"}, force=force)


def _ask_teacher(lm: LanguageModel, kept: Kept, texts: list[str]) -> bool:
    """Score what has no terms yet, each as soon as it is there; False after Ctrl-C."""
    from besag.files.progress import BLOCK

    left = list(kept.missing(texts))
    block = BLOCK[lm.conditionals.device.type]
    bar = lm.engine.bar(len(left), "text")
    lm.engine.progress = False  # of each block
    ctrl_c = CtrlC()
    with ctrl_c.watched():
        try:
            for start in range(0, len(left), block):
                for one in lm.score(iter(left[start : start + block]), "pll"):
                    with ctrl_c.held_back():
                        kept.add(one)
                    bar.update()
                with ctrl_c.held_back():
                    kept.flush()
        except KeyboardInterrupt:
            return False
        finally:
            bar.close()
    return True


def _told(figures: dict[str, Figures], speed: Speed) -> str:
    shown: list[Row] = [
        {
            "method": name,
            "ρ of totals": f"{one.totals:.3f}",
            "ρ of means": f"{one.means:.3f}" if name != "length" else "",
            "ρ of tokens": f"{one.tokens:.3f}" if name != "length" else "",
            "mean error a token": f"{one.error:.3f}",
        }
        for name, one in figures.items()
    ]
    pace = (
        f"{speed.gain:.1f} times as fast as pll: {speed.maskless:,.1f} texts a second instead of {speed.pll:,.1f}, "
        f"at {speed.tokens:.0f} tokens a text"
    )
    return f"{table(shown)}\nρ: Spearman's, with pll on held-out texts\n{pace}"


def _card(facts: dict[str, str], told: str) -> str:
    lines = [f"- {name}: {value}" for name, value in facts.items()]
    return "\n".join(
        [
            "# A model with a one-pass scorer", "",
            "The weights are the teacher's, unchanged. `scorer.safetensors` beside them is a linear regression that "
            "estimates, from one pass over a text, each term log p(x_i | rest) of its pseudo-log-likelihood "
            "(`besag score --method maskless`). The estimate is no probability.", "",
            *lines, "", "```text", told, "```", "",
            "Made by `besag distil-scorer`, after the maskless scoring of Salazar et al. (2020).", "",
        ]
    )  # fmt: skip


def _write(lm: LanguageModel, found: Regression, folder: Path, card: str) -> None:
    """The teacher's files, the scorer and the card, all of them or nothing."""
    from besag.conditionals.checkpoint import SMALL_FILES, WEIGHT_FILES

    source = Path(lm.conditionals.folder)  # type: ignore[attr-defined]
    patterns = (*SMALL_FILES, *WEIGHT_FILES, "tilt.safetensors", "LICENSE*", "NOTICE*")
    files = sorted({file for pattern in patterns for file in source.glob(pattern) if file.is_file()})
    with whole_folder(folder) as draft:
        for file in files:
            shutil.copyfile(file, draft / file.name)
        found.save(draft)
        (draft / "README.md").write_text(card, encoding="utf-8")
