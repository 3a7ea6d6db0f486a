"""Turns records into checked events: what all codecs share.

One call checks a whole batch, and a bad record spoils no other. Of each event a codec keeps the few facts that the join
needs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec
import orjson
from pydantic import TypeAdapter, ValidationError

from agents.policy import Policy
from schemas.dead_letters import Record, UnreadableRecord, clean
from schemas.outcomes import Cause, FilterReason


class SignalEvent(msgspec.Struct, gc=False):
    """An event of a declared user signal. `value`: 1, -1, or 0 for a withdrawal. `seq`, `tie`: as in
    `agents.join.turn.Signal`. `observed` is set for a reading of the table: when it was read (ms). `vertical`: as the
    event names it, until it is placed (`agents.newcomers`)."""

    index: int
    response_id: str
    value: int
    time: int
    seq: bytes = b""
    tie: int = 0
    observed: int = 0
    vertical: str = ""


class TraceFacts(msgspec.Struct, gc=False):
    """What the join needs of a trace. `trace`: the id's 16 bytes; `said`: the hash of its input; times in ms.
    `readable`: judges can read question and answer, where the trace has ended and its record has both. `forged`: its
    record had fields that only we write, without our seal.
    `wrote`: kind of signal -> code of the score that Opik holds, where the trace was read from there. `came` and
    `names`: as in `agents.join.versions`, where `names` is empty until the trace is placed (`agents.newcomers`)."""

    response_id: str
    trace: bytes = b""
    project: str = ""
    vertical: str = ""
    sub_agent: str = ""
    category: str = ""
    started: int = 0
    ended: int = 0
    judged: bool = False
    session: str = ""
    said: bytes = b""
    wrote: dict[str, int] = {}
    index: int = -1
    agent: str = ""
    agent_version: str = ""
    production: bool = False
    came: int = 0
    names: bytes = b""
    readable: bool = True
    forged: bool = False


ItemT = TypeVar("ItemT")


class Bad(msgspec.Struct, gc=False):
    index: int
    cause: Cause
    detail: str


class Dropped(msgspec.Struct, gc=False):
    """A correct record that changes nothing."""

    index: int
    reason: FilterReason
    time: int


@dataclass
class Decoded(Generic[ItemT]):
    """A decoded batch. Each record is in exactly one of the first three lists; in `items` it may be several times."""

    items: list[ItemT] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    lost: list[TraceFacts] = field(default_factory=list)
    """What can be read of those bad records of traces that say of which turn and version they are."""


_HARMLESS = re.compile(r"[0-9A-Fa-f:.+TZ -]{0,40}", re.ASCII)
EARLIEST_MS = 1_000_000_000_000  # in 2001; a smaller number is not a time of this product


def loads(raw: bytes) -> Any:
    """Return the JSON value. Half of a surrogate pair, as of an emoji that was cut, is read as U+FFFD.

    Raises orjson.JSONDecodeError.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        if b"\\ud" not in raw and b"\\uD" not in raw:
            raise
        try:
            text = json.dumps(json.loads(raw, parse_constant=_refused), ensure_ascii=False)
        except (ValueError, RecursionError):
            text = ""
        if not text:
            raise
        return orjson.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def load(records: Iterable[tuple[int, Record]], policy: Policy, bad: list[Bad]) -> list[tuple[int, Any]]:
    """Parse each record's JSON; returns (index in the batch, value). A record that is not JSON goes to `bad`."""
    limit = policy.max_record_bytes
    out: list[tuple[int, Any]] = []
    for index, record in records:
        value = record.value
        if value is None:
            if isinstance(record, UnreadableRecord):
                bad.append(Bad(index, record.cause, record.reason))
            else:
                bad.append(Bad(index, Cause.MALFORMED, "the value is null; an event was expected"))
        elif len(value) > limit:
            bad.append(Bad(index, Cause.TOO_LARGE, f"{len(value)} bytes; at most {limit} are taken (max_record_bytes)"))
        else:
            try:
                out.append((index, loads(value)))
            except orjson.JSONDecodeError as error:
                bad.append(Bad(index, Cause.MALFORMED, f"not JSON: {error.msg} at byte {error.pos}"))
    return out


def validate(
    adapter: TypeAdapter[Any],
    rows: list[tuple[int, Any]],
    build: Callable[[int, Any], ItemT | None],
    out: Decoded[ItemT],
) -> None:
    """Check all rows in one call, then build an item from each; failures name the field and go to `out.bad`."""
    while rows:
        try:
            values = adapter.validate_python([value for _, value in rows])
            break
        except ValidationError as error:
            reasons: dict[int, str] = {}
            for problem in error.errors(include_url=False, include_input=False, include_context=False):
                row = int(problem["loc"][0])
                field = ".".join(str(part) for part in problem["loc"][1:]) or "event"
                reasons.setdefault(row, f"{field}: {problem['msg']}")
            out.bad.extend(Bad(rows[row][0], Cause.MALFORMED, clean(reason)) for row, reason in reasons.items())
            rows = [pair for row, pair in enumerate(rows) if row not in reasons]
    else:
        return
    for (index, _), value in zip(rows, values, strict=True):
        try:
            item = build(index, value)
        except (ValueError, OverflowError) as error:
            out.bad.append(Bad(index, Cause.MALFORMED, clean(str(error))))
        else:
            if item is not None:
                out.items.append(item)


def quoted(value: str | float | None) -> str:
    """Return a value as a dead letter's detail shows it. Details reach headers, lists and logs, which must not hold
    users' text: only characters of numbers, times and ids are shown."""
    if isinstance(value, str) and not _HARMLESS.fullmatch(value):
        return f"a text of {len(value)} characters"
    return repr(value)


def time_ms(value: str | float | None, field: str, now: int, policy: Policy) -> int:
    """Convert an ISO text or a number of seconds to milliseconds since 1970. Raises ValueError that names the field."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{field}: {quoted(value)} is not an ISO 8601 time") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        try:
            ms = round(moment.timestamp() * 1000)
        except (OverflowError, ValueError):
            raise ValueError(f"{field}: {quoted(value)} is no usable time") from None
    elif value is None:
        raise ValueError(f"{field}: a time is required")
    elif not math.isfinite(value * 1000):
        raise ValueError(f"{field}: {quoted(value)} is no usable time")
    else:
        ms = round(value * 1000)
    if not EARLIEST_MS <= ms <= now + policy.future:
        raise ValueError(
            f"{field}: {quoted(value)} is before 2001 or further in the future than future_tolerance_seconds"
        )
    return ms


def sequence_of(value: int | str | None, field: str) -> bytes:
    """Convert a sequence number to bytes that order as the numbers do; b"" for None."""
    if value is None:
        return b""
    if isinstance(value, str):
        if not value.isascii() or not value.isdigit() or len(value) > 60:
            raise ValueError(f"{field}: {quoted(value)} is not a sequence number")
        value = int(value)
    if not 0 <= value < 1 << 256:
        raise ValueError(f"{field}: {value} is not a sequence number")
    # Minimal big-endian bytes, so that length, then content, order as the numbers do.
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")
