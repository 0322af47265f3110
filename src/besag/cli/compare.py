"""`besag compare`: every way to build the joint of two places of a text, by every metric."""

from __future__ import annotations

from typing import Any

from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import GivenModelOptions, PlotOptions, RunOptions, grouped
from besag.cli.joint import Gold, JointOptions, Masked, refuse_other_than_two
from besag.cli.positions import Positions, positions
from besag.cli.settings import ConstructionsOptions


@guarded
@grouped
def compare(
    text: Masked,
    model: GivenModelOptions,
    method: ConstructionsOptions,
    joint: JointOptions,
    output: PlotOptions,
    run: RunOptions,
    position: Positions = None,
    gold: Gold = None,
) -> int:
    """Compare all joint constructions.

    Reports perplexity, distance from the model's conditionals and mutual information of two positions. Perplexity needs
    the original tokens: name positions of a text, or give --gold. The table format shows the main columns; the other
    formats have all of them. Exit code 3: a construction did not converge (see the column "status").

    Example:
        besag compare "The man is here." --position man --position is --candidates 20
    """
    out = output.open()

    constructions = method.chosen()
    lm = model.load(run.progress)
    refuse_other_than_two(lm, text, position, "besag compare")
    first: Any = lm.joint(text, positions(position), "mlm", outcomes=joint.outcomes, candidates=joint.size, gold=gold)
    found = first.compare(constructions)
    if output.on_screen:
        print(found)  # with its facts below
    else:
        for row in found.rows:
            out.write(row, {})
        out.close()
        say(" · ".join(found.facts))
    output.save(found)
    return 0 if found.status == "ok" else UNSCORED
