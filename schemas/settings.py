"""Durations as a person types them: `90`, `90s`, `15m`, `24h`, `7d`.

Connection facts that streams need and the front door reads from its settings.

Secrets in files. No message quotes what is in them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
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
    """The file's text without space around it. ValueError, without a word of the text, where there is none."""
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
    """Whole seconds, at least 1. Raises ValueError with what would be right."""
    match = _FORM.fullmatch(text)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if seconds < 1:
        raise ValueError(f"{text[:32]!r} is no duration: give whole seconds, or a number with s, m, h or d, like 24h")
    return seconds
