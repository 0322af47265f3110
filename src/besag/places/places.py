"""The places of a text that are asked together: those somebody names, or its masks.

Knows text, tokens and where they stand; `positions.py` says what a position means. Refuses to know models and laws, and
to take a word of several tokens for one. A text longer than the model is cut to a window around the places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from besag.arrays import Ints
from besag.errors import BesagError, quoted
from besag.places.positions import Position, TokenisedText, one_place, position_list
from besag.places.reading import MASK, read, unknown_around
from besag.places.tokens import token_ids
from besag.places.windows import ends, window_around
from besag.vocabulary import Encoded, Vocabulary


@dataclass(frozen=True, eq=False)
class Places:
    encoded: Encoded
    ids: Ints  # (L,) as shown to the model: the whole text, or a window of it
    at: tuple[int, ...]  # where the places stand in `ids`
    positions: tuple[int, ...]  # where they stand in `encoded.ids`
    gold: tuple[int, ...] | None  # the text's own tokens there; None when one is hidden by a mask or unknown
    unknown: int = 0  # tokens around them that the tokenizer does not know

    @property
    def shown(self) -> Encoded:
        """What of the text the model is shown, as a text whose places are these."""
        (lead, trail), length, start = ends(self.encoded), len(self.encoded.ids), self.positions[0] - self.at[0]
        inside = np.arange(lead + start, start + len(self.ids) - trail)
        take = np.concatenate([np.arange(lead), inside, np.arange(length - trail, length)])
        return replace(
            self.encoded,
            ids=self.ids,
            tokens=tuple(self.encoded.tokens[position] for position in take),
            offsets=self.encoded.offsets[take],
            words=self.encoded.words[take],
            special=self.encoded.special[take],
            places=np.array(self.at),
        )

    @property
    def title(self) -> str:
        """The places as a message names them: "'▁man' (token 2) and '▁is' (token 3)"."""
        names = [f"{self.encoded.tokens[position].strip()!r} (token {position})" for position in self.positions]
        return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def find(
    vocabulary: Vocabulary,
    text: str,
    positions: Sequence[Position] | None = None,
    max_length: int | None = None,
    *,
    gold: Sequence[str] | None = None,
    needs_context: bool = True,
) -> Places:
    """The places that `positions` name, one token each; None means every mask of the text.

    `gold` names the true tokens where masks stand. A context of nothing but unknown tokens is refused, unless somebody
    who looks at many places of a text has seen to the whole of it (`needs_context`).
    """
    _refuse_without_mask(vocabulary)
    encoded = read(vocabulary, text)
    if positions is None:
        found = tuple(np.flatnonzero(encoded.ids == vocabulary.mask_id).tolist())
        if not found:
            raise BesagError(f"{quoted(text)} has no mask: write {MASK} where tokens are asked, or give positions.")
    else:
        found = _named(TokenisedText.of(vocabulary, text, encoded), positions)
    places = of_tokens(vocabulary, encoded, found, max_length, gold=gold)
    return replace(places, unknown=unknown_around(vocabulary, places.shown, places.at)) if needs_context else places


def of_tokens(
    vocabulary: Vocabulary,
    encoded: Encoded,
    tokens: tuple[int, ...],
    max_length: int | None = None,
    *,
    gold: Sequence[str] | None = None,
) -> Places:
    """Return the places of some tokens of a text that is read already: many pairs of a text need not read it again."""
    _refuse_without_mask(vocabulary)
    ids, start = window_around(encoded, tokens, max_length)
    own = tuple(encoded.ids[list(tokens)].tolist())
    if gold is not None:
        own = _gold(vocabulary, encoded, tokens, own, gold)
    known = not {vocabulary.mask_id, vocabulary.unknown_id} & {*own}
    return Places(encoded, ids, tuple(token - start for token in tokens), tokens, own if known else None)


def _refuse_without_mask(vocabulary: Vocabulary) -> None:
    if vocabulary.mask_id is None or vocabulary.mask_token is None:
        raise BesagError("this tokenizer has no mask token, so no place of a text can be hidden and asked.")


def _named(where: TokenisedText, positions: Sequence[Position]) -> tuple[int, ...]:
    """The tokens at the places named, in the order given."""
    named: dict[int, Position] = {}
    for position in position_list("positions", positions):
        token = one_token(where, position)
        if token in named:
            raise BesagError(
                f"{named[token]!r} and {position!r} are the same position, token {token} "
                f"({where.tokens[token].strip()!r}) of {quoted(where.text)}: places asked together must differ."
            )
        named[token] = position
    if not named:
        raise BesagError("positions is empty: give token indices, words or (start, end) spans; None means all masks.")
    return tuple(named)


def one_token(where: TokenisedText, position: Position) -> int:
    """The one token at a place; a token of no character (a lone "▁") before a word is not what was asked for."""
    tokens = one_place(where, position).tokens
    tokens = where.visible(tokens) or tokens
    if len(tokens) > 1:
        raise BesagError(
            f"{position!r} is {len(tokens)} tokens ({' '.join(where.tokens[token] for token in tokens)}): give their "
            f"positions {tokens} to joint(...) for a block joint over all of them."
        )
    return tokens[0]


def _gold(
    vocabulary: Vocabulary, encoded: Encoded, found: tuple[int, ...], own: tuple[int, ...], gold: Sequence[str]
) -> tuple[int, ...]:
    if isinstance(gold, str) or len(gold) != len(found):
        raise BesagError(f"gold={gold!r} must name {len(found)} words, one for each place.")
    named = tuple(
        token_ids(vocabulary, encoded, position, [word])[0] for position, word in zip(found, gold, strict=True)
    )
    for position, word, token, stands in zip(found, gold, named, own, strict=True):
        if stands not in (vocabulary.mask_id, token):
            raise BesagError(
                f"gold names {word!r} for token {position}, where the text says {encoded.tokens[position]!r}: gold is "
                "for places that a mask hides."
            )
    return named
