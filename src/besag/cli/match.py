"""`besag match`: which sequences of two columns belong together."""

from __future__ import annotations

from typing import Annotated

import typer

from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import GivenModelOptions, OutputOptions, RunOptions, grouped
from besag.cli.settings import settings
from besag.errors import BesagError, quoted
from besag.files import columns, rows

File = Annotated[str, typer.Argument(metavar="FILE", show_default=False, help="A table with both columns.")]
First = Annotated[str, o.of_input("--first", help="The column with the sequences that get a partner.")]
Second = Annotated[str, o.of_input("--second", help="The column with the partners, in any order within a group.")]
Group = Annotated[
    str | None,
    o.of_input(
        "--group", help="The column with the group, a species say; all are one if not given.", show_default=False
    ),
]
Between = Annotated[str, o.of_method("--separator", help="What stands between two partners.")]
Method = Annotated[str, o.of_method("--method", help="Of scoring the two as one: `besag methods` lists them.")]
Seed = Annotated[int, o.of_method("--seed", help="By which permutations of one energy are told apart.")]
Temperature = Annotated[float, o.of_method("--temperature", "-t", help="Of the soft permutation.")]


@guarded
@grouped
def match(
    file: File,
    model: GivenModelOptions,
    output: OutputOptions,
    run: RunOptions,
    first: First = "first",
    second: Second = "second",
    group: Group = None,
    separator: Between = " ",
    method: Method = "pll",
    set_: o.Set = None,
    temperature: Temperature = 1.0,
    seed: Seed = 0,
) -> int:
    """Match sequences by masked-LM loss.

    stderr reports the accuracy if the rows of the file are true pairs, and the accuracy expected by chance. Exit code
    3: the soft permutation did not converge.

    Example:
        besag match chains.tsv --first heavy --second light --model runs/chains/model
    """
    out = output.open()
    [(name, options)] = settings("score", [method], set_).items()
    wanted = [first, second, *([] if group is None else [group])]
    sequences: dict[str, list[str]] = {one: [] for one in wanted}
    for row in rows.read(file, "tsv" if rows.format_of(file) == "text" else None):
        values = row.values if isinstance(row.values, dict) else {}
        for one in wanted:
            said = columns.value(values, one, row.where)
            if not str(said or "").strip():
                raise BesagError(f"{row.where}: {one} is {quoted(said)}: give a sequence")
            sequences[one].append(str(said))
    lm = model.load(run.progress)
    groups = None if group is None else sequences[group]
    found = lm.match(
        sequences[first], sequences[second], groups, separator=separator, method=name, temperature=temperature,
        seed=seed, **options,
    )  # fmt: skip
    if output.shape == "jsonl":
        out.write(found.to_dict(), {})
    else:
        for pair in found.pairs:
            out.write(pair._asdict(), {})
    out.close()
    say(" · ".join(found.facts))
    return 0 if found.status == "ok" else UNSCORED
