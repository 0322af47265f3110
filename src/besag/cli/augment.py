"""`besag augment`: copies of texts in which some words are others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from besag.cli import options as o
from besag.cli.exits import INTERRUPTED, UNSCORED, CtrlC, guarded, say
from besag.cli.positions import Keep, positions
from besag.cli.reading import Record, inputs, records
from besag.cli.tables import Layout
from besag.cli.writing import choose_format, writer
from besag.errors import BesagError

Inputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="INPUT", help="A text, a file, or - for stdin.", show_default=False),
]
Copies = Annotated[int, o.of_method("--copies", min=1, help="Of each text.")]
Share = Annotated[float, o.of_method("--share", help="Of the words that may change, in a round.")]
Rounds = Annotated[int, o.of_method("--rounds", min=1, help="How often a text is gone through.")]
Together = Annotated[int, o.of_method("--together", min=1, help="Words hidden at a time.")]
Similarity = Annotated[float, o.of_method("--similarity", help="The least similarity to the original; -1 takes all.")]
Temperature = Annotated[float, o.of_method("--temperature", "-t", help="1 draws from the model's own law.")]
TopK = Annotated[int | None, o.of_method("--top-k", help="Draw from the k likeliest tokens.")]
TopP = Annotated[float | None, o.of_method("--top-p", help="Draw from the fewest tokens that hold this share.")]
Seed = Annotated[int, o.of_method("--seed", help="Of all draws.")]


@guarded
def augment(
    input: Inputs = None,
    copies: Copies = 1,
    share: Share = 0.3,
    rounds: Rounds = 1,
    together: Together = 1,
    keep: Keep = None,
    similarity: Similarity = 0.9,
    temperature: Temperature = 1.0,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = 0,
    model: o.Model = None,
    device: o.Device = None,
    dtype: o.Dtype = None,
    revision: o.Revision = None,
    allow_pickle: o.AllowPickle = False,
    text: o.Text = False,
    input_format: o.InputFormat = None,
    column: o.Column = None,
    header: o.Header = True,
    skip: o.Skip = 0,
    limit: o.Limit = None,
    format: o.Format = None,
    output: o.Output = None,
    force: o.Force = False,
    batch_tokens: o.BatchTokens = None,
    progress: o.Progress = None,
) -> int:
    """Vary texts: some words are drawn anew, one after the other, as long as the text stays similar.

    besag augment "The film was long and rather dull." --copies 3 --keep film

    Columns of a table go along, so labels stay with their texts. Draws belong to the seed, the row and the copy: --skip
    gives the rows that a run from the start gives there. Exit code 3: some texts could not be changed (their status
    says why).
    """
    if not input and sys.stdin.isatty():
        raise BesagError("give a text, a file, or - for stdin (besag augment --help)")
    shape = choose_format(format, output)
    out = writer(shape, output, force)
    sources = inputs(input or ["-"], as_text=text, layout=Layout(input_format, column, header, True))
    if output is not None and any(source.is_file(output) for source in sources):
        raise BesagError(f"--output {output!r} is one of the inputs")

    import besag
    from besag.samplers.editing.augment import Augmenting

    how = Augmenting(
        copies=copies, share=share, rounds=rounds, together=together, keep=tuple(positions(keep) or ()),
        similarity=similarity, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed,
    )  # fmt: skip
    lm = besag.load(
        model, device=device, dtype=dtype, revision=revision, allow_pickle=allow_pickle, batch_tokens=batch_tokens,
        progress=progress,
    )  # fmt: skip
    waiting: list[Record] = []  # those whose copies have not come back yet, in order

    def given() -> Iterator[str]:
        for record in records(sources, skip=skip, limit=limit):
            if record is not None:
                waiting.append(record)
                yield record.text

    done = unchanged = 0
    ready: list[dict[str, object]] = []  # copies of one text, written together so that --skip repeats none of them
    ctrl_c = CtrlC()
    with ctrl_c.watched():
        try:
            for row in how.run(lm.engine, given(), first=skip):
                record = waiting[0]
                changed = ", ".join(f"{change.old} → {change.new}" for change in row.changed)
                ready.append({
                    "row": record.number, "copy": row.copy, "text": row.text, "similarity": row.similarity,
                    "log_prob_change": row.log_prob_change, "changed": changed, "status": row.status,
                })  # fmt: skip
                unchanged += row.status != "ok"
                if len(ready) < copies:
                    continue
                with ctrl_c.held_back():
                    for found in ready:
                        out.write(found, {"original": row.original, **record.others})
                    ready.clear()
                    waiting.pop(0)
                    done += 1
        except KeyboardInterrupt:
            say(f"interrupted after {done} texts; go on with --skip {skip + done} (and --output another file)")
            return INTERRUPTED
        finally:
            with ctrl_c.held_back():
                out.close()
    say(f"{how.guard(lm.conditionals)} · seed {seed} · {lm.name}")
    if unchanged:
        say(f"{unchanged} copies could not be changed: see their status")
    return UNSCORED if unchanged else 0
