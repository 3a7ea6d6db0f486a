"""Ids and times as Opik wants them: version 7 UUIDs in lower case, UTC times with microseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import uuid6

from rampgate.local.opik.wire import bad_id, unreadable

ID_PATH = "{id:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}}"
EPOCH = "1970-01-01T00:00:00.000000Z"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_START = datetime(1970, 1, 1, tzinfo=UTC)
_END = datetime(2262, 4, 11, tzinfo=UTC)


def new_id() -> str:
    return str(uuid6.uuid7())


def parsed_id(value: Any, where: str) -> str:
    """Any UUID, in lower case; Refusal 400 when it isn't one."""
    text = value.lower() if isinstance(value, str) else ""
    if not _UUID.fullmatch(text):
        raise unreadable(f"{where}: {value!r} is not a UUID")
    return text


def version_7(value: Any, entity: str) -> str:
    """A version 7 UUID, in lower case; Refusal 400 in Opik's words when it isn't (`entity` is trace or span)."""
    text = value.lower() if isinstance(value, str) else ""
    match = _UUID.fullmatch(text)
    if match is None:
        raise unreadable(f"{entity} id: {value!r} is not a UUID")
    if match[1] != "7":
        raise bad_id(entity)
    return text


def now() -> str:
    return _text(datetime.now(UTC))


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parsed_time(value: Any, where: str) -> datetime:
    """An ISO 8601 time (or epoch seconds) within ClickHouse's range; Refusal 400 otherwise."""
    try:
        moment = datetime.fromtimestamp(value, UTC) if isinstance(value, int) else datetime.fromisoformat(value)
    except (ValueError, TypeError, OverflowError, OSError):
        raise unreadable(f"{where}: {value!r} is not a time") from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if not _START <= moment < _END:
        raise unreadable(f"{where}: must be between 1970-01-01 and 2262-04-11")
    return moment


def normal_time(value: Any, where: str) -> str:
    """As `parsed_time`, in the one spelling that is stored, so that text order is time order."""
    return _text(parsed_time(value, where))


def id_floor(value: Any, where: str) -> str:
    """The smallest version 7 UUID of that millisecond: Opik's from/to times bound the ids, not the start times."""
    milliseconds = int(parsed_time(value, where).timestamp() * 1000)
    digits = f"{milliseconds:012x}"
    return f"{digits[:8]}-{digits[8:]}-7000-8000-000000000000"
