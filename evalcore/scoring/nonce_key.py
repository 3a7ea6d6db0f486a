"""Gives the key of the nonces around judged turns. An edge: without a secret that is handed in, it reads the
environment's, or draws one for this process."""

from __future__ import annotations

import os
import secrets
from functools import cache
from pathlib import Path

from evalcore.scoring.chat_model import model_key
from schemas.seals import Seal
from schemas.settings import read_secret

SEAL_KEY = "RAMPGATE_SEAL_KEY"
FILE = f"{SEAL_KEY}_FILE"
PURPOSE = b"rampgate nonce around a judged turn"


def nonce_key(secret: str | None = None) -> bytes:
    """Returns a key for this purpose alone, derived from `secret`, else from RAMPGATE_SEAL_KEY or the model's key, each
    also in a file, as the settings have them. With none of them it is this process's own. Raises ValueError where a
    file holds no key."""
    secret = secret or _of_environment()
    return Seal(secret.encode()).purpose(PURPOSE).key() if secret else _own()


def _of_environment() -> str | None:
    key, file = os.environ.get(SEAL_KEY), os.environ.get(FILE)
    if not key and file:
        try:
            return read_secret(Path(file))
        except ValueError as error:
            raise ValueError(f"{FILE}: {error}") from error
    return key or model_key()


@cache
def _own() -> bytes:
    return secrets.token_bytes(32)
