"""AutoPrompt (Shin et al. 2020): trigger tokens found by gradient, so that a masked model does a task as it is.

The idea: what a token in place of a trigger would do to log p(label) is, to first order, the product of its embedding
and the gradient there,

    candidates of place t = the k tokens w of largest e_w · ∇_{e_t} mean log p(y | row, triggers),

and of these the one that raises the mean log p most on other rows, tried one by one, takes the place; if none does, the
token stays. Places take turns. The triggers are those of the round with the best mean log p on held-out rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

from besag import noise
from besag.arrays import Ints
from besag.checks import checked, number, whole_number
from besag.errors import BesagError, nearest, quoted
from besag.language_model import LanguageModel
from besag.noise import Prompting
from besag.prompting.likelihood import Example, Likelihood
from besag.prompting.prompt import Prompt, Round
from besag.prompting.template import TRIGGER, Template

LEAST = 4  # rows


@checked
def autoprompt(
    lm: LanguageModel,
    rows: Sequence[Mapping[str, Any]],
    template: str,
    labels: Mapping[str, Sequence[str]] | None = None,
    *,
    label: str = "label",
    rounds: int = 10,
    candidates: int = 10,
    batch: int = 32,
    held_out: float = 0.2,
    seed: int = 0,
    quiet: bool = False,
) -> Prompt:
    """Find the trigger tokens that make a masked model fill a gap with the right label, by its gradients alone.

    Args:
        lm: a masked network; its weights stay as they are.
        rows: of the task: the columns of the template, and the label.
        template: columns in braces, `[T]` for each trigger, `[MASK]` where the label stands.
        labels: label → words of one token that say it; if not given, the labels are such words themselves.
        label: the column with the label.
        rounds: each tries every trigger once.
        candidates: tokens that are tried for a trigger.
        batch: rows that a gradient is taken on, and as many others that candidates are tried on.
        held_out: share of the rows, the last ones, that choose among rounds and are what accuracy is told of.
        seed: of the batches.
        quiet: show no progress bar.

    Returns:
        A `Prompt`: the triggers, accuracy before and after on held-out rows, and `answer` for other rows.

    Examples:
        >>> rows = [{"text": text, "label": label} for text, label in [("It rained.", "bad"), ("I won!", "good")] * 5]
        >>> found = besag.autoprompt(lm, rows, "{text} [T] [T] [MASK].", rounds=1, candidates=3, quiet=True)
        >>> len(found.triggers), found.after >= found.before
        (2, True)
    """
    frame, kept = _checked(lm, template, len(rows), held_out)
    for value, name, most in ((rounds, "rounds", 10**6), (candidates, "candidates", 2**20), (batch, "batch", 10**6)):
        whole_number(value, name, most=most)
    words = _words(frame, rows, labels, label)
    examples = [Example(frame.asked(row), words[str(row[label])]) for row in rows]
    search = _Search(lm, examples[:-kept], examples[-kept:], frame, words, seed)
    history = [search.judged(0)]
    for turn in tqdm(range(1, rounds + 1), unit="round", disable=quiet, leave=False):
        for place in range(frame.triggers):
            search.improve(place, turn, candidates, batch)
        history.append(search.judged(turn))
    return Prompt(lm, frame, words, tuple(history))


def _checked(lm: LanguageModel, template: str, rows: int, held_out: float) -> tuple[Template, int]:
    """The template, and how many rows are held out."""
    number(held_out, "held_out", 0.0, 0.9)
    Likelihood.of_network(lm.conditionals)  # others are refused
    frame = Template(template, lm.conditionals.vocabulary)
    if not frame.triggers:
        raise BesagError(f"template={quoted(template)}: write {TRIGGER} for every trigger token that is to be found")
    kept = round(rows * held_out)
    if rows - kept < LEAST or not kept:
        raise BesagError(f"{rows} rows, {kept} held out: give at least {LEAST} to search on, and 1 to judge on")
    return frame, kept


def _words(
    frame: Template, rows: Sequence[Mapping[str, Any]], labels: Mapping[str, Sequence[str]] | None, label: str
) -> dict[str, Ints]:
    """Label → the tokens that say it."""
    for row in rows:
        if label not in row:
            raise BesagError(f"a row has no {label!r}: it has {', '.join(row)}.{nearest(label, row)}")
    found = list(dict.fromkeys(str(row[label]) for row in rows))
    said = {name: [name] for name in found} if labels is None else {name: list(own) for name, own in labels.items()}
    strange = next((name for name in found if name not in said), None)
    if strange is not None:
        raise BesagError(f"a row is labelled {strange!r}, and labels has {', '.join(said)}.{nearest(strange, said)}")
    words = {name: frame.words(rows[0], own) for name, own in said.items()}
    empty = next((name for name, ids in words.items() if not len(ids)), None)
    if empty is not None:
        raise BesagError(f"the label {empty!r} has no word: give at least one, of one token")
    return words


class _Search:
    def __init__(
        self, lm: LanguageModel, train: list[Example], valid: list[Example], frame: Template, words: dict[str, Ints],
        seed: int,
    ) -> None:  # fmt: skip
        self.train, self.valid, self.words, self.seed = train, valid, list(words.values()), seed
        self.likelihood = Likelihood.of_network(lm.conditionals)
        self.triggers: Ints = np.full(frame.triggers, frame.vocabulary.mask_id)
        labels = [int(one) for ids in self.words for one in ids]  # one of them as a trigger would give itself away
        self.allowed = torch.ones(len(self.likelihood.embedding), dtype=torch.bool)
        self.allowed[frame.vocabulary.size :] = False
        self.allowed[[*frame.vocabulary.special_ids, *labels]] = False

    def improve(self, place: int, turn: int, candidates: int, batch: int) -> None:
        """The best of the candidates takes the place, if it is better than what stands there."""
        looked, tried = self._rows(turn, place, batch)
        slope = self.likelihood.gradient(looked, self.triggers)[place]  # (D,)
        gain = (self.likelihood.embedding @ slope).cpu().masked_fill(~self.allowed, -torch.inf)  # (V,)
        found = gain.topk(min(candidates, int(self.allowed.sum()))).indices.tolist()
        best, value = self.triggers, self.likelihood.of(tried, self.triggers).mean()
        for token in found:
            other = self.triggers.copy()
            other[place] = token
            reached = self.likelihood.of(tried, other).mean()
            if reached > value:
                best, value = other, reached
        self.triggers = best

    def _rows(self, turn: int, place: int, batch: int) -> tuple[list[Example], list[Example]]:
        """Rows to look at, and others to try candidates on; the same ones where there are too few."""
        order = np.argsort(noise.uniform(self.seed, Prompting.ROWS, turn, place, np.arange(len(self.train))))
        size = min(batch, len(order) // 2)
        return [self.train[at] for at in order[:size]], [self.train[at] for at in order[size : 2 * size]]

    def judged(self, turn: int) -> Round:
        """How good the triggers are on held-out rows."""
        laws = self.likelihood.answers([one.asked for one in self.valid], self.words, self.triggers)  # (N, Y)
        right = np.array([next(at for at, ids in enumerate(self.words) if ids is one.right) for one in self.valid])
        return Round(
            turn, tuple(int(token) for token in self.triggers), float((laws.argmax(1) == right).mean()),
            float(laws[np.arange(len(right)), right].mean()),
        )  # fmt: skip
