r"""Texts that no encoding can write, and how they are shown.

Python's strings can hold halves of surrogate pairs: JSON can say them ("\ud800"), and a byte of a file that is not
UTF-8 is read as one (0xe9 as U+DCE9, what Python calls surrogateescape), so that nothing of it is lost. Such a text has
no characters that a tokenizer could read: its row gets the status "undecodable". Knows strings, and nothing else.
"""

from __future__ import annotations

import re
from typing import Any

_HALF = re.compile("[\ud800-\udfff]")


def is_text(text: str) -> bool:
    """Is it made of characters alone?"""
    return text.isascii() or _HALF.search(text) is None


def shown(text: str) -> str:
    r"""The text with escapes for what is no character: a byte that was not UTF-8 as \xe9, half of a pair as \ud800.

    >>> print(shown(b"caf\xe9".decode("utf-8", "surrogateescape")))
    caf\xe9
    """
    return text if text.isascii() else _HALF.sub(_escape, text)


def all_shown(value: Any) -> Any:
    """The same of every text in a nest of lists and mappings."""
    if isinstance(value, str):
        return value if is_text(value) else shown(value)
    if isinstance(value, dict):
        return {all_shown(key): all_shown(one) for key, one in value.items()}
    return [all_shown(one) for one in value] if isinstance(value, list | tuple) else value


def _escape(half: re.Match[str]) -> str:
    code = ord(half[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
