"""A probabilistic context-free grammar whose sentences are short enough to be listed, each with its probability.

p(w) = Σ over its derivations ∏ of the rules' probabilities. All sentences of at most N words are found, length by
length: of A → B C with ℓ words, B takes j and C the other ℓ − j. The law is over N places, a shorter sentence ending in
stops; what longer sentences weigh is told, and divided out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from itertools import product

import numpy as np

from besag.arrays import Floats
from besag.checks import checked, number, whole_number
from besag.errors import BesagError, quoted
from besag.lab.systems.system import CLOSE, Given, refuse_large

Rules = Mapping[str, Mapping[str, float]]
STOP = "."

AGREEMENT: Rules = {  # the verb agrees with a subject that may stand three words before it
    "S": {"one sg": 0.5, "many pl": 0.5},
    "one": {"the dog": 0.6, "the dog near noun": 0.4},
    "many": {"the dogs": 0.6, "the dogs near noun": 0.4},
    "noun": {"dog": 0.5, "dogs": 0.5},
    "sg": {"barks": 0.7, "sees noun": 0.3},
    "pl": {"bark": 0.7, "see noun": 0.3},
}


class Grammar(Given):
    """Sentences of a grammar. Made by `grammar`.

    Attributes:
        kept: the probability that a sentence has at most N words; the law is conditioned on it.
        words: the vocabulary, in the order of its ids.
    """

    def __init__(self, law: Floats, words: list[str], kept: float) -> None:
        super().__init__(law, "grammar", words)
        self.words, self.kept = words, kept

    def sentences(self) -> list[tuple[str, float]]:
        """Every sentence with its probability, likeliest first."""
        flat = self.law.ravel()
        possible = np.flatnonzero(flat)
        order = possible[np.argsort(-flat[possible], kind="stable")]
        rows = np.stack(np.unravel_index(order, self.shape), 1)
        said = [" ".join(self.words[word] for word in row if self.words[word] != STOP) for row in rows]
        return list(zip(said, flat[order].tolist(), strict=True))


@checked
def grammar(rules: Mapping[str, Mapping[str, float]] | None = None, places: int = 5, start: str = "S") -> Grammar:
    """All sentences of at most so many words, with exact probabilities.

    Args:
        rules: of each nonterminal, what it becomes (words and nonterminals, apart by spaces) and how likely; whatever
            has no rules is a word. A small grammar of agreement, if left out.
        places: N, words of the longest sentence.
        start: the nonterminal of a sentence.

    Returns:
        The system; its last symbol is a stop, if sentences differ in length.

    Examples:
        >>> from besag.lab import grammar
        >>> grammar({"S": {"a b": 0.75, "b a": 0.25}}, places=2).sentences()
        [('a b', 0.75), ('b a', 0.25)]
    """
    given = _checked_rules(AGREEMENT if rules is None else rules, start)
    whole_number(places, "places", most=16)
    found: dict[tuple[str, ...], float] = {}
    derive = _derivations(given)
    for length in range(1, places + 1):
        found |= derive(start, length)
    if not found:
        raise BesagError(f"places={places}: the grammar has no sentence of at most so many words")
    words = sorted({word for sentence in found for word in sentence})
    if STOP in words:
        raise BesagError(f"{quoted(STOP)} ends short sentences here: call that word otherwise")
    if len({len(sentence) for sentence in found}) > 1 or len(next(iter(found))) < places:
        words.append(STOP)
    shape = (len(words),) * places
    refuse_large(shape, f"a grammar of {len(words)} words")
    law, number_of = np.zeros(shape), {word: place for place, word in enumerate(words)}
    for sentence, chance in found.items():
        law[tuple(number_of[word] for word in (*sentence, *[STOP] * (places - len(sentence))))] += chance
    kept = float(law.sum())
    return Grammar(law / kept, words, kept)


def _checked_rules(rules: Rules, start: str) -> dict[str, list[tuple[tuple[str, ...], float]]]:
    if start not in rules:
        raise BesagError(f"start={quoted(start)}: the grammar has rules for {', '.join(map(str, rules))}")
    given = {}
    for symbol, choices in rules.items():
        if not isinstance(choices, Mapping) or not all(isinstance(right, str) and right.split() for right in choices):
            raise BesagError(f"{quoted(symbol)} becomes {quoted(choices)}: name each right side with its probability")
        given[symbol] = [
            (tuple(right.split()), number(chance, f"the chance of {symbol} → {right}", least=0, most=1))
            for right, chance in choices.items()
        ]
        if not abs(total := sum(chance for _, chance in given[symbol]) - 1) <= CLOSE:
            raise BesagError(f"the chances of what {quoted(symbol)} becomes sum to {total + 1:.6g} and not to 1")
    return given


Sentences = dict[tuple[str, ...], float]


def _derivations(rules: dict[str, list[tuple[tuple[str, ...], float]]]) -> Callable[[str, int], Sentences]:
    """What a symbol can become in exactly so many words, each with its probability."""
    open_now: set[tuple[str, int]] = set()

    @cache
    def become(symbol: str, length: int) -> Sentences:
        if symbol not in rules:
            return {(symbol,): 1.0} if length == 1 else {}
        if (symbol, length) in open_now:
            raise BesagError(f"{quoted(symbol)} can become itself and nothing more: its derivations have no end")
        open_now.add((symbol, length))
        found: Sentences = defaultdict(float)
        for right, chance in rules[symbol]:
            for sentence, likely in sequence(right, length).items():
                found[sentence] += chance * likely
        open_now.discard((symbol, length))
        return {sentence: chance for sentence, chance in found.items() if chance > 0}

    @cache
    def sequence(right: tuple[str, ...], length: int) -> Sentences:
        if len(right) == 1:
            return become(right[0], length)
        found: Sentences = defaultdict(float)
        for first in range(1, length - len(right) + 2):  # every symbol becomes at least one word
            rest = sequence(right[1:], length - first)
            for (one, likely), (other, as_likely) in product(become(right[0], first).items(), rest.items()):
                found[one + other] += likely * as_likely
        return dict(found)

    return become
