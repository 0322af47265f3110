"""`besag compare`: every way to build the joint of two places of a text, by every metric."""

from __future__ import annotations

from typing import Annotated, Any

from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.joint import (
    DPI,
    Candidates,
    Gold,
    Masked,
    Outcomes,
    Plot,
    check_plot,
    refuse_other_than_two,
    size,
)
from besag.cli.positions import Positions, positions
from besag.cli.writing import choose_format, writer

Methods = Annotated[
    list[str] | None,
    o.of_method("--method", help="Compare this one only; all if not given. Repeat for several.", show_default=False),
]


@guarded
def compare(
    text: Masked,
    position: Positions = None,
    gold: Gold = None,
    model: o.Model = None,
    device: o.Device = None,
    dtype: o.Dtype = None,
    revision: o.Revision = None,
    allow_pickle: o.AllowPickle = False,
    method: Methods = None,
    candidates: Candidates = None,
    outcomes: Outcomes = "text",
    plot: Plot = None,
    format: o.Format = None,
    output: o.Output = None,
    force: o.Force = False,
    batch_tokens: o.BatchTokens = None,
    progress: o.Progress = None,
) -> int:
    """Every construction of the joint of two places: how well it predicts the text and how near it is to the model.

    besag compare "The man is at the casino." --position man --position is

    Without tokens of its own at the places (masks, and no --gold) a text has no perplexity: what remains is the
    likeliest pair of each, its distance from the model's conditionals, and the mutual information.

    A table shows the columns that matter most; the other formats have all of them.

    Exit code 3: a construction did not converge (its status says how far it came).
    """
    shape = choose_format(format, output)
    out = writer(shape, output, force)
    if plot is not None:
        check_plot(plot, force)

    import besag
    from besag.joints import CONSTRUCTIONS

    for name in method or []:
        CONSTRUCTIONS.find(name)  # a wrong name is found before the work begins
    lm = besag.load(
        model, device=device, dtype=dtype, revision=revision, allow_pickle=allow_pickle, batch_tokens=batch_tokens,
        progress=progress,
    )  # fmt: skip
    refuse_other_than_two(lm, text, position, "besag compare")
    first: Any = lm.joint(text, positions(position), "mlm", outcomes=outcomes, candidates=size(candidates), gold=gold)
    found = first.compare(method)
    if shape == "table" and output is None:
        print(found)  # with its facts below
    else:
        for row in found.rows:
            out.write(row, {})
        out.close()
        say(" · ".join(found.facts()))
    if plot is not None:
        found.plot().figure.savefig(plot, dpi=DPI)
    return 0 if found.status == "ok" else UNSCORED
