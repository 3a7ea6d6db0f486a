"""Values of settings that need more than a type: secrets, URLs, the way to Kafka. No message of theirs
quotes what may hold a password."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, SecretStr, model_validator

from schemas.secret_files import read_secret

_URL_PASSWORD = re.compile(r"(?<=://)(?:([^/@\s:]*):)?[^\s]*@")


class SettingsError(ValueError):
    """A setting that can't be used; the message names where it came from, the field and the remedy."""


def revealed(secret: SecretStr | None) -> str | None:
    """For whoever sends it; nobody shows it."""
    return secret.get_secret_value() if secret is not None else None


class KafkaSecurity(BaseModel):
    """`RAMPGATE_KAFKA_SECURITY` as JSON. Secrets are named by file, never given inline."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    user: str | None = None
    secret_file: Path | None = None
    ca_file: Path | None = None
    allow_plaintext: bool = False

    @model_validator(mode="after")
    def _sasl_is_whole(self) -> Self:
        if self.protocol.startswith("SASL") and None in (self.mechanism, self.user, self.secret_file):
            raise ValueError(
                f"{self.protocol} needs mechanism, user and secret_file (the file that holds the password)"
            )
        return self

    def secret(self) -> str:
        """The password. Raises SettingsError where its file can't be read or is empty."""
        try:
            return read_secret(self.secret_file or Path())
        except ValueError as error:
            raise SettingsError(f"kafka_security.secret_file: {error}") from error


def usable_url(value: str, *schemes: str) -> str:
    """The URL itself. ValueError in words of our own: those of the clients quote parts of a password with a / in it."""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in schemes and bool(parts.hostname or parts.path) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        named = " or ".join(f"{scheme}://" for scheme in schemes)
        raise ValueError(
            f"must be a URL that begins with {named}; special signs in a user's name or password have to be "
            "percent-encoded"
        )
    return value


def json_object(key: str, text: str) -> dict[str, Any]:
    """Raises SettingsError that tells where the text is wrong, and nothing of it: it may hold a password by mistake."""
    try:
        value = json.loads(text)
    except ValueError as error:
        at = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise SettingsError(f"{key}: not valid JSON{at}") from None
    if not isinstance(value, dict):
        raise SettingsError(f"{key}: must be a JSON object")
    return value


def hide_password(text: str) -> str:
    """A text with what stands before the `@` of any URL hidden, but for the user's name beside a password."""
    return _URL_PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] is not None else "***@", text)
