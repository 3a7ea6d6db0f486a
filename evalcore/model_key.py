"""The model's key from the environment, for who evaluates a gate without the services' settings (contracts §7)."""

from __future__ import annotations

import os
from pathlib import Path

from schemas.secret_files import read_secret

KEY = "RAMPGATE_MODEL_KEY"
FILE = f"{KEY}_FILE"


def model_key() -> str | None:
    """The key itself goes before its file, as with the settings. Raises ValueError, without a word of the file's text,
    where the file that is named holds none: without a key each call would be refused, and nobody would know why."""
    key, file = os.environ.get(KEY), os.environ.get(FILE)
    if key or not file:
        return key
    try:
        return read_secret(Path(file))
    except ValueError as error:
        raise ValueError(f"{FILE}: {error}") from error
