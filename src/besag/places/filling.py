"""A text with tokens filled in at some of its places, written as its author wrote the rest.

Knows tokenizers by one thing: how each turns a list of tokens into a string. What stands around the places is never
decoded, so capitals, spaces and signs that the tokenizer does not know stay as they are. A letter whose bytes are
spread over neighbouring places is put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from besag.places.tokens import Token
from besag.vocabulary import Encoded, Vocabulary

UNFINISHED = "\ufffd"  # how a string says that bytes of a letter are missing


class Filling(NamedTuple):
    """Tokens for all places of a text, and their joint probability."""

    tokens: tuple[Token, ...]
    text: str  # with the tokens filled in
    log_prob: float  # nats
    prob: float


def filled(vocabulary: Vocabulary, encoded: Encoded, positions: Sequence[int], ids: Sequence[int]) -> str:
    """The text with token ids[i] at position positions[i]."""
    value = dict(zip(positions, ids, strict=True))
    text, base, end, run = "", "", 0, list[int]()
    for position in sorted(value):
        start, stop = encoded.offsets[position].tolist()
        if text.endswith(UNFINISHED) and run[-1] == position - 1:
            run.append(position)  # decoded again, with the bytes before
        else:
            base, run = text + encoded.text[end:start], [position]
            masks = _mask(vocabulary, encoded, position - 1) and _mask(vocabulary, encoded, position)
            other = value.get(position - 1, encoded.ids[position - 1]) != encoded.ids[position - 1]
            if other and not text[-1:].strip():
                base = (
                    text  # the token before, drawn anew, is nothing but a space, which stands there or begins the text
                )
            elif masks and end == start and not base[-1:].isspace() and vocabulary.spaced:
                base += " "  # two masks written as one: the tokens say whether they are one word
        before = run[0] - 1
        previous = None if before < 0 or encoded.special[before] else value.get(before, int(encoded.ids[before]))
        written, glued = vocabulary.mask_token or "", False
        if value[position] != vocabulary.mask_id or len(run) > 1:
            written, glued = _written(vocabulary, previous, [value[place] for place in run])
        text, end = (base.rstrip() if glued else base) + written, stop
    return text + encoded.text[end:]


def _mask(vocabulary: Vocabulary, encoded: Encoded, position: int) -> bool:
    return position >= 0 and int(encoded.ids[position]) == vocabulary.mask_id


def _written(vocabulary: Vocabulary, previous: int | None, ids: Sequence[int]) -> tuple[str, bool]:
    """Tokens as a string, and whether they belong to the word before ("##ing") rather than to one of their own."""
    string, tokens = vocabulary.tokenizer.convert_tokens_to_string, [vocabulary.token(id) for id in ids]
    if previous is None:
        return str(string(tokens)).strip(), False
    first = vocabulary.token(previous)
    alone, both = str(string([first])), str(string([first, *tokens]))
    if not both.startswith(alone):  # the tokenizer writes the one differently beside the others
        return str(string(tokens)).strip(), False
    written = both[len(alone) :]
    apart = not alone or alone[-1].isspace() or written[:1].isspace()  # some tokens are nothing but a space
    return written.strip(), bool(written) and not apart
