"""Minimal pairs scored sentence by sentence, so that a run that was stopped or killed goes on.

FILE.items            a row for each sentence that has a score; gone when FILE, which is made of them, is written
FILE.items.progress   how far they are (files/progress.py)
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from besag.cli.exits import CtrlC, at_end
from besag.cli.score import about_model, command
from besag.errors import BesagError
from besag.files.progress import BLOCK, Resumable

if TYPE_CHECKING:
    from besag.cli.side_by_side import Scorer
    from besag.evaluation.minimal_pairs import MinimalPair, MinimalPairs
    from besag.results.status import Status


def items(output: str | None, force: bool, resume: bool) -> Resumable | None:
    """Where the scores of sentences are kept; nowhere without an ordinary file to go on with."""
    if output is None or (os.path.exists(output) and not os.path.isfile(output)):
        if resume:
            raise BesagError("--resume goes on with a file: say which with --output")
        return None
    path = f"{output}.items"
    begun = os.path.exists(f"{path}.progress")
    if resume and not (begun or force) and os.path.exists(output):
        raise BesagError(f"{output!r} is finished, or was not written by a run that can go on: there is no {path!r}")
    kept = Resumable("jsonl", path, force=force or not begun, resume=resume, go_on=command())
    at_end(kept.close)
    return kept


class Comparing:
    """All sentences of all pairs through all scorers, block by block."""

    def __init__(
        self,
        scorers: Sequence[Scorer],
        pairs: Sequence[MinimalPair],
        reduction: Literal["sum", "mean"],
        kept: Resumable | None,
    ) -> None:
        from besag.evaluation.minimal_pairs import Comparison

        self.scorers, self.kept = scorers, kept
        self.work = [Comparison(scorer.lm.engine, pairs, scorer.method, reduction) for scorer in scorers]
        self.each = len(self.work[0].sentences)
        self.total = self.each * len(scorers)
        self.found: list[tuple[float, Status]] = []  # of the first scorer's sentences, then of the second's …
        self.block = max(BLOCK[scorer.lm.conditionals.device.type] for scorer in scorers)

    @property
    def done(self) -> int:
        return len(self.found)

    @property
    def go_on(self) -> str:
        return "" if self.kept is None else f"; go on with {command()}"

    def begin(self, options: Mapping[str, Any]) -> None:
        """Take up what an earlier run has left; from here on, the same questions run in the same batches."""
        if self.kept is None:
            return
        import besag
        from besag.study.folder import checksum

        state = self.kept.begin({
            "besag": besag.__version__, **options,
            "models": [about_model(scorer.lm) for scorer in self.scorers],
            "reduction": self.work[0].reduction,
            "sentences": checksum(self.work[0].sentences),
        })  # fmt: skip
        batches = [None] * len(self.scorers) if state is None else state["batches"]
        for scorer, found in zip(self.scorers, batches, strict=True):
            scorer.lm.engine.repeat(found)
        if state is not None:
            self.found = _read(self.kept.path, state["rows"])

    def through(self) -> bool:
        """Score all sentences; False after Ctrl-C or SIGTERM."""
        ctrl_c = CtrlC()
        with ctrl_c.watched():
            try:
                for place, one in enumerate(self.work):
                    skip = min(self.each, max(0, self.done - place * self.each))
                    for found in one.scores(skip, None if self.kept is None else self.block):
                        with ctrl_c.held_back():
                            self._keep(found)
            except KeyboardInterrupt:
                return False
        return True

    def results(self) -> list[MinimalPairs]:
        scores = iter(self.found)
        return [one.result(list(islice(scores, self.each))) for one in self.work]

    def finish(self) -> None:
        """What was made of the scores is written: they are of no more use."""
        if self.kept is not None:
            self.kept.finish()
            if os.path.exists(self.kept.path):
                os.unlink(self.kept.path)

    def _keep(self, found: tuple[float, Status]) -> None:
        self.found.append(found)
        if self.kept is None:
            return
        self.kept.write({"score": found[0], "status": found[1]}, {})
        here = self.done % self.each
        if here % self.block == 0:  # of this scorer, or its last
            self.kept.end_block({"rows": self.done, "batches": [scorer.lm.engine.found for scorer in self.scorers]})


def _read(path: str, rows: int) -> list[tuple[float, Status]]:
    from besag.results.data import from_json
    from besag.results.status import Status

    with open(path, encoding="utf-8") as file:
        found = [json.loads(line) for line in islice(file, rows)]
    return [(float(from_json(one["score"])), Status(one["status"])) for one in found]
