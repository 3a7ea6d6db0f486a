"""Seals what others than our own programs could write: one secret, a purpose for each kind of thing."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field, replace
from typing import Final

SHORT: Final = 16
"""Bytes of a seal that stands before its value."""


@dataclass(frozen=True)
class Seal:
    """Makes and checks seals with a secret. `about` is what they are for, so that nothing passes for something else."""

    secret: bytes = field(default=b"", repr=False)
    about: bytes = b""

    def purpose(self, about: bytes) -> Seal:
        """Returns the seal for this purpose, with the same secret."""
        return replace(self, about=about)

    def key(self) -> bytes:
        """Returns a key of this secret for this purpose alone."""
        return self._over(b"")

    def of(self, content: bytes) -> str:
        """Returns the seal over a content, in hexadecimal digits."""
        return self._over(content).hex()

    def holds(self, given: str | bytes | None, content: bytes) -> bool:
        """Returns whether what is given, None for nothing, is the seal over a content in hexadecimal digits."""
        if given is None:
            return False
        told = given if isinstance(given, bytes) else given.encode(errors="replace")
        return hmac.compare_digest(told, self.of(content).encode())

    def sealed(self, key: str, value: bytes) -> bytes:
        """Returns the value of a key behind its seal."""
        return self._short(key, value) + value

    def opened(self, key: str, held: bytes) -> bytes | None:
        """Returns the value; None for what was not sealed with this secret, for this purpose and key."""
        value = held[SHORT:]
        return value if hmac.compare_digest(held[:SHORT], self._short(key, value)) else None

    def _short(self, key: str, value: bytes) -> bytes:
        name = key.encode()
        return self._over(b"%d:%b%b" % (len(name), name, value))[:SHORT]

    def _over(self, content: bytes) -> bytes:
        return hmac.digest(self.secret, self.about + content, "sha256")
