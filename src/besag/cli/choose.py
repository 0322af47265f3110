"""`besag choose`: which option fits the slot of a text best."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from besag.cli import options as o
from besag.cli.exits import guarded
from besag.cli.groups import GivenModelOptions, OutputOptions, grouped
from besag.cli.settings import settings

Slotted = Annotated[str, typer.Argument(metavar="TEXT", help="With one slot: [MASK] or {}.", show_default=False)]
Options = Annotated[
    list[str], typer.Argument(metavar="OPTION", help="What could stand there, of any length.", show_default=False)
]
Method = Annotated[
    str | None,
    o.of_method("--method", help="`besag methods` lists them; word_l2r, or chain --of option.", show_default=False),
]
Of = Annotated[
    Literal["sentence", "option"],
    o.of_method("--of", help="Score the whole sentence, or the option alone given the rest."),
]


@guarded
@grouped
def choose(
    text: Slotted,
    option: Options,
    model: GivenModelOptions,
    output: OutputOptions,
    method: Method = None,
    set_: o.Set = None,
    seed: o.Seed = None,
    of: Of = "sentence",
    reduction: o.Reduction = "sum",
) -> int:
    """Rank options for a slot.

    The share of an option is its probability relative to the listed options only.

    Example:
        besag choose "The capital of France is [MASK]." Paris London
    """
    out = output.open()

    usual = "word_l2r" if of == "sentence" else "chain"
    [(name, options)] = settings("score", [method or usual], set_, {"seed": seed}).items()
    lm = model.load(False)
    choice = lm.choose(text, option, name, of=of, reduction=reduction, **options)
    if output.shape == "jsonl":
        out.write({"text": text, **choice.to_dict()}, {})
    else:
        column = choice.scores[0].method + "_mean" * (reduction == "mean")
        for one, value, share in zip(choice.options, choice.values.tolist(), choice.shares.tolist(), strict=True):
            out.write({"option": one, column: value, "share": share}, {})
    out.close()
    return 0
