"""What a codec makes of a record: the few facts the join needs, and nothing else of the event."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from schemas.outcomes import Cause, FilterReason


class Thumb(msgspec.Struct, gc=False):
    """`value` 1, -1, or 0 for a withdrawal. `observed` is set for a reading of the table: when it was read (ms)."""

    index: int
    response_id: str
    value: int
    time: int
    seq: bytes = b""
    tie: int = 0
    observed: int = 0


class Reroll(msgspec.Struct, gc=False):
    index: int
    response_id: str
    time: int
    tie: int = 0


class TraceFacts(msgspec.Struct, gc=False):
    """A trace as far as the join needs it. `trace`: the id's 16 bytes; `said`: the hash of its input; times in ms."""

    response_id: str
    trace: bytes
    project: str
    vertical: str
    sub_agent: str
    category: str
    started: int
    ended: int
    judged: bool
    session: str = ""
    said: bytes = b""
    thumbs: int = 0
    reroll: int = 0
    index: int = -1
    agent: str = ""
    agent_version: str = ""
    production: bool = False


ItemT = TypeVar("ItemT")


class Bad(msgspec.Struct, gc=False):
    index: int
    cause: Cause
    detail: str


class Dropped(msgspec.Struct, gc=False):
    """A record that is right and asks for nothing."""

    index: int
    reason: FilterReason
    time: int


@dataclass
class Decoded(Generic[ItemT]):
    """A batch after its codec: every record is in exactly one of the three, or in `items` several times."""

    items: list[ItemT] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
