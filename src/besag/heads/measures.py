"""How good labels are: accuracy, F1 of each label and its mean, and of tags that mark spans the F1 of whole spans.

    F1 = 2 · both / (said + true),        macro F1 = the mean over labels that are said or true at least once

Beside them stands what the most frequent label alone would reach: a head below that has learned nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def measured(true: Sequence[Sequence[str]], said: Sequence[Sequence[str]], usual: str) -> dict[str, float]:
    """Of examples with one label, or with one a word. `usual` is the label that is most frequent in training."""
    pairs = [pair for one, other in zip(true, said, strict=True) for pair in zip(one, other, strict=True)]
    each = f1([label for label, _ in pairs], [label for _, label in pairs])
    found = {
        "accuracy": sum(label == other for label, other in pairs) / len(pairs),
        "macro_f1": sum(each.values()) / len(each),
        "usual_accuracy": sum(label == usual for label, _ in pairs) / len(pairs),
    }
    if marks_spans(label for label, _ in pairs):
        found["span_f1"] = span_f1(true, said)
    return found


def f1(true: Sequence[str], said: Sequence[str]) -> dict[str, float]:
    """Of each label."""
    both = Counter(label for label, other in zip(true, said, strict=True) if label == other)
    left, right = Counter(true), Counter(said)
    return {label: 2 * both[label] / (left[label] + right[label]) for label in sorted({*left, *right})}


# ---- spans


def marks_spans(labels: object) -> bool:
    """Are they B-X, I-X and O?"""
    names = set(labels)  # type: ignore[call-overload]
    return (
        "O" in names
        and any(name.startswith("B-") for name in names)
        and all(name == "O" or name[:2] in ("B-", "I-") for name in names)
    )


def spans(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """(first, beyond the last, kind). An I- that continues nothing of its kind begins a span, as in CoNLL's script.

    >>> sorted(spans(["B-PER", "I-PER", "O", "I-LOC"]))
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """
    found, start, kind = set(), 0, ""
    for place, tag in enumerate([*tags, "O"]):
        goes_on = tag.startswith("I-") and tag[2:] == kind
        if kind and not goes_on:
            found.add((start, place, kind))
            kind = ""
        if tag != "O" and not goes_on:
            start, kind = place, tag[2:]
    return found


def span_f1(true: Sequence[Sequence[str]], said: Sequence[Sequence[str]]) -> float:
    """Over all spans of all texts: both ends and the kind must be right."""
    pairs = [(spans(one), spans(other)) for one, other in zip(true, said, strict=True)]
    both = sum(len(one & other) for one, other in pairs)
    whole = sum(len(one) + len(other) for one, other in pairs)
    return 2 * both / whole if whole else 0.0
