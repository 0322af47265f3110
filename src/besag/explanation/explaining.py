"""From a text to an explanation: what is predicted, without which token, and what is left of it.

Three things can be explained. A filling of masks, or of places that are named. The label that a classifier gives a
text. And the score of a text as it is: Σ_j log p(x_j | x_∖j), where the importance of x_i is what it adds to the
others,

    a_i = Σ_{j ≠ i} [log p(x_j | x_∖j) − log p(x_j | x_∖ij)],

which on an exact law is a sum of pointwise mutual informations given the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from besag.arrays import Floats, Ints
from besag.checks import checked, whole_number
from besag.conditionals.contract import require_both_sides
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.explanation.explanation import Explanation
from besag.explanation.faithfulness import Curve, follow
from besag.explanation.prediction import Filling, Labelling, Prediction, filling, labelled, same_tokens
from besag.explanation.removal import REMOVALS, Removal, mask_of
from besag.places.places import find
from besag.places.positions import Position
from besag.places.reading import read, text_places, unknown_around
from besag.results.words import dtype_name
from besag.vocabulary import Encoded

MOST_ORDERS = 10_000


class Asked(NamedTuple):
    """A prediction about a text."""

    shown: Encoded  # the text, or the window of it that is seen
    predicted: Prediction
    targets: Ints  # (m,) where it stands; none of a label
    start: int  # tokens of the text before the window

    def explained(self, mask: int, fixed: Sequence[int]) -> Ints:
        """(n,) the tokens that can be left out: shown, of the text, and not what is predicted."""
        free = [place for place in fixed if self.shown.ids[place] != mask and place not in set(self.targets.tolist())]
        return np.array(free, np.int64)


@checked
def explain(
    engine: Engine,
    text: str,
    target: str | Sequence[str] | None = None,
    *,
    positions: Sequence[Position] | None = None,
    classifier: Labelling | None = None,
    label: str | None = None,
    method: str = "marginalise",
    curve: bool = False,
    orders: int = 20,
    seed: int = 0,
    **options: object,
) -> Explanation:
    """Which tokens of a text a prediction about it rests on; `options` are those of the method."""
    conditionals = engine.conditionals
    require_both_sides(conditionals, "an explanation")
    whole_number(orders, "orders", most=MOST_ORDERS)
    how = REMOVALS.find(method)(**options)
    work = _Work(engine, how, orders if curve else 0, seed)
    _refuse_together(target, positions, classifier, label)
    encoded = read(conditionals.vocabulary, text)
    if classifier is not None:
        return work.of_label(encoded, classifier, label)
    if target is None and positions is None and conditionals.vocabulary.mask_id not in encoded.ids:
        return work.of_score(encoded)
    places = find(conditionals.vocabulary, text, positions, conditionals.max_length)
    words = target if target is None or isinstance(target, str) else list(target)
    asked = Asked(places.shown, filling(engine, places, words), np.array(places.at), places.positions[0] - places.at[0])
    return work.of_one(asked, conditionals.name, places.unknown)


def _refuse_together(target: object, positions: object, classifier: object, label: object) -> None:
    if classifier is None and label is not None:
        raise BesagError(f"label={quoted(label)} is of a classifier, and none was given (classifier=…, --classifier)")
    if classifier is not None and not (target is None and positions is None):
        raise BesagError("a classifier labels a whole text: target and positions are for fillings")


@dataclass(frozen=True)
class _Work:
    engine: Engine
    how: Removal
    orders: int  # random ones of a curve; 0: no curve
    seed: int

    @property
    def mask(self) -> int:
        return mask_of(self.engine)

    def of_label(self, encoded: Encoded, classifier: Labelling, named: str | None) -> Explanation:
        same_tokens(self.engine.conditionals.vocabulary, classifier)
        limits = [most for most in (classifier.max_length, self.engine.conditionals.max_length) if most is not None]
        _refuse_long(encoded, min(limits, default=None))
        asked = Asked(encoded, labelled(classifier, encoded.ids, named), np.zeros(0, np.int64), 0)
        return self.of_one(asked, f"{classifier.name} ← {self.engine.conditionals.name}")

    def of_one(self, asked: Asked, model: str, unknown: int | None = None) -> Explanation:
        """Of one prediction, in log-odds."""
        places = self._places(asked)
        before = asked.predicted.ask(asked.shown.ids[None], asked.targets[None])
        if not before.log_p[0] > -np.inf:
            raise BesagError(f"{asked.predicted.title} is 0 in {quoted(asked.shown.text)}: there is nothing to explain")
        without = self.how.without(self.engine, self._hidden(asked), places, asked.targets)
        after = asked.predicted.ask(without.ids, without.targets).mean(without.which, without.weight, len(places))
        values = before.log_odds - after.log_odds
        drawn = None
        if self.orders:
            ids, targets = asked.shown.ids, asked.targets
            drawn = follow(asked.predicted, ids, places, targets, values, self.mask, self.orders, self.seed)
        return self._told(
            asked, places, values, float(before.log_p[0]), "log odds", without.lost, model, drawn, unknown
        )

    def of_score(self, encoded: Encoded) -> Explanation:
        """Of the pseudo-log-likelihood of a text, in nats: what each token adds to all others."""
        if self.orders:
            raise BesagError(
                "a curve of faithfulness is of one prediction, and a score has as many as tokens, each hidden in its "
                "turn: name a place (positions=…, --position), or hide one by a mask."
            )
        conditionals = self.engine.conditionals
        _refuse_long(encoded, conditionals.max_length)
        places = np.array(text_places(conditionals.vocabulary, encoded), np.int64)
        if len(places) < 2:
            raise BesagError(f"{quoted(encoded.text)} has fewer than two tokens: nothing speaks for anything else.")
        adds, total, lost = np.zeros((len(places), len(places))), 0.0, 0.0
        for j, place in enumerate(places.tolist()):
            one = Filling(self.engine, (int(encoded.ids[place]),), "")
            target, others = np.array([place]), np.delete(places, j)
            asked = Asked(encoded, one, target, 0)
            before = one.ask(encoded.ids[None], target[None]).log_p[0]
            without = self.how.without(self.engine, self._hidden(asked), others, target)
            after = one.ask(without.ids, without.targets).mean(without.which, without.weight, len(others))
            adds[np.arange(len(places)) != j, j] = before - after.log_p
            total, lost = total + float(before), lost + without.lost / len(places)
        asked = Asked(encoded, one, np.zeros(0, np.int64), 0)
        return self._told(asked, places, adds.sum(1), total, "nats", lost, conditionals.name)

    def _places(self, asked: Asked) -> Ints:
        found = asked.explained(self.mask, text_places(self.engine.conditionals.vocabulary, _all(asked.shown)))
        if not len(found):
            raise BesagError(f"{quoted(asked.shown.text)} shows no token that {asked.predicted.title} could rest on")
        return found

    def _hidden(self, asked: Asked) -> Ints:
        """(L,) the text with the mask where the prediction stands."""
        ids = asked.shown.ids.copy()
        ids[asked.targets] = self.mask
        return np.asarray(ids)

    def _told(
        self,
        asked: Asked,
        places: Ints,
        values: Floats,
        log_prob: float,
        unit: str,
        lost: float,
        model: str,
        drawn: Curve | None = None,
        unknown: int | None = None,
    ) -> Explanation:
        conditionals, shown = self.engine.conditionals, asked.shown
        return Explanation(
            text=shown.text,
            prediction="pll of the text" if unit == "nats" else asked.predicted.title,
            log_prob=log_prob,
            tokens=tuple(shown.tokens[place] for place in places),
            positions=tuple((places + asked.start).tolist()),
            offsets=shown.offsets[places],
            values=values,
            unit=unit,
            method=self.how.label,
            lost=lost,
            curve=drawn,
            model=model,
            dtype=dtype_name(conditionals.dtype),
            unknown=unknown_around(conditionals.vocabulary, shown) if unknown is None else unknown,
        )


def _all(shown: Encoded) -> Encoded:
    """The same, with every token of the text as a place: a filling has only its own."""
    return replace(shown, places=np.flatnonzero(~shown.special))


def _refuse_long(encoded: Encoded, most: int | None) -> None:
    if most is not None and len(encoded.ids) > most:
        raise BesagError(f"{quoted(encoded.text)} has {len(encoded.ids):,} tokens, and {most:,} are seen: shorten it")
