"""A vocabulary over the wire: the tokenizer as its own JSON, and which of its tokens are special."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from besag.errors import BesagError
from besag.vocabulary import Vocabulary

SPECIAL = ("bos_token", "eos_token", "cls_token", "sep_token", "pad_token", "unk_token", "mask_token")


def written(vocabulary: Vocabulary) -> dict[str, Any]:
    """As JSON; a tokenizer that is Python code cannot be sent."""
    tokenizer = vocabulary.tokenizer
    if not tokenizer.is_fast:
        raise BesagError("this model's tokenizer is Python code, which is not sent: ask /joint without besag.connect")
    special = {name: getattr(tokenizer, name) for name in SPECIAL if getattr(tokenizer, name) is not None}
    return {"tokenizer": tokenizer.backend_tokenizer.to_str(), "special": special}


def read_vocabulary(sent: Mapping[str, Any]) -> Vocabulary:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    fast: Any = PreTrainedTokenizerFast  # its constructor has no types
    special = {name: str(sent["special"][name]) for name in SPECIAL if name in sent["special"]}
    return Vocabulary(fast(tokenizer_object=Tokenizer.from_str(sent["tokenizer"]), **special))
