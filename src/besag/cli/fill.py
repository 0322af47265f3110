"""`besag fill`: the likeliest tokens for all masks of a text, together."""

from __future__ import annotations

from typing import Annotated

import typer

from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import GivenModelOptions, OutputOptions, RunOptions, grouped
from besag.cli.joint import MOST_ROWS, JointOptions
from besag.cli.settings import ConstructionOptions

MOST_BEAM = 10_000

Masked = Annotated[str, typer.Argument(metavar="TEXT", help="With one [MASK] or more.", show_default=False)]
K = Annotated[int, o.of_result("--k", "-k", min=1, max=MOST_ROWS, help="How many fillings.")]
Beam = Annotated[
    int | None,
    o.of_method(
        "--beam",
        min=1,
        max=MOST_BEAM,
        help="Search with so many hypotheses instead of comparing all.",
        show_default=False,
    ),
]
Drawn = Annotated[bool, o.of_result("--sample", help="Draw fillings from the joint instead of taking the likeliest.")]
Seed = Annotated[int, o.of_method("--seed", help="--sample: of the draws.")]


@guarded
@grouped
def fill(
    text: Masked,
    model: GivenModelOptions,
    method: ConstructionOptions,
    joint: JointOptions,
    output: OutputOptions,
    run: RunOptions,
    k: K = 5,
    beam: Beam = None,
    sample: Drawn = False,
    seed: Seed = 0,
) -> int:
    """Infill all masks jointly.

    stderr reports the candidate sets over which the infillings are the most probable, and whether the ranking is exact.
    Exit code 3: the joint did not converge.

    Example:
        besag fill "She put the [MASK] on the [MASK]."
    """
    out = output.open()

    options = method.options()
    lm = model.load(run.progress)
    found = lm.fill(
        text,
        k,
        method.method,
        candidates=joint.size,
        outcomes=joint.outcomes,
        beam=beam,
        sample=sample,
        seed=seed,
        **options,
    )
    if output.shape == "jsonl":
        out.write(found.to_dict(), {})
    else:
        for row in found.rows:
            tokens = {f"token_{place}": str(token) for place, token in enumerate(row.tokens, 1)}
            out.write({"text": row.text, "prob": row.prob, "log_prob": row.log_prob, **tokens}, {})
    out.close()
    say(" · ".join(found.facts))
    return 0 if found.status == "ok" else UNSCORED
