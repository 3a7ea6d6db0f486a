"""Reads what several rooms take from settings and flags: the way to Kafka, secrets in files, durations and moments.

A person types a duration as `90`, `90s`, `15m`, `24h` or `7d`. No message quotes what a secret's file holds.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True)
class KafkaAccess:
    brokers: tuple[str, ...]
    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None


def read_secret(path: Path) -> str:
    """Returns the file's text without space around it. Raises ValueError, without a word of the text, where there is
    none."""
    try:
        text = path.read_text().strip()
    except OSError as error:
        raise ValueError(f"can't read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text") from None
    if not text:
        raise ValueError(f"{path} is empty")
    return text


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_FORM = re.compile(r"\s*(\d{1,12})\s*([smhd]?)\s*")


def parse_seconds(text: str) -> int:
    """Reads a duration as whole seconds, at least 1. Raises ValueError with what would be right."""
    match = _FORM.fullmatch(text)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if seconds < 1:
        raise ValueError(f"{text[:32]!r} is no duration: give whole seconds, or a number with s, m, h or d, like 24h")
    return seconds


def parse_moment(text: str) -> int:
    """Returns milliseconds since 1970, read from how long ago (`2h`, `7d`) or an ISO 8601 time (UTC where it names no
    zone).

    Raises ValueError with what would be right.
    """
    try:
        return round((time.time() - parse_seconds(text)) * 1000)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text[:64]!r} is neither a duration like 2h nor an ISO 8601 time like 2026-03-01T12:00Z"
        ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
