"""`besag marginals`: what may stand at each place of a text, given all the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import ContextOptions, GivenModelOptions, OutputOptions, RowsOptions, RunOptions, grouped
from besag.cli.side_by_side import apart
from besag.files.inputs import Record, records

if TYPE_CHECKING:
    from besag.scores.marginals import Marginals

Inputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="INPUT", show_default=False, help="A text, a file of texts, or - for stdin."),
]
Candidates = Annotated[
    str | None,
    o.of_result("--candidates", help="Words of one token, A,C,D …: only these columns.", show_default=False),
]
Outcomes = Annotated[
    Literal["text", "all"], o.of_result("--outcomes", help="Without --candidates: all tokens, or those of text.")
]
Wide = Annotated[bool, o.of_result("--wide", help="One row a place, one column a candidate.")]


@guarded
@grouped
def marginals(
    model: GivenModelOptions,
    rows: RowsOptions,
    around: ContextOptions,
    output: OutputOptions,
    run: RunOptions,
    input: Inputs = None,
    candidates: Candidates = None,
    outcomes: Outcomes = "all",
    wide: Wide = False,
    base: o.Base = "e",
) -> int:
    """Predict each position from all others.

    Each row is a position and a candidate token, with its effect: log p(candidate) − log p(original token).

    Example:
        besag marginals "The dog ran into the house." --candidates dog,cat --wide
    """
    shape, out = output.shape, output.open()
    sources = rows.sources(input, "marginals", output.output, keep=False, around=around)
    lm = model.load(run.progress)
    waiting: deque[Record] = deque()  # those whose marginals have not come back yet, in order

    def source() -> Iterator[Record]:
        for record in records(sources, skip=rows.skip, limit=rows.limit):
            if record is not None:
                waiting.append(record)
                yield record

    texts, contexts = apart(source(), tuple(around.columns))
    words = None if candidates is None else [word.strip() for word in candidates.split(",")]
    unasked = 0
    for found in lm.marginals(texts, words, outcomes=outcomes, base=base, **{**around.for_all, **contexts}):
        record = waiting.popleft()
        if found.status != "ok":
            unasked += 1
            say(f"{record.where}: {found.facts[0]}")
        elif shape == "table" and words is None:
            print(found)
        else:
            for row in [found.to_dict()] if shape == "jsonl" else _rows(found, wide):
                out.write({"text_id": record.number, **row}, {})
    out.close()
    return UNSCORED if unasked else 0


def _rows(found: Marginals, wide: bool) -> Iterator[dict[str, Any]]:
    effects = found.effects
    for row, place in enumerate(found.places.tolist()):
        about = {"place": place, "token": found.tokens[row]}
        values = found.log_probs[row].tolist()
        if wide:
            own = {"own_log_prob": float(found.own[row]), "rank": int(found.rank[row])}
            yield {
                **about,
                **own,
                "entropy": float(found.entropy[row]),
                **dict(zip(found.columns, values, strict=True)),
            }
            continue
        for name, value, effect in zip(found.columns, values, effects[row].tolist(), strict=True):
            yield {**about, "candidate": name, "log_prob": value, "effect": effect}
