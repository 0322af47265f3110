"""Does a tokenizer reach its vocabulary? A token that no text is read as is never scored, asked about or sampled.

A folder with a vocabulary and nothing that says how text is read gets its family's habits: word pieces in lower case,
say, for residues in capitals, and every text becomes unknown tokens. So tokens from all over the vocabulary are written
as text and read again. Knows vocabularies. Refuses to know networks.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

from besag.errors import quoted
from besag.vocabulary import Vocabulary

TRIED = 200  # tokens, from all over the vocabulary
FEW = 5  # fewer are no evidence
# Of their own tokens, tokenizers read again 50 to 100 of 100: parts of words read by themselves may become others.
LEAST_SHARE = 0.1
# Tokens in capitals come back as often as the others, where there are any; to a tokenizer that lower-cases, none does.
LEAST_CAPITALS, LEAST_CAPITALS_SHARE = 0.25, 0.02


class Reach(NamedTuple):
    """Tokens that were written as text, and those of them that were read again."""

    tried: list[str]
    back: list[str]


def tried(vocabulary: Vocabulary) -> Reach:
    """Write tokens as text, each by itself, and read them again."""
    ordinary = sorted({*range(vocabulary.size)} - vocabulary.special_ids)
    written = {id: _written(vocabulary, id) for id in ordinary[:: max(1, len(ordinary) // TRIED)]}
    texts = {id: text for id, text in written.items() if text.strip() and "\N{REPLACEMENT CHARACTER}" not in text}
    if not texts:
        return Reach([], [])
    read = vocabulary.tokenizer(list(texts.values()), add_special_tokens=False)["input_ids"]
    back = [text for (id, text), ids in zip(texts.items(), read, strict=True) if id in ids]
    return Reach(list(texts.values()), back)


def _written(vocabulary: Vocabulary, id: int) -> str:
    text = str(vocabulary.tokenizer.convert_tokens_to_string([vocabulary.token(id)]))
    return text[2:] if text.startswith("##") and len(text) > 2 else text  # the inside of a word, as word pieces mark it


def out_of_reach(vocabulary: Vocabulary) -> str:
    """What is wrong, as the end of a sentence about the tokenizer; nothing where its vocabulary is reached."""
    whole = tried(vocabulary)
    capitals = Reach([text for text in whole.tried if _capital(text)], [text for text in whole.back if _capital(text)])
    some, all_of_them = len(capitals.tried) >= FEW, len(whole.tried)
    if some and len(capitals.tried) >= LEAST_CAPITALS * all_of_them and _share(capitals) < LEAST_CAPITALS_SHARE:
        return _said(capitals, "tokens with capitals ", "it seems to lower-case what the vocabulary has in capitals")
    if all_of_them >= FEW and _share(whole) < LEAST_SHARE:
        return _said(whole, "tokens ", "it and its vocabulary do not belong together")
    return ""


def warn_of_no_reach(vocabulary: Vocabulary, name: str) -> None:
    if lost := out_of_reach(vocabulary):
        warnings.warn(f"the tokenizer of {quoted(name)} {lost}", stacklevel=4)


def _capital(text: str) -> bool:
    return text != text.lower()


def _share(reach: Reach) -> float:
    return len(reach.back) / len(reach.tried)


def _said(reach: Reach, what: str, why: str) -> str:
    lost = next(text for text in reach.tried if text not in reach.back)
    return (
        f"does not reach its vocabulary: of {len(reach.tried)} {what}that were written as text, {len(reach.back)} were "
        f"read again (not {quoted(lost)}); {why}"
    )
