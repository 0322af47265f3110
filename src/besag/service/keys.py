"""Who may ask: bearer keys from a file, one a line; blank lines and those that begin with # say nothing.

Every key is compared with what was sent, whole and in constant time, so that how long a refusal takes tells nothing.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from pathlib import Path

from besag.errors import BesagError, quoted

SHORTEST = 16


class Keys:
    """No file: anybody."""

    def __init__(self, path: str | Path | None = None) -> None:
        self._digests: list[bytes] = []
        if path is None:
            return
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as problem:
            raise BesagError(f"the keys in {quoted(str(path))} cannot be read: {problem}") from None
        keys = [key for line in lines if (key := line.strip()) and not key.startswith("#")]
        if not keys:
            raise BesagError(f"{quoted(str(path))} holds no key: write one a line, of {SHORTEST} letters or more")
        if any(len(key) < SHORTEST for key in keys):
            raise BesagError(f"a key in {quoted(str(path))} has less than {SHORTEST} letters, and could be guessed")
        self._digests = [sha256(key.encode()).digest() for key in keys]

    def admit(self, authorization: str) -> bool:
        """Does this header hold one of the keys?"""
        if not self._digests:
            return True
        scheme, _, key = authorization.partition(" ")
        sent = sha256(key.strip().encode("utf-8", "surrogateescape")).digest()
        found = False
        for digest in self._digests:
            found |= hmac.compare_digest(digest, sent)
        return found and scheme.lower() == "bearer"
