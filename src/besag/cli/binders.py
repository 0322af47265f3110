"""`besag binders`: peptides for a target protein, ranked and proposed."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from besag.checks import MOST_CHAINS, MOST_LENGTH
from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import GivenModelOptions, OutputOptions, RowsOptions, RunOptions, grouped
from besag.cli.settings import settings
from besag.errors import BesagError, quoted
from besag.files.inputs import records

Target = Annotated[
    str, typer.Argument(metavar="TARGET", show_default=False, help="Residues, or a FASTA file of one record.")
]
Peptides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PEPTIDE]", show_default=False, help="Peptides to rank: residues, a file, or - for stdin."),
]
Length = Annotated[
    int | None,
    o.of_method("--length", min=1, max=MOST_LENGTH, help="Residues of peptides to propose.", show_default=False),
]
Number = Annotated[int, o.of_method("--number", "-n", min=1, max=MOST_CHAINS, help="How many to propose.")]
Method = Annotated[str, o.of_method("--method", help="Of scoring a peptide with the target shown.")]
KernelName = Annotated[
    str, o.of_method("--kernel", "-k", help="Which proposes; grouped: all residues at once, each of its likeliest 3.")
]
Seed = Annotated[int, o.of_method("--seed", help="Of the proposals.")]


@guarded
@grouped
def binders(
    target: Target,
    model: GivenModelOptions,
    rows: RowsOptions,
    output: OutputOptions,
    run: RunOptions,
    peptide: Peptides = None,
    length: Length = None,
    number: Number = 8,
    method: Method = "pll",
    kernel: KernelName = "grouped",
    set_: o.Set = None,
    seed: Seed = 0,
) -> int:
    """Rank and generate peptide binders.

    Peptides are ranked by their pseudo-perplexity after the target protein, lowest first. Use a model trained on pairs
    of target and peptide (recipes/binders.toml). Exit code 3: some peptides could not be scored (see the column
    "status").

    Example:
        besag binders target.fasta peptides.txt --model runs/binders/model
    """
    out = output.open()
    if set_ and length is None:
        raise BesagError(f"--set {set_[0]} is of peptides that are proposed: say how long they are (--length)")
    [(name, options)] = settings("kernel", [kernel], set_).items()
    given = []
    if peptide:
        for record in records(rows.sources(peptide, "binders", output.output), skip=rows.skip, limit=rows.limit):
            if record is not None and not record.text.strip():
                raise BesagError(f"a peptide is {quoted(record.text)}: give residues in capitals, as in MKTAYIAK")
            given += [] if record is None else [record.text]
    from besag.variants.protein import only_sequence

    protein = only_sequence(target) if os.path.isfile(target) else target
    lm = model.load(run.progress)
    found = lm.binders(
        protein, given, length=length, number=number, method=method, kernel=name, seed=seed, **options
    )  # fmt: skip
    if output.shape == "jsonl":
        out.write(found.to_dict(), {})
    else:
        for one in found.binders:
            out.write({**one._asdict(), "status": str(one.status)}, {})
    out.close()
    say(" · ".join(found.facts))
    return 0 if found.status.fine else UNSCORED
