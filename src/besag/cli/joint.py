"""`besag joint`: which tokens stand at two or more places of a text, together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import GivenModelOptions, PlotOptions, RunOptions, grouped
from besag.cli.positions import Positions, positions
from besag.cli.settings import ConstructionOptions
from besag.errors import BesagError, nearest, quoted
from besag.files.encoding import Row

if TYPE_CHECKING:
    from besag.joints.block import BlockJoint
    from besag.joints.pair import PairJoint
    from besag.language_model import LanguageModel

DIGITS = 10  # of any number of tokens
MOST_ROWS = 1_000_000
_CANDIDATES = "How many of the likeliest tokens of each place, or all; if not given, what the device can do."

Masked = Annotated[
    str, typer.Argument(metavar="TEXT", help="With [MASK] at the places, or with --position.", show_default=False)
]
Gold = Annotated[
    list[str] | None, o.of_input("--gold", help="The true token of a mask; one for each.", show_default=False)
]
Candidates = Annotated[str | None, o.of_method("--candidates", help=_CANDIDATES, show_default=False)]
Outcomes = Annotated[
    Literal["text", "all"], o.of_method("--outcomes", help="Tokens of text only, or special ones too.")
]
Top = Annotated[int, o.of_result("--top", min=1, max=MOST_ROWS, help="How many of the likeliest combinations.")]
Sample = Annotated[
    int | None, o.of_result("--sample", min=1, max=MOST_ROWS, help="Draw so many instead.", show_default=False)
]
Seed = Annotated[int, o.of_result("--seed", help="Of --sample.")]


@dataclass(frozen=True)
class JointOptions:
    """Over which tokens a joint is built."""

    candidates: Candidates = None
    outcomes: Outcomes = "text"

    @property
    def size(self) -> int | str:
        """How large --candidates wants the sets of outcomes."""
        if self.candidates is None:
            return "auto"
        if self.candidates.isdecimal() and len(self.candidates) <= DIGITS and int(self.candidates) > 0:
            return int(self.candidates)
        if self.candidates not in ("all", "auto"):
            guess = nearest(self.candidates, ("all", "auto"))
            raise BesagError(f"--candidates {quoted(self.candidates)}: say a number of tokens, all or auto.{guess}")
        return self.candidates


@guarded
@grouped
def joint(
    text: Masked,
    model: GivenModelOptions,
    method: ConstructionOptions,
    joint: JointOptions,
    output: PlotOptions,
    run: RunOptions,
    position: Positions = None,
    gold: Gold = None,
    top: Top = 10,
    sample: Sample = None,
    seed: Seed = 0,
) -> int:
    """Compute the joint distribution of masked positions.

    Exit code 3: the construction did not converge (stderr reports the residual).

    Example:
        besag joint "The capital of [MASK] [MASK] is Paris."
    """
    out = output.open()
    options = method.options()
    lm = model.load(run.progress)
    if output.plot is not None:
        refuse_other_than_two(lm, text, position, "--plot")
    found: Any = lm.joint(
        text, positions(position), method.method, outcomes=joint.outcomes, candidates=joint.size, gold=gold, **options
    )
    for row in rows(found, top) if sample is None else draws(found, sample, seed):
        out.write(row, {})
    out.close()
    output.save(found)
    say(" · ".join(found.facts))
    return 0 if found.status == "ok" else UNSCORED


def refuse_other_than_two(lm: LanguageModel, text: str, position: list[str] | None, what: str) -> None:
    from besag.places.places import find

    number = len(find(lm.vocabulary, text, positions(position), lm.conditionals.max_length).at)
    if number != 2:
        raise BesagError(
            f"{what} takes two places, and {quoted(text)} is asked at {number}: name two of them with --position"
        )


def rows(found: PairJoint | BlockJoint, top: int) -> Iterator[Row]:
    """The likeliest combinations, one a row: of two places a and b, of more token_1, token_2 …"""
    for one in found.top(top):
        yield _row(one.tokens, one.prob, one.log_prob, one.text)


def draws(found: PairJoint | BlockJoint, n: int, seed: int) -> Iterator[Row]:
    """Combinations drawn from the joint, one a row."""
    for tokens in found.sample(n, seed):
        log_prob = found.log_prob(*tokens)
        yield _row(tokens, math.exp(log_prob), log_prob, found.text(*tokens))


def _row(tokens: Sequence[str], prob: float, log_prob: float, text: str) -> Row:
    names = ("a", "b") if len(tokens) == 2 else [f"token_{place}" for place in range(1, len(tokens) + 1)]
    return {**dict(zip(names, map(str, tokens), strict=True)), "prob": prob, "log_prob": log_prob, "text": text}
