"""Dead letters: the original bytes, and headers that say why (contracts §1)."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from typing import Protocol

from schemas.outcomes import Cause

PREFIX = "rampgate."
ATTEMPTS = "rampgate.attempts"
REPLAY_ID = "rampgate.replay-id"
ORIGINAL_LENGTH = "rampgate.original-length"
ORIGINAL_SHA256 = "rampgate.original-sha256"
HEAD_BYTES = 16_384
_NAMESPACE = uuid.UUID("6f6f6a0e-6f2c-5d1e-9a37-2b1f6a0c9d11")

Headers = tuple[tuple[str, bytes], ...]


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
        """The same for the same record at the same attempt, so that a doubled dead letter is recognised."""
        record = self.record
        return str(uuid.uuid5(_NAMESPACE, f"{record.topic}/{record.partition}/{record.offset}"))

    def encode(self, max_bytes: int) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]:
        """Key, value and headers for the dead-letter topic.

        Original headers are kept, except ours from an earlier round, which are replaced. A value over `max_bytes`
        is cut to its head; its length and sha256 go into headers, and `rampgate.detail` says so.
        """
        record, value, detail = self.record, self.record.value, self.detail
        extra: list[tuple[str, bytes]] = []
        if value is not None and len(value) > max_bytes:
            extra = [
                (ORIGINAL_LENGTH, str(len(value)).encode()),
                (ORIGINAL_SHA256, hashlib.sha256(value).hexdigest().encode()),
            ]
            detail = f"{detail} (value of {len(value)} bytes cut to its first {HEAD_BYTES}: it can't be replayed)"
            value = value[:HEAD_BYTES]
        attempts = attempts_of(record.headers) + 1
        ours = {
            "cause": self.cause.value,
            "detail": clean(detail),
            "topic": record.topic,
            "partition": str(record.partition),
            "offset": str(record.offset),
            "timestamp": str(record.timestamp),
            "attempts": str(attempts),
            "failed-at": str(self.failed_at_ms),
            "stage": self.stage,
            "replay-id": self.replay_id,
        }
        kept = [(name, content) for name, content in record.headers or () if not name.startswith(PREFIX)]
        return record.key, value, kept + [(PREFIX + k, v.encode()) for k, v in ours.items()] + extra


def attempts_of(headers: Headers | list[tuple[str, bytes]] | None) -> int:
    """How often this record has failed before: the header `rampgate.attempts`, 0 without one."""
    for name, content in headers or ():
        if name == ATTEMPTS and content.isdigit():
            return int(content)
    return 0


def clean(text: str, limit: int = 500) -> str:
    """One printable line of at most `limit` characters: no control characters reach a terminal or a header."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= limit else line[: limit - 1] + "…"
