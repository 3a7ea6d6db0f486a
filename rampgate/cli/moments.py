"""A moment as a person types it: how long ago (`90s`, `2h`, `7d`), or an ISO 8601 time."""

from __future__ import annotations

from datetime import UTC, datetime

from rampgate.cli.common import Failure
from schemas.durations import parse_seconds


def parse_moment(text: str | None, flag: str, now_ms: int) -> int | None:
    """Milliseconds since 1970; None for None. A time without a zone is UTC. Raises Failure naming the flag."""
    if text is None:
        return None
    try:
        return now_ms - parse_seconds(text) * 1000
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Failure(
            f"{flag}: {text[:64]!r} is neither a duration like 2h nor an ISO 8601 time like 2026-03-01T12:00Z"
        ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
