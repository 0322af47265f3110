"""A score as data: a dictionary for JSON and a table for pandas.

Knows what JSON cannot write. Refuses to leave out anything that says what the number is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.errors import require
from besag.results.data import describe, json_ready
from besag.results.words import meaning

if TYPE_CHECKING:
    from pandas import DataFrame

    from besag.scores.score import Score


def to_dict(score: Score) -> dict[str, Any]:
    """All of a score, its tokens as a list of dictionaries."""
    whole = {
        "text": score.text,
        "status": score.status,
        "facts": score.facts,
        "total": score.total,
        "mean": score.mean,
        "standard_error": score.standard_error,
        "extra": score.extra,
        "base": score.base,
        "unit": score.unit,
        "method": score.method,
        "normalised": score.normalised,
        "meaning": meaning(score.normalised),
        "perplexity": score.perplexity,
        "bits_per_character": score.bits_per_character,
        "bits_per_byte": score.bits_per_byte,
        "n_tokens": len(score),
        "unknown": score.unknown,
        "specials": score.specials,
        "word_policy": score.word_policy,
        "model": score.model,
        "dtype": score.dtype,
        "tokens": _tokens(score),
    }
    return dict(json_ready(whole))


def _tokens(score: Score) -> list[dict[str, Any]]:
    nothing = [None] * len(score)
    columns = {
        "token": score.tokens,
        "id": score.ids.tolist(),
        "start": score.offsets[:, 0].tolist(),
        "end": score.offsets[:, 1].tolist(),
        "word": score.words.tolist(),
        "log_prob": score.log_probs.tolist(),
        "rank": nothing if score.rank is None else score.rank.tolist(),
        "entropy": nothing if score.entropy is None else score.entropy.tolist(),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def to_pandas(score: Score) -> DataFrame:
    """One row a token; what was not asked for (rank, entropy) is missing, never 0."""
    pandas = require("pandas", extra="eval")
    frame: DataFrame = pandas.DataFrame(
        {
            "token": pandas.Series(score.tokens, dtype=object),
            "log_prob": score.log_probs,
            "surprisal": score.surprisals,
            "prob": np.exp(score.log_probs * math.log(score.base)),
            "rank": pandas.array([None] * len(score) if score.rank is None else score.rank, dtype="Int64"),
            "entropy": np.full(len(score), np.nan) if score.entropy is None else score.entropy,
            "word": score.words,
            "start": score.offsets[:, 0],
            "end": score.offsets[:, 1],
        }
    ).rename_axis("token_id")
    return describe(frame, score, specials=score.specials, word_policy=score.word_policy)
