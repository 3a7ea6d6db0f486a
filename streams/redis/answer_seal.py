"""Seals what is kept where others can write: an HMAC over the name and the value, with a key that is not kept there."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Coroutine
from typing import Any

from schemas.dead_letters import Sealing

SEAL_BYTES = 16
PURPOSE = b"rampgate judge answer\0"


class AnswerSeal:
    """Seals answers with an installation's secret, and opens those that it sealed. `purpose`: what is sealed, so that
    nothing passes for something else."""

    def __init__(self, secret: bytes, purpose: bytes = PURPOSE) -> None:
        self._secret, self._purpose = secret, purpose

    def sealed(self, key: str, answer: bytes) -> bytes:
        return self._of(key, answer) + answer

    def opened(self, key: str, value: bytes) -> bytes | None:
        """Returns the answer, or None for what was not sealed with this secret for this key."""
        seal, answer = value[:SEAL_BYTES], value[SEAL_BYTES:]
        return answer if hmac.compare_digest(seal, self._of(key, answer)) else None

    def _of(self, key: str, answer: bytes) -> bytes:
        name = key.encode()
        said = b"%b%d:%b%b" % (self._purpose, len(name), name, answer)
        return hmac.digest(self._secret, said, "sha256")[:SEAL_BYTES]


def shared_seal(
    secret: str | None, installation: Sealing, purpose: bytes
) -> Callable[[], Coroutine[Any, Any, AnswerSeal]]:
    """Returns what gives the seal of all workers: by the secret, else by the installation's key."""

    async def seal() -> AnswerSeal:
        return AnswerSeal(secret.encode() if secret is not None else (await installation()).key, purpose)

    return seal
