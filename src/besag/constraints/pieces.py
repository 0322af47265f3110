"""What each token of a vocabulary writes: its letters, and whether they join the word before.

A text is what `besag.places.filling.filled` writes: what stands around the places, and at each place the token's
letters, after a space of their own ("▁man", "Ġman", "man") or joined to the word before ("##ing", "ing"). Three things
make what is written depend on the neighbours, and a table of tokens must know them:

- the first token of a text is written alone, with all its marks ("##ing");
- after a token that is nothing, or ends in a space, nothing is joined, and a space between masks is not doubled;
- bytes of an unfinished letter, written as "\\ufffd" alone, become a letter together with their neighbours.

So a table of letters is exact for all other tokens, and says for which it is not.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from besag.arrays import Bools
from besag.places.filling import UNFINISHED, filled
from besag.vocabulary import Encoded, Vocabulary


class Pieces(NamedTuple):
    """Of V tokens; those that may not stand in a text write nothing here."""

    letters: tuple[str, ...]  # what each writes after another token, without white space around it
    first: tuple[str, ...]  # what each writes at the beginning of a text
    joined: Bools  # (V,) to the word before
    ends: Bools  # (V,) a word: nothing is joined to it
    torn: Bools  # (V,) bytes of a letter are missing somewhere in it
    spaces: tuple[str, ...]  # white space that tokens bring with them; seen only where they are written with torn ones


@lru_cache(maxsize=8)
def pieces(vocabulary: Vocabulary, width: int, outcomes: tuple[int, ...]) -> Pieces:
    """What each of `outcomes` writes, in tables of `width` tokens."""
    mask_id = vocabulary.mask_id
    assert mask_id is not None  # a sheet has free places, so there is a mask
    one, two = _masks(vocabulary, 1), _masks(vocabulary, 2)
    before = filled(vocabulary, one, [0], [mask_id])
    string = vocabulary.tokenizer.convert_tokens_to_string
    letters, first = [""] * width, [""] * width
    joined, ends = np.zeros((2, width), dtype=bool)
    spaces = {" "}
    for id in outcomes:
        written = filled(vocabulary, two, [0, 1], [mask_id, id]).removeprefix(before)
        letters[id], joined[id] = written.strip(), not written[:1].isspace()
        first[id] = filled(vocabulary, one, [0], [id])
        raw = str(string([vocabulary.token(id)]))
        ends[id] = not raw or raw[-1].isspace()
        spaces |= {raw[: len(raw) - len(raw.lstrip())], raw[len(raw.rstrip()) :]}
    joined &= np.array([bool(piece) for piece in letters])  # nothing cannot be joined
    torn = np.array([UNFINISHED in piece for piece in letters])
    return Pieces(tuple(letters), tuple(first), joined, ends, torn, tuple(sorted(spaces)))


def _masks(vocabulary: Vocabulary, count: int) -> Encoded:
    """A text of masks and spaces, as a tokenizer would read it that has no special tokens."""
    token, every = vocabulary.mask_token or "", np.arange(count)
    text, start = " ".join([token] * count), every * (len(token) + 1)
    return Encoded(
        text=text,
        span=(0, len(text)),
        ids=np.full(count, vocabulary.mask_id),
        tokens=(token,) * count,
        offsets=np.stack([start, start + len(token)], axis=1),
        words=every,
        special=np.zeros(count, dtype=bool),
        places=every,
        unknown=0,
        word_policy="given",
    )
