"""Follows the topic of overrides for those that skip a gate of a rollout (PC5 §5.5).

A skip lets judges out of a gate, so it fails closed: while the topic can't be read, or where there is none, every gate
runs whole.
"""

from __future__ import annotations

import orjson

from agents.ports import Clock
from evalcore.gates.skips import Skips
from schemas.settings import KafkaAccess
from streams.gates.followed_topic import FollowedTopic


class GateSkips(FollowedTopic):
    """Knows the overrides that skip gates."""

    what = "the topic of overrides"

    def __init__(self, access: KafkaAccess, topic: str, clock: Clock) -> None:
        super().__init__(access, topic, clock)
        self._read = Skips()

    @property
    def skips(self) -> Skips:
        """What the central log of overrides has; nothing while it can't be read."""
        return self._read if self.readable else Skips()

    async def now(self) -> Skips:
        """The same, once the topic has been read or could not be."""
        await self.tried.wait()
        return self.skips

    def take_in(self, value: bytes, appended_ms: int) -> None:
        try:
            record = orjson.loads(value)
        except orjson.JSONDecodeError:
            return
        if isinstance(record, dict):
            self._read.add(record, appended_ms)

    def made_anew(self) -> None:
        self._read = Skips()
