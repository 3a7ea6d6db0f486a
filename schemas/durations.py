"""Durations as a person types them: `90`, `90s`, `15m`, `24h`, `7d`."""

from __future__ import annotations

import re

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_FORM = re.compile(r"\s*(\d{1,12})\s*([smhd]?)\s*")


def parse_seconds(text: str) -> int:
    """Whole seconds, at least 1. Raises ValueError with what would be right."""
    match = _FORM.fullmatch(text)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if seconds < 1:
        raise ValueError(f"{text[:32]!r} is no duration: give whole seconds, or a number with s, m, h or d, like 24h")
    return seconds
