"""How alike two translations are, sentence by sentence, and the one that is most like all others.

    chrf    F_2 of character n-grams, n = 1 … 6, white space left out: P and R are means over the orders that both
            texts have, F = 5 P R / (4 P + R)
    bleu    (Π_n p_n)^{1/N} · min(1, e^{1 − r/h}), n = 1 … 4 as far as the hypothesis has words; where no n-gram
            matches, the k-th such p_n counts as if 2^{−k} had

    minimum Bayes risk:  argmax_h Σ_h' w(h') u(h, h')     h' the hypotheses, w how often each was found

Both as sacrebleu computes them for one sentence (BLEU on words and signs), in per cent. Knows texts alone.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

UtilityName = Literal["chrf", "bleu"]
CHARACTERS, WORDS, BETA = 6, 4, 2.0
TOKEN = re.compile(r"\w+|[^\w\s]")


def chrf(hypothesis: str, reference: str) -> float:
    """In per cent; 0 where one of the two is empty, and 100 where both are."""
    one, other = ("".join(text.split()) for text in (hypothesis, reference))
    if not one or not other:
        return 100.0 * (one == other)
    orders = range(1, min(CHARACTERS, len(one), len(other)) + 1)
    precision = recall = 0.0
    for n in orders:
        mine, theirs = _grams(one, n), _grams(other, n)
        matches = sum((mine & theirs).values())
        precision += matches / (len(one) - n + 1) / len(orders)
        recall += matches / (len(other) - n + 1) / len(orders)
    weight = BETA**2
    return 100 * (1 + weight) * precision * recall / (weight * precision + recall) if precision else 0.0


def bleu(hypothesis: str, reference: str) -> float:
    """In per cent, of words and signs; 0 where one of the two is empty, and 100 where both are."""
    one, other = (TOKEN.findall(text) for text in (hypothesis, reference))
    if not one or not other:
        return 100.0 * (one == other)
    total, orders, halved = 0.0, min(WORDS, len(one)), 1.0
    for n in range(1, orders + 1):
        matches = sum((_grams(one, n) & _grams(other, n)).values())
        if not matches:
            if n == 1:
                return 0.0
            halved *= 2
        total += math.log((matches or 1 / halved) / (len(one) - n + 1)) / orders
    return 100 * math.exp(total + min(0.0, 1 - len(other) / len(one)))


UTILITIES = {"chrf": chrf, "bleu": bleu}


def expected(texts: Sequence[str], weights: Sequence[float], name: UtilityName) -> list[float]:
    """The mean utility of each text against all of them, itself included, by their weights."""
    utility, whole = UTILITIES[name], sum(weights)
    return [
        sum(weight * utility(text, other) for other, weight in zip(texts, weights, strict=True)) / whole
        for text in texts
    ]


def _grams(sequence: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(sequence[start : start + n]) for start in range(len(sequence) - n + 1))
