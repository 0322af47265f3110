"""`besag explain`: which tokens of a text a prediction rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import GivenModelOptions, PlotOptions, RowsOptions, RunOptions, grouped
from besag.cli.positions import Positions, positions
from besag.cli.settings import settings
from besag.errors import BesagError
from besag.files.inputs import records
from besag.results.words import counted

if TYPE_CHECKING:
    from besag.explanation.explanation import Explanation

Inputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="INPUT", show_default=False, help="A text, a file of texts, or - for stdin."),
]
Target = Annotated[
    list[str] | None,
    o.of_method(
        "--target",
        help="What fills the mask; if not given, the likeliest. Repeat for several masks.",
        show_default=False,
    ),
]
Classifier = Annotated[
    str | None,
    o.of_method("--classifier", help="Folder of a classifier: explain its label instead.", show_default=False),
]
Label = Annotated[
    str | None, o.of_method("--label", help="Which label; if not given, the one it gives.", show_default=False)
]
Method = Annotated[str, o.of_method("--method", help="marginalise, mask or delete: `besag methods` says more.")]
WithCurve = Annotated[bool, o.of_method("--curve", help="Measure faithfulness, too: hide what is important first.")]
Orders = Annotated[int, o.of_method("--orders", min=1, help="--curve: random orders to compare with.")]
Seed = Annotated[int, o.of_method("--seed", help="--curve: of the random orders.")]


@dataclass(frozen=True)
class ExplainOptions:
    """What is explained, and how."""

    target: Target = None
    classifier: Classifier = None
    label: Label = None
    method: Method = "marginalise"
    set_: o.Set = None
    curve: WithCurve = False
    orders: Orders = 20
    seed: Seed = 0

    def asked(self) -> dict[str, Any]:
        [(name, own)] = settings("explanation", [self.method], self.set_).items()
        head = None
        if self.classifier is not None:
            from besag.heads.loading import load_head

            head = load_head(self.classifier)
        return {
            "target": self.target, "classifier": head, "label": self.label, "method": name, "curve": self.curve,
            "orders": self.orders, "seed": self.seed, **own,
        }  # fmt: skip


@guarded
@grouped
def explain(
    method: ExplainOptions,
    model: GivenModelOptions,
    rows: RowsOptions,
    output: PlotOptions,
    run: RunOptions,
    input: Inputs = None,
    position: Positions = None,
) -> int:
    """Attribute a prediction to input tokens.

    Without a mask (and without --position) the pseudo-log-likelihood of the text is explained: what each token
    contributes to the prediction of all others. Each row is a token. Exit code 3: some texts could not be explained,
    see stderr.

    Example:
        besag explain "The capital of France is [MASK]." --target Paris
    """
    out = output.open()
    sources = rows.sources(input, "explain", output.output, keep=False)
    asked, where = method.asked(), positions(position)
    lm = model.load(run.progress)
    refused, done, faith = 0, 0, list[float]()
    for record in filter(None, records(sources, skip=rows.skip, limit=rows.limit)):
        try:
            found = lm.explain(record.text, positions=where, **asked)
        except BesagError as why:
            if len(sources) == 1 and sources[0].kind == "text":
                raise
            refused += 1
            say(f"{record.where}: {why}")
            continue
        done += 1
        if found.curve is not None and not math.isnan(found.curve.relative):
            faith.append(found.curve.relative)
        if output.on_screen:
            print(found)
        for row in () if output.on_screen else [found.to_dict()] if output.shape == "jsonl" else _rows(found):
            out.write({"text_id": record.number, **row}, {})
        if done == 1:
            output.save(found)
    out.close()
    if done > 1 and faith:
        say(f"faithfulness {sum(faith) / len(faith):.3f}, the mean of {counted(len(faith), 'text')}")
    return UNSCORED if refused else 0


def _rows(found: Explanation) -> Iterator[dict[str, Any]]:
    for one in found.pieces():
        yield {"prediction": found.prediction, "position": one.position, "token": one.token, "importance": one.value}
