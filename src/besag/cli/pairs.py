"""`besag pairs`: the study of joint distributions on the texts of a file, one pair of places after the other."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from besag.cli import options as o
from besag.cli.config import Config
from besag.cli.exits import INTERRUPTED, UNSCORED, CtrlC, guarded, say
from besag.cli.groups import LayoutOptions, ModelOptions, RunOptions, grouped
from besag.cli.joint import Outcomes
from besag.cli.settings import ConstructionsOptions
from besag.errors import BesagError, require
from besag.files.inputs import Layout, file_input, records

if TYPE_CHECKING:
    from besag.joints import Construction
    from besag.language_model import LanguageModel
    from besag.study.folder import Folder

# Pairs whose questions run together. With a few hundred candidates a pair fills a batch or two by itself.
BLOCK = {"cpu": 16, "mps": 64, "cuda": 256}

_PAIRS = "random, contiguous (neighbours) or distance (see --distances); if not given, random and contiguous. Repeat."
_CANDIDATES = "Only so many of the likeliest tokens of each place; if not given, the whole vocabulary."

File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE", help="The texts, in any format `besag score` reads; - is stdin.", show_default=False
    ),
]
Into = Annotated[
    str | None, o.of_output("--output", "-o", help="The folder of the study; it goes on there.", show_default=False)
]
Again = Annotated[
    str | None, o.of_output("--report", help="Only write the report of a study's folder anew.", show_default=False)
]
Pairs = Annotated[list[str] | None, o.of_method("--pairs", help=_PAIRS, show_default=False)]
Distances = Annotated[str | None, o.of_method("--distances", help="In tokens: 1,2,4,8.", show_default=False)]
PerText = Annotated[int, o.of_method("--per-text", min=1, help="Pairs of each kind for each text.")]
Candidates = Annotated[int | None, o.of_method("--candidates", min=2, help=_CANDIDATES, show_default=False)]
Seed = Annotated[int, o.of_method("--seed", help="Of the places drawn.")]
Texts = Annotated[int | None, o.of_input("--limit", min=1, help="At most N texts.", show_default=False)]


@dataclass(frozen=True)
class PairsOptions:
    """Which pairs of places are studied, and over which tokens."""

    pairs: Pairs = None
    distances: Distances = None
    per_text: PerText = 1
    candidates: Candidates = None
    outcomes: Outcomes = "text"
    seed: Seed = 0

    def of_study(self) -> dict[str, Any]:
        """As arguments of `study`."""
        kinds, apart = _kinds(self.pairs, self.distances)
        return {
            "pairs": kinds, "distances": apart, "per_text": self.per_text, "seed": self.seed,
            "outcomes": self.outcomes, "candidates": self.candidates or "all",
        }  # fmt: skip


@guarded
@grouped
def pairs(
    model: ModelOptions,
    method: ConstructionsOptions,
    drawn: PairsOptions,
    rows: LayoutOptions,
    run: RunOptions,
    file: File = None,
    output: Into = None,
    report: Again = None,
    limit: Texts = None,
    config: Config = None,
) -> int:
    """Benchmark joint constructions on a corpus.

    Writes every pair of positions (pairs.jsonl, pairs.parquet), tables with intervals and p-values, and a plot. Run the
    same command to continue an interrupted study; --report FOLDER only rewrites the tables. Exit code 3: some pairs
    were not measured (see "status").

    Example:
        besag pairs corpus.txt --limit 100 --candidates 100 -o study
    """
    from besag.study.folder import Folder

    for module, extra in (("matplotlib", "plot"), ("pyarrow", "bulk")):
        require(module, extra)  # known before the work, not after it
    if report is not None:
        if file is not None or output is not None:
            raise BesagError("--report FOLDER stands alone: it computes nothing")
        return _tell(Folder(report))
    if file is None or output is None:
        raise BesagError("give a FILE of texts and --output FOLDER (besag pairs --help)")
    options = drawn.of_study()
    constructions = method.chosen()
    texts = _texts(file, rows.layout(), limit)

    lm = model.load(False)
    folder = Folder(output)
    about = {**_about(lm, texts, constructions), **options, "file": file}
    try:
        finished = _run(lm, texts, {**options, "constructions": constructions}, folder, about, run.progress)
    finally:
        folder.close()
    return _tell(folder) if finished else INTERRUPTED


def _run(
    lm: LanguageModel,
    texts: list[str],
    options: dict[str, Any],
    folder: Folder,
    about: dict[str, Any],
    progress: bool | None,
) -> bool:
    """All pairs that are not done yet, each written as soon as it is; False after Ctrl-C or SIGTERM."""
    from tqdm.auto import tqdm

    from besag.study.pair_sampling import schemes
    from besag.study.pairs import study

    engine, block = lm.engine, 1 if options["candidates"] == "all" else BLOCK[lm.conditionals.device.type]
    done, batches = folder.begin(about)
    engine.repeat(batches)
    total = len(texts) * len(schemes(options["pairs"], options["distances"])) * options["per_text"]
    if done:
        say(f"{done:,} of {total:,} pairs are there already")
    if options["candidates"] == "all" and done < total:
        width = lm.conditionals.width
        say(f"every pair runs 2 × {width:,} sequences, for the whole vocabulary; --candidates 200 runs about 450")
    hidden = None if progress is None else not progress
    ctrl_c = CtrlC()
    with (
        ctrl_c.watched(),
        tqdm(total=total, initial=done, unit="pair", file=sys.stderr, dynamic_ncols=True, disable=hidden) as bar,
    ):
        try:
            for row in study(engine, texts, skip=done, block=block, **options):
                with ctrl_c.held_back():
                    folder.append(row)
                    done += 1
                    if done % block == 0 or done == total:
                        folder.note(done, engine.found)
                bar.update()
        except KeyboardInterrupt:
            bar.close()
            say(f"interrupted after {done:,} of {total:,} pairs; the same command goes on")
            return False
    return True


def _tell(folder: Folder) -> int:
    """Write the report's files and print its tables."""
    require("matplotlib", extra="plot").use("Agg")
    report = folder.report()
    folder.write(report)
    print(report)
    say(f"in {folder.path}: pairs.parquet, table.tsv, differences.tsv, nll-by-distance.png")
    unmeasured = sum(report.skipped.values())
    if unmeasured:
        reasons = ", ".join(f"{count:,} {status}" for status, count in report.skipped.items())
        say(f"{unmeasured:,} of {len(report.rows):,} pairs were not measured: {reasons}")
    for name, count in report.unfinished.items():
        say(f"{name} did not converge in {count:,} of {len(report.measured):,} pairs; pairs.jsonl says how far it came")
    return UNSCORED if unmeasured or report.unfinished else 0


def _kinds(pairs: list[str] | None, distances: str | None) -> tuple[list[str], list[int]]:
    from besag.study.pair_sampling import DISTANCES, schemes
    from besag.study.pairs import PAIRS

    kinds = list(pairs or PAIRS)
    schemes(kinds)  # a wrong name is found before the model is loaded
    if "distance" not in kinds:
        if distances is not None:
            raise BesagError(f"--distances {distances} needs --pairs distance")
        return kinds, []
    parts = (distances or ",".join(map(str, DISTANCES))).split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise BesagError(f"--distances {distances!r}: write numbers of tokens with commas between, as in 1,2,4,8")
    return kinds, [int(part) for part in parts]


def _texts(file: str, layout: Layout, limit: int | None) -> list[str]:
    return [record.text for record in records(file_input(file, layout), limit=limit) if record is not None]


def _about(lm: LanguageModel, texts: list[str], constructions: list[Construction]) -> dict[str, Any]:
    """What a study must not change while it goes on."""
    import besag
    from besag.study.folder import checksum

    return {
        "besag": besag.__version__,
        "model": lm.name,
        "dtype": lm.dtype,
        "vocabulary": lm.conditionals.width,
        "constructions": [one.label for one in constructions],
        "texts": len(texts),
        "sha256": checksum(texts),
    }
