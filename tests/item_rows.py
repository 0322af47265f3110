"""Rows of every benchmark, as its `judge` makes them: the items are fixed, what a model makes of them is random."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from besag.evaluation.corrections import counts, gleu_counts
from besag.evaluation.suite import Suite, suite
from besag.evaluation.suites.correction import WHO

Rows = list[dict[str, Any]]
Draw = np.random.Generator
FIXED = 5  # seed of what does not depend on the model


def suite_for_rows(name: str) -> Suite:
    """Return the suite of that name, with the options that the rows below are of."""
    options: dict[str, dict[str, Any]] = {
        "babylm": {"temperatures": "0.5,2"},
        "reading_times": {"folds": 4, "measures": "GPT,FFD"},
    }
    return suite(name, **options.get(name, {}))


def rows_for(name: str, model: int) -> Rows:
    """Return the rows of a model: `model` is the seed of its scores."""
    found = ROWS[name](np.random.default_rng(FIXED), np.random.default_rng([model, 1]))
    return [{"id": str(number), "status": "ok", **row} for number, row in enumerate(found)]


def _credit(draw: Draw) -> float:
    return float(draw.choice([0.0, 0.5, 1.0], p=[0.3, 0.1, 0.6]))


def _pairs(fixed: Draw, draw: Draw) -> Rows:
    return [{"group": f"paradigm{k % 5}", "phenomenon": f"phenomenon{k % 5 % 2}", "credit": _credit(draw)}
            for k in range(60)]  # fmt: skip


def _plausibility(fixed: Draw, draw: Draw) -> Rows:
    return [{"group": ("AI", "AAN", "AAR")[k % 3], "voice": ("active", "passive")[k % 2], "credit": _credit(draw)}
            for k in range(60)]  # fmt: skip


def _acceptability(fixed: Draw, draw: Draw) -> Rows:
    ratings = fixed.normal(size=60)
    return [{"group": f"kind{k % 2}", "rating": float(rating),
             **{name: float(rating + draw.normal()) for name in ("lp", "mean_lp", "pen_lp", "slor")}}
            for k, rating in enumerate(ratings)]  # fmt: skip


def _crows_pairs(fixed: Draw, draw: Draw) -> Rows:
    found = []
    for k in range(60):
        neutral = float(draw.random() < 0.1)
        found.append({"group": f"bias{k % 3}", "direction": ("stereo", "antistereo")[k % 2], "neutral": neutral,
                      "credit": float(draw.random() < 0.6) * (1 - neutral)})  # fmt: skip
    return found


def _syntaxgym(fixed: Draw, draw: Draw) -> Rows:
    found = []
    for k in range(60):
        holds = [float(draw.random() < 0.7) for _ in range(1 + k % 3)]
        found.append({"group": f"suite{k % 3}", "holds": holds, "credit": float(all(holds)), "ties": k % 7 == 0})
    return found


def _bear(fixed: Draw, draw: Draw) -> Rows:
    found = []
    for k in range(60):
        correct = [int(draw.random() < 0.4) for _ in range(3)]
        found.append({"group": f"P{k % 2}", "correct": correct, "credit": sum(correct) / 3, "answers": 4 + k % 2,
                      "tied": int(draw.random() < 0.1)})  # fmt: skip
    return found


def _lama(fixed: Draw, draw: Draw) -> Rows:
    found = []
    for k in range(60):
        rank = int(draw.integers(1, 15))
        row = {"group": f"P{k % 2}", "rank": rank, "answers": 15, "tokens": 1 + k % 3 // 2, "p1": float(rank == 1),
               "p10": float(rank <= 10), "reciprocal": 1 / rank}  # fmt: skip
        found.append(row | ({"vocabulary_rank": int(draw.integers(1, 4))} if row["tokens"] == 1 else {}))
    return found


def _stereoset(fixed: Draw, draw: Draw) -> Rows:
    return [{"group": f"bias{k % 2}", "kind": ("intrasentence", "intersentence")[k // 4 % 2], "term": f"term{k % 12}",
             "prefers": float(draw.random() < 0.6), "sense": float(draw.choice([0, 0.5, 1])), "tied": int(k % 9 == 0)}
            for k in range(96)]  # fmt: skip


def _bias_gaussian(fixed: Draw, draw: Draw) -> Rows:
    found = []
    for k in range(60):
        more, less = draw.normal(0.3), draw.normal()
        found.append({"group": f"bias{k % 2}", "stereotype_score": more, "counterpart_score": less,
                      "credit": float(more > less)})  # fmt: skip
    return found


def _pronouns(fixed: Draw, draw: Draw) -> Rows:
    gaps = draw.normal(0.4, size=60)
    return [{"group": f"field{k % 3}", "gap": float(gap), "share": float(1 / (1 + np.exp(-gap))),
             "credit": float(gap > 0)} for k, gap in enumerate(gaps)]  # fmt: skip


def _reading_times(fixed: Draw, draw: Draw) -> Rows:
    found = []
    for k in range(40):
        n = 1 if k == 7 else int(fixed.integers(3, 8))  # one sentence without a word that has a word before it
        words = [f"{'x' * int(fixed.integers(1, 9))}" for _ in range(n)]
        true = fixed.gamma(2.0, size=n)
        surprisal = true + 0.5 * draw.normal(size=n)
        times = 200 + 20 * true[:, None] + fixed.normal(size=(n, 2)) * 10
        found.append({"group": "provo", "words": words, "positions": list(range(1, n + 1)),
                      "surprisal": surprisal.tolist(), "time:GPT": times[:, 0].tolist(),
                      "time:FFD": times[:, 1].tolist()})  # fmt: skip
    return found


def _babylm_reading(fixed: Draw, draw: Draw) -> Rows:
    found: Rows = []
    for k in range(90):
        true = fixed.gamma(2.0)
        times = (200 + 30 * true + 10 * fixed.normal(size=5)).tolist()
        names = ("RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound", "self_paced_reading_time")
        row = {"group": "reading", "pred": float(true + 0.5 * draw.normal()), "Subtlex_log10": fixed.normal(),
               "length": float(fixed.integers(1, 9)), "context_length": float(k % 7),
               **dict(zip(names, times, strict=True))}  # fmt: skip
        missing = fixed.random(2)
        if missing[0] < 0.2:
            del row["RTgopast"]
        if missing[1] > 0.2:
            row |= {"prev_length": float(fixed.integers(1, 9)), "prev_pred": float(draw.gamma(2.0))}
        found.append(row)
    return found


def _babylm(fixed: Draw, draw: Draw) -> Rows:
    subsets = {"blimp": ["agreement", "binding"], "ewok": ["spatial"],
               "entity_tracking": ["regular_0_ops", "regular_1_ops", "ambiref_0_ops"]}  # fmt: skip
    found: Rows = []
    for task, names in subsets.items():
        for place, subset in enumerate(names):
            for _ in range(5 + 3 * place):
                row = {"group": f"{task}/{subset}", "task": task, "subset": subset, "ties": float(draw.random() < 0.1)}
                columns = ("credit", "credit at 0.5", "credit at 2")
                found.append(row | {name: float(draw.random() < 0.6) for name in columns})
    for task in ("wug_adj", "wug_past"):
        for _ in range(12):
            row = {"group": f"{task}/{task}", "task": task, "subset": task, "ties": 0.0, "ratio": fixed.random()}
            columns = ("credit", "credit at 0.5", "credit at 2")
            row |= {name: float(draw.random() < 0.6) for name in columns}
            found.append(row | {name: float(draw.random()) for name in ("prob", "prob at 0.5", "prob at 2")})
    return found


def _variants(fixed: Draw, draw: Draw) -> Rows:
    found: Rows = []
    for assay, n in (("large", 40), ("other", 30), ("small", 6)):  # 6 variants have no best tenth
        for _ in range(n):
            measured = fixed.normal()
            found.append({"group": assay, "measured": measured, "effect": float(measured + draw.normal())})
    return found


def _translation(fixed: Draw, draw: Draw) -> Rows:
    words, found = ["the", "cat", "dog", "sleeps", "here", "now"], []
    for _ in range(40):
        reference = fixed.choice(words, 8).tolist()
        text = [str(draw.choice(words)) if draw.random() < 0.3 else word for word in reference]
        repeated = sum(one == other for one, other in pairwise(text))
        found.append({"group": "pairs", "reference": " ".join(reference), "text": " ".join(text),
                      "repeated_words": repeated, "words_after_words": 7, "passes": int(draw.integers(3, 9)),
                      "milliseconds": float(draw.gamma(5.0))})  # fmt: skip
    return found


def _correction(fixed: Draw, draw: Draw) -> Rows:
    """Of one file with one reference a text, and one with two."""
    words, found = ["the", "cat", "dog", "sleeps", "here", "now"], []
    for k in range(50):
        meant = fixed.choice(words, 8).tolist()
        written, table = ([str(fixed.choice(words)) if fixed.random() < share else word for word in meant]
                          for share in (0.3, 0.2))  # fmt: skip
        corrected = [word if draw.random() < 0.6 else old for old, word in zip(written, meant, strict=True)]
        references = [" ".join(meant)]
        if k % 2:
            references.append(" ".join(str(fixed.choice(words)) if fixed.random() < 0.2 else word for word in meant))
        row: dict[str, Any] = {"group": ("one", "two")[k % 2], "written": " ".join(written), "references": references,
                               "by_table": " ".join(table), "corrected": " ".join(corrected)}  # fmt: skip
        for who in WHO:
            row[f"{who}_gleu"] = [gleu_counts(row["written"], row[who], one) for one in references]
            row[f"{who}_exact"] = float(row[who] in references)
            row[f"{who}_counts"] = counts(row["written"], row[who], references[0]) if len(references) == 1 else []
        found.append(row)
    return found


def _perplexity(fixed: Draw, draw: Draw) -> Rows:
    found = []
    for k in range(40):
        n = int(fixed.integers(3, 20))
        found.append({"group": f"file{k % 2}", "score": float(-draw.gamma(2.0 * n)), "n_tokens": n + k % 3,
                      "n_words": n, "n_characters": 5 * n, "n_bytes": 5 * n + k % 2, "normalised": ""})  # fmt: skip
    return found


ROWS: dict[str, Callable[[Draw, Draw], Rows]] = {
    "acceptability": _acceptability, "babylm": _babylm, "babylm_reading": _babylm_reading, "bear": _bear,
    "bias_gaussian": _bias_gaussian, "blimp": _pairs, "correction": _correction, "crows_pairs": _crows_pairs,
    "lama": _lama, "minimal_pairs": _pairs, "perplexity": _perplexity, "plausibility": _plausibility,
    "pronouns": _pronouns, "reading_times": _reading_times, "stereoset": _stereoset, "syntaxgym": _syntaxgym,
    "translation": _translation, "variants": _variants,
}  # fmt: skip
