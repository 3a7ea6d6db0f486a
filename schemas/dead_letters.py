"""Dead letters: the original bytes, and headers that say why (contracts §1).

`rampgate.attempts` and `rampgate.replay-id` decide what counts for the guard against bad records and what may be
replayed, so no producer may make them up: they count only beside `rampgate.mac`, an HMAC with a key of the installation
over them and the record's topic, key and value. A seal holds for one record, and can't be moved to another.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from schemas.outcomes import Cause
from schemas.seals import Seal

PREFIX = "rampgate."
ATTEMPTS = "rampgate.attempts"
REPLAY_ID = "rampgate.replay-id"
MAC = "rampgate.mac"
ORIGINAL_LENGTH = "rampgate.original-length"
ORIGINAL_SHA256 = "rampgate.original-sha256"
KEY_LENGTH = "rampgate.key-length"
HEADERS_DROPPED = "rampgate.headers-dropped"
FIRST_OFFSET = "rampgate.first-offset"
CUTS = {
    ORIGINAL_LENGTH: "value of {} bytes cut to its head",
    KEY_LENGTH: "key of {} bytes cut to its head",
    HEADERS_DROPPED: "{} headers too large to carry",
    FIRST_OFFSET: "no record but the bytes of its batch, from offset {} on",
}
"""Headers that say that a letter does not hold a whole record, and how that reads."""
HEAD_BYTES = 16_384
MOST_DIGITS = 6
HEADER_ROOM = 32_768
"""Key and headers may take this much besides a value of the largest size: with ours, still under Kafka's 1 MiB."""
_NAMESPACE = uuid.UUID("6f6f6a0e-6f2c-5d1e-9a37-2b1f6a0c9d11")

Header = tuple[str, bytes | None]
"""Name and content. Kafka allows a header without content."""
Headers = Sequence[Header]


KEYLESS = Seal()
"""For what runs without an installation."""

Sealing = Callable[[], Awaitable[Seal]]
"""Gives the installation's seal. Raises Unavailable while its key can't be had."""


async def keyless() -> Seal:
    """Gives the seal of the empty key."""
    return KEYLESS


class Record(Protocol):
    """A Kafka record as consumed; aiokafka's ConsumerRecord is one. `timestamp` in ms."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


@dataclass(frozen=True)
class MadeRecord:
    """A record that we make: one that is not in Kafka yet, or one in the place of what Kafka no longer holds, whose key
    names the turn."""

    topic: str
    key: bytes
    value: bytes | None = None
    partition: int = 0
    offset: int = 0
    timestamp: int = 0
    headers: Headers = ()


@dataclass(frozen=True)
class UnreadableRecord:
    """Takes the place of what Kafka has and no one can read: of one record, or of all records from offset `first` to
    `offset`, whose bytes are then those of their batch. Ends as a dead letter.

    It has no value, so that nothing takes its bytes for an event; they are in `raw`. Where one record's headers are at
    fault, key and headers are its own.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    cause: Cause
    reason: str
    raw: bytes | None
    first: int | None = None
    key: bytes | None = None
    headers: Headers = ()
    value: None = None
    timestamp_type: int = 0  # this and what follows is here for Faust
    checksum: None = None
    serialized_key_size: int = -1
    serialized_value_size: int = -1

    @property
    def count(self) -> int:
        """How many offsets it stands for."""
        return 1 if self.first is None else self.offset - self.first + 1


@dataclass(frozen=True)
class DeadLetter:
    """One record that can't be done: `record` whole, `cause` from the closed list, `detail` for a person."""

    record: Record
    cause: Cause
    detail: str
    stage: str
    failed_at_ms: int
    attempts: int = field(default=0)

    @property
    def replay_id(self) -> str:
        """Names the record over all its attempts: made from its first place, then carried by its replays.

        With `rampgate.attempts` it tells a doubled letter from a new failure.
        """
        return self._named(KEYLESS)[0]

    def _named(self, seal: Seal) -> tuple[str, int]:
        """The replay id, and how often the record failed before."""
        record = self.record
        carried = carried_by(record, seal)
        if carried is not None:
            return carried
        return str(uuid.uuid5(_NAMESPACE, f"{record.topic}/{record.partition}/{record.offset}")), 0

    def encode(self, max_bytes: int, seal: Seal = KEYLESS) -> tuple[bytes | None, bytes | None, list[Header]]:
        """Key, value and headers for the dead-letter topic.

        Original headers are kept, except ours from an earlier round, which are replaced; they count only where `seal`
        holds for them. A value over `max_bytes`
        is cut to its head; its length and sha256 go into headers, and `rampgate.detail` says so. What key and headers
        take beyond `HEADER_ROOM` is cut likewise: a letter that Kafka never takes would hold up its partition for good.
        """
        record = self.record
        key, value, kept, extra = fitted(record, max_bytes)
        detail = clean(self.detail, 300)
        for name, content in extra:
            if name in CUTS:
                detail += f" ({CUTS[name].format(content.decode())}: it can't be replayed)"
        replay_id, failed_before = self._named(seal)
        attempts = failed_before + 1
        ours = {
            "cause": self.cause.value,
            "detail": detail,
            "topic": record.topic,
            "partition": str(record.partition),
            "offset": str(record.offset),
            "timestamp": str(record.timestamp),
            "attempts": str(attempts),
            "failed-at": str(self.failed_at_ms),
            "stage": self.stage,
            "replay-id": replay_id,
            "mac": seal.of(sealed_over(record.topic, key, value, replay_id, attempts)),
        }
        return key, value, kept + [(PREFIX + k, v.encode()) for k, v in ours.items()] + extra


def fitted(record: Record, max_bytes: int) -> tuple[bytes | None, bytes | None, list[Header], list[tuple[str, bytes]]]:
    """Key, value and headers of a record, cut to what a letter can carry, and headers that tell what was cut."""
    key, value, extra = record.key, record.value, []
    if isinstance(record, UnreadableRecord):
        value = record.raw
        if record.first is not None:
            extra.append((FIRST_OFFSET, str(record.first).encode()))
    kept = [(name, content) for name, content in record.headers or () if not name.startswith(PREFIX)]
    besides = len(key or b"") + headers_size(kept)
    if value is not None and len(value) > min(max_bytes, max(max_bytes + HEADER_ROOM - besides, HEAD_BYTES)):
        extra += [
            (ORIGINAL_LENGTH, str(len(value)).encode()),
            (ORIGINAL_SHA256, hashlib.sha256(value).hexdigest().encode()),
        ]
        value = value[:HEAD_BYTES]
    room = max_bytes + HEADER_ROOM - len(value or b"")
    if besides > room and kept:
        extra.append((HEADERS_DROPPED, str(len(kept)).encode()))
        kept = []
    if key is not None and len(key) > room:
        extra.append((KEY_LENGTH, str(len(key)).encode()))
        key = key[:HEAD_BYTES]
    return key, value, kept, extra


def carried_by(record: Record, seal: Seal) -> tuple[str, int] | None:
    """The replay id and the attempts of a record that we replayed; None for any other, whatever headers it has."""
    replay_id, attempts = replay_id_of(record.headers), attempts_of(record.headers)
    if replay_id is None:
        return None
    over = sealed_over(record.topic, record.key, record.value, replay_id, attempts)
    return (replay_id, attempts) if seal.holds(mac_of(record.headers), over) else None


def sealed_over(topic: str, key: bytes | None, value: bytes | None, replay_id: str, attempts: int) -> bytes:
    """Returns what the header `rampgate.mac` of a record is the seal over."""
    parts = (topic.encode(), key, value, replay_id.encode(), str(attempts).encode())
    return b"".join(b"-" if part is None else b"%d:" % len(part) + part for part in parts)


def mac_of(headers: Headers | None) -> bytes | None:
    """The content of the header `rampgate.mac`; None without one."""
    return next((content for name, content in headers or () if name == MAC and content), None)


def attempts_of(headers: Headers | None) -> int:
    """How often this record has failed before: the header `rampgate.attempts`, 0 without a usable one.

    Anyone may send such a header, with any content or none; a bad one must not break its letter.
    """
    for name, content in headers or ():
        if name == ATTEMPTS and content and len(content) <= MOST_DIGITS and content.isdigit():
            return int(content)
    return 0


def replay_id_of(headers: Headers | None) -> str | None:
    """The header `rampgate.replay-id` of a replayed record; None without one in the form we give it."""
    for name, content in headers or ():
        if name == REPLAY_ID and content and len(content) == 36:
            try:
                return str(uuid.UUID(content.decode("ascii")))
            except ValueError:
                return None
    return None


def headers_size(headers: Headers) -> int:
    """Returns about how many bytes they take on the wire."""
    return sum(len(name.encode()) + len(content or b"") + 8 for name, content in headers)


def clean(text: str, limit: int = 500) -> str:
    """One printable line of at most `limit` characters: no control characters reach a terminal or a header."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= limit else line[: limit - 1] + "…"
