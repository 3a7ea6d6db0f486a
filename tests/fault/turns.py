"""The turns of made-up traffic as they really were, and the messages they are told in.

None of our code is imported: what must come of a turn is worked out from the contracts (§1, §2) alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Topic = Literal["thumbs", "rerolls", "traces"]
THUMBS, REROLL = "user_signal_thumbs", "user_signal_reroll"


class Message(NamedTuple):
    topic: Topic
    key: bytes | None
    value: bytes | None


class Thumb(NamedTuple):
    sequence: int
    value: int
    at: int


@dataclass
class Turn:
    """One turn as it really was. Times in ms; `trace_in`: where its trace can be learnt from."""

    response_id: str
    trace_id: str
    vertical: str
    project: str
    ended: int
    trace_in: Literal["event", "opik", "nowhere"]
    judged: Literal["event", "opik", "no"]
    thumbs: list[Thumb] = field(default_factory=list)
    rerolls: list[int] = field(default_factory=list)
    derived: bool = False
    session: str = ""
    said: str = ""
    started: int = 0
    version: str = ""
    """Of the agent; "" where its trace names none."""
    unended: bool = False
    """Its trace was begun and never ended."""

    @property
    def thumb(self) -> int:
        """Where the user's thumb ended up: the highest sequence number wins."""
        return max(self.thumbs).value if self.thumbs else 0

    @property
    def rerolled(self) -> bool:
        return bool(self.rerolls) or self.derived

    @property
    def active(self) -> bool:
        return self.thumb != 0 or self.rerolled
