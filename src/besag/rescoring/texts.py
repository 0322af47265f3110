"""What a model is shown of a hypothesis: its case and its full stop, as the model knows text.

A recogniser writes MISTER QUILTER IS HERE, a model has read "Mister quilter is here." What is scored is the text after
these options; what is written back is the hypothesis as it was. Names stay lower-case: nobody tells which they are.
"""

from __future__ import annotations

import re
from typing import Literal

Casing = Literal["keep", "lower", "upper", "sentence"]
_I = re.compile(r"\bi\b(?=$|[\s'’.,;:!?])")  # the pronoun, also in i'm and i'll


def prepared(text: str, casing: Casing = "keep", full_stop: bool = False) -> str:
    """The text that is scored.

    >>> prepared("HE SAID I'M HERE", "sentence", full_stop=True)
    "He said I'm here."
    """
    if casing == "upper":
        text = text.upper()
    elif casing != "keep":
        text = text.lower()
    if casing == "sentence":
        text = _I.sub("I", text)
        text = text[:1].upper() + text[1:]
    return f"{text.rstrip()}." if full_stop and not text.rstrip().endswith((".", "!", "?", "…")) else text
