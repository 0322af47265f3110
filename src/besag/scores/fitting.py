"""p(n) from texts: they are read into tokens and counted. How counts become a law is a matter of `length.py`."""

from __future__ import annotations

from collections.abc import Iterable

from besag.checks import checked
from besag.conditionals.contract import Conditionals
from besag.engine import Idle
from besag.scores.length import LengthModel
from besag.scores.scoring import batches


@checked
def length_model(conditionals: Conditionals, texts: Iterable[str]) -> LengthModel:
    """The law of how many tokens a text has in the model's own vocabulary, fitted to these texts, read once."""
    encode = conditionals.vocabulary.encode
    encoded = (one for batch in batches(texts) if not isinstance(batch, Idle) for one in encode(batch))
    return LengthModel.fit((len(one.places) for one in encoded), fitted_with=conditionals.name)
