"""`besag compare`: every way to build the joint of two places of a text, by every metric."""

from __future__ import annotations

from typing import Annotated, Any

from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import ModelOptions, PlotOptions, RunOptions, grouped
from besag.cli.joint import At, Gold, JointOptions, Masked, positions, refuse_other_than_two

Methods = Annotated[
    list[str] | None,
    o.of_method("--method", help="Compare this one only; all if not given. Repeat for several.", show_default=False),
]


@guarded
@grouped
def compare(
    text: Masked,
    model: ModelOptions,
    joint: JointOptions,
    output: PlotOptions,
    run: RunOptions,
    at: At = None,
    gold: Gold = None,
    method: Methods = None,
) -> int:
    """Every construction of the joint of two places: how well it predicts the text and how near it is to the model.

    besag compare "The man is at the casino." --at man --at is

    Without tokens of its own at the places (masks, and no --gold) a text has no perplexity: what remains is the
    likeliest pair of each, its distance from the model's conditionals, and the mutual information.

    A table shows the columns that matter most; the other formats have all of them.

    Exit code 3: a construction did not converge (its status says how far it came).
    """
    out = output.open()

    from besag.joints import CONSTRUCTIONS

    for name in method or []:
        CONSTRUCTIONS.find(name)  # a wrong name is found before the work begins
    lm = model.load(run.progress)
    refuse_other_than_two(lm, text, at, "besag compare")
    first: Any = lm.joint(text, positions(at), "mlm", outcomes=joint.outcomes, candidates=joint.size, gold=gold)
    found = first.compare(method)
    if output.on_screen:
        print(found)  # with its facts below
    else:
        for row in found.rows:
            out.write(row, {})
        out.close()
        say(" · ".join(found.facts()))
    output.save(found)
    return 0 if found.status == "ok" else UNSCORED
