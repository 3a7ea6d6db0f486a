"""Gives the key of the nonces around judged turns. An edge: without a secret that is handed in, it reads the
environment's, or draws one for this process."""

from __future__ import annotations

import secrets
from functools import cache

from evalcore.scoring.chat_model import model_key, secret_of
from schemas.seals import Seal

SEAL_KEY = "RAMPGATE_SEAL_KEY"
PURPOSE = b"rampgate nonce around a judged turn"


def nonce_key(secret: str | None = None) -> bytes:
    """Returns a key for this purpose alone, derived from `secret`, else from RAMPGATE_SEAL_KEY or the model's key, each
    also in a file, as the settings have them. With none of them it is this process's own. Raises ValueError where a
    file holds no key."""
    secret = secret or secret_of(SEAL_KEY) or model_key()
    return Seal(secret.encode()).purpose(PURPOSE).key() if secret else _own()


@cache
def _own() -> bytes:
    return secrets.token_bytes(32)
