"""Times of records that decide by which came last: they carry a zone, and none lies ahead of when it was appended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from pydantic import AfterValidator, AwareDatetime

MOST_AHEAD: Final = timedelta(seconds=60)
"""How far the clock of who writes a record may be ahead of the broker's."""


def _in_utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("is beyond the calendar of UTC") from error


ZonedTime = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A time with a zone, as UTC has it."""


def is_ahead(at: datetime, appended_ms: int) -> bool:
    """Tells whether a time lies so far ahead of when its record was appended that the record is refused."""
    return at - datetime.fromtimestamp(appended_ms / 1_000, UTC) > MOST_AHEAD
