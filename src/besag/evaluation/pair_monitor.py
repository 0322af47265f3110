"""What a network without a decoder is watched by while it learns from pairs: held-out pairs, and what a `Monitor` asks.

    heldout_loss     −log p of target tokens, nats each: of a line all of them are hidden, of a correction none is
    answers_right    of lines: how often the likeliest tokens are the target, all of them at once
    errors_mended    of corrections: of the tokens that are wrong, how often the likeliest one is the right one
    right_kept       … of the tokens that are right, how often it is the one that is written

The same pairs at every visit, drawn from all that are held out: a batch holds pairs of one length, so the first ones
would all be long or all be short. Minimal pairs and general text are asked as of any network.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from besag import noise
from besag.arrays import Bools, Floats, Ints
from besag.engine import Plan, Request
from besag.evaluation.monitor import Monitor, Question, visiting
from besag.noise import Monitoring
from besag.reductions import Rank, Target
from besag.training.data import in_place, one_line
from besag.training.data.assembly import Parts
from besag.training.data.clock import Clock

SEED = 0  # of all of it, whatever the recipe's is


class Told(NamedTuple):
    """What came of one pair."""

    log_probs: Floats  # (M,) of the target's tokens
    first: Bools  # (M,) is it the likeliest?


class PairMonitor:
    """Made before a run from what was built, called during it; `evaluation.sentences` says how many pairs are asked."""

    def __init__(self, built: Any) -> None:
        recipe, self.vocabulary = built.recipe, built.vocabulary
        self.corrects = recipe.data.pairs == "in-place"
        self.plain = Monitor(recipe, built.vocabulary, None, purpose=built.objective.purpose)
        self.questions: list[Question] = []
        self.wrong: list[Bools] = []  # (M,) of each pair: which of the asked tokens are errors
        text = built.valid_pairs if self.corrects else built.valid
        if text is None or not recipe.evaluation.sentences or built.objective.purpose == "encode":
            return
        make: Any = in_place.batches if self.corrects else one_line.batches
        dataset = make(text, recipe.data, built.vocabulary, built.masking, Clock(steps=1), seed=SEED)
        bounds = dataset.plan.epoch(0).batches  # (B + 1,)
        turns = noise.uniform(SEED, Monitoring.SENTENCES, np.arange(bounds[-1]))
        chosen = np.sort(np.argsort(turns, kind="stable")[: recipe.evaluation.sentences])
        batch = np.searchsorted(bounds, chosen, side="right") - 1  # of each that is chosen
        for index in np.unique(batch).tolist():
            for question, wrong in self._questions(dataset.parts(index), chosen[batch == index] - bounds[index]):
                self.questions.append(question)
                self.wrong.append(wrong)

    def __call__(self, model: Any, step: int = 0) -> dict[str, float]:
        return {**self._of_pairs(model, step), **self.plain(model, step)}

    def _questions(self, parts: Parts, rows: Ints) -> Iterator[tuple[Question, Bools]]:
        passages = parts.passages
        shown = np.where(passages.free, self.vocabulary.mask_id, passages.ids) if parts.shown is None else parts.shown
        for row in rows.tolist():
            here = passages.row == row
            place = np.flatnonzero(passages.free[here])
            if len(place):
                target: Ints = passages.ids[here][place]
                question = Question(shown[None, here], np.zeros_like(place), place, target)
                yield question, shown[here][place] != target

    def _of_pairs(self, model: Any, step: int) -> dict[str, float]:
        if not self.questions:
            return {}
        with visiting(model, self.vocabulary, step) as engine:
            told = list(engine.run(map(_told, self.questions)))
        first = np.concatenate([one.first for one in told])
        found = {"heldout_loss": -float(np.concatenate([one.log_probs for one in told]).mean())}
        if not self.corrects:
            return {**found, "answers_right": float(np.mean([one.first.all() for one in told]))}
        wrong = np.concatenate(self.wrong)
        shares = {"errors_mended": first[wrong], "right_kept": first[~wrong]}
        return {**found, **{name: float(share.mean()) for name, share in shares.items() if len(share)}}


def _told(question: Question) -> Plan[Told]:
    answers = yield Request((Target(), Rank()), question.ids, question.row, question.place, question.target)
    return Told(answers["target"].astype(np.float64), answers["rank"] == 1)
