"""`besag joint`: which tokens stand at two or more places of a text, together."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.positions import Positions, positions
from besag.cli.writing import Row, check_output, choose_format, writer
from besag.errors import BesagError, nearest, require

if TYPE_CHECKING:
    from besag.language_model import LanguageModel

DPI = 150  # of a picture made of pixels
_CANDIDATES = "How many of the likeliest tokens of each place, or all; if not given, what the device can do."

Masked = Annotated[
    str, typer.Argument(metavar="TEXT", help="With [MASK] at the places, or with --position.", show_default=False)
]
Gold = Annotated[
    list[str] | None, o.of_input("--gold", help="The true token of a mask; one for each.", show_default=False)
]
Method = Annotated[str, o.of_method("--method", help="mlm, order, mrf, mrf_local, hcb, ag, stationary.")]
Weights = Annotated[
    str | None, o.of_method("--weights", help="ag: weigh contexts uniform or marginal (by their probability).")
]
Paper = Annotated[bool, o.of_method("--paper", help="ag: 40 plain steps, as in the paper.")]
Tolerance = Annotated[float | None, o.of_method("--tolerance", help="ag, stationary: on the residual.")]
Pivot = Annotated[str | None, o.of_method("--pivot", help="hcb: both, one, a token or its id.")]
Pivots = Annotated[
    int | None, o.of_method("--pivots", min=1, help="hcb: average over so many of the likeliest pivots.")
]
Direction = Annotated[str | None, o.of_method("--direction", help="order: both, ab, ba.")]
Candidates = Annotated[str | None, o.of_method("--candidates", help=_CANDIDATES, show_default=False)]
Outcomes = Annotated[
    Literal["text", "all"], o.of_method("--outcomes", help="Tokens of text only, or special ones too.")
]
Top = Annotated[int, o.of_result("--top", min=1, help="How many of the likeliest combinations.")]
Sample = Annotated[int | None, o.of_result("--sample", min=1, help="Draw so many instead.", show_default=False)]
Seed = Annotated[int, o.of_result("--seed", help="Of --sample.")]
Plot = Annotated[
    str | None, o.of_output("--plot", help="Also save a picture: FILE.png, .pdf or .svg.", show_default=False)
]


@guarded
def joint(
    text: Masked,
    position: Positions = None,
    gold: Gold = None,
    model: o.Model = None,
    device: o.Device = None,
    dtype: o.Dtype = None,
    revision: o.Revision = None,
    allow_pickle: o.AllowPickle = False,
    method: Method = "ag",
    weights: Weights = None,
    paper: Paper = False,
    tolerance: Tolerance = None,
    pivot: Pivot = None,
    pivots: Pivots = None,
    direction: Direction = None,
    candidates: Candidates = None,
    outcomes: Outcomes = "text",
    top: Top = 10,
    sample: Sample = None,
    seed: Seed = 0,
    plot: Plot = None,
    format: o.Format = None,
    output: o.Output = None,
    force: o.Force = False,
    batch_tokens: o.BatchTokens = None,
    progress: o.Progress = None,
) -> int:
    """The likeliest tokens at several places of a text, together.

    besag joint "The capital of [MASK] [MASK] is Paris."

    besag joint "The man is at the casino." --position man --position is --method stationary --plot joint.png

    Exit code 3: the construction did not converge (stderr says how far it came).
    """
    out = writer(choose_format(format, output), output, force)
    if plot is not None:
        check_plot(plot, force)
    given = {
        "weights": weights, "paper": paper or None, "tolerance": tolerance, "direction": direction, "top": pivots,
        "pivot": int(pivot) if pivot and pivot.isdecimal() else pivot,
    }  # fmt: skip
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}

    import besag

    lm = besag.load(
        model, device=device, dtype=dtype, revision=revision, allow_pickle=allow_pickle, batch_tokens=batch_tokens,
        progress=progress,
    )  # fmt: skip
    if plot is not None:
        refuse_other_than_two(lm, text, position, "--plot")
    found: Any = lm.joint(
        text, positions(position), method, outcomes=outcomes, candidates=size(candidates), gold=gold, **options
    )
    for row in rows(found, top) if sample is None else draws(found, sample, seed):
        out.write(row, {})
    out.close()
    if plot is not None:
        found.plot().figure.savefig(plot, dpi=DPI)
    say(" · ".join(facts(found)))
    return 0 if found.status == "ok" else UNSCORED


def size(candidates: str | None) -> int | str:
    """How large --candidates wants the sets of outcomes."""
    if candidates is None:
        return "auto"
    if candidates.isdecimal() and int(candidates) > 0:
        return int(candidates)
    if candidates not in ("all", "auto"):
        guess = nearest(candidates, ("all", "auto"))
        raise BesagError(f"--candidates {candidates!r}: say a number of tokens, all or auto.{guess}")
    return candidates


def check_plot(path: str, force: bool) -> None:
    """May the picture be drawn and saved? Asked before the work begins."""
    check_output(path, force)
    require("matplotlib", extra="plot").use("Agg")
    kinds = require("matplotlib.backend_bases", extra="plot").FigureCanvasBase.get_supported_filetypes()
    ending = os.path.splitext(path)[1].lower().removeprefix(".")
    if ending not in kinds:
        raise BesagError(f"--plot {path!r}: a picture ends in .png, .pdf or .svg.{nearest(ending, kinds)}")


def refuse_other_than_two(lm: LanguageModel, text: str, position: list[str] | None, what: str) -> None:
    from besag.places.places import find

    number = len(find(lm.vocabulary, text, positions(position), lm.conditionals.max_length).at)
    if number != 2:
        raise BesagError(
            f"{what} takes two places, and {text!r} is asked at {number}: name two of them with --position"
        )


def rows(found: Any, top: int) -> Iterator[Row]:
    """The likeliest combinations, one a row: of two places a and b, of more token_1, token_2 …"""
    for one in found.top(top):
        yield _row(found, one.tokens if hasattr(one, "tokens") else one[:2], one.prob, one.log_prob)


def draws(found: Any, n: int, seed: int) -> Iterator[Row]:
    """Combinations drawn from the joint, one a row."""
    for tokens in found.sample(n, seed):
        log_prob = found.log_prob(*tokens)
        yield _row(found, tokens, math.exp(log_prob), log_prob)


def _row(found: Any, tokens: tuple[str, ...], prob: float, log_prob: float) -> Row:
    pair = len(tokens) == 2
    names = ("a", "b") if pair else [f"token_{place}" for place in range(1, len(tokens) + 1)]
    text = found.text(*tokens) if pair else found.text(tokens)
    return {**dict(zip(names, map(str, tokens), strict=True)), "prob": prob, "log_prob": log_prob, "text": text}


def facts(found: Any) -> list[str]:
    """What the rows are, of a pair or of a block."""
    from besag.joints import block_show, pair_show

    return pair_show.facts(found) if len(found.places.at) == 2 else block_show.facts(found)
