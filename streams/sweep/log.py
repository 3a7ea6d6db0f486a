"""Keeps how far a sweep has come, in Redis under its id, for a day: a sweep that was cut short is resumed.

A finished sweep leaves nothing behind. Where the log is lost, the table is read again, and nothing else happens.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import orjson

from agents.keys import SWEEP
from streams.dynamodb.records import dumps
from streams.redis.state import RedisStore

KEPT_SECONDS = 86_400
DONE = b"done"


@dataclass
class SegmentPlace:
    """How far one segment of the table was read: `key` is DynamoDB's LastEvaluatedKey, None at the start. A dry sweep
    does not `save`."""

    key: dict[str, Any] | None = None
    done: bool = False
    save: Callable[[bytes], Awaitable[None]] | None = None

    async def move(self, following: dict[str, Any] | None) -> None:
        """Save that all before `following` is done; None ends the segment."""
        if self.save is not None:
            await self.save(DONE if following is None else dumps(following))
        self.key, self.done = following, following is None


class SweepLog:
    """The log of one sweep. Raises Unavailable while Redis is out of reach."""

    def __init__(self, store: RedisStore, sweep_id: str) -> None:
        self._store, self._redis, self._name = store, store.redis, store.prefix + SWEEP.key(sweep_id)
        self._held: dict[bytes, bytes] = {}

    async def open(self, since: int, segments: int, *, restart: bool) -> tuple[int, int, bool]:
        """Since when (ms) to sweep, in how many segments, and whether an earlier run that was cut short said so."""
        if restart:
            await self.clear()
        self._held = held = await self._store.call(lambda: self._redis.hgetall(self._name))
        if b"since" in held and b"segments" in held:
            return int(held[b"since"]), int(held[b"segments"]), True
        await self.clear()
        await self._put("since", str(since).encode())
        await self._put("segments", str(segments).encode())
        return since, segments, False

    def place(self, segment: int) -> SegmentPlace:
        """How far a segment was read."""
        name = f"segment:{segment}"
        raw = self._held.get(name.encode(), b"")
        key = _key(orjson.loads(raw)) if raw and raw != DONE else None
        return SegmentPlace(key, raw == DONE, lambda value: self._put(name, value))

    async def clear(self) -> None:
        """Forget the sweep."""
        self._held = {}
        await self._store.call(lambda: self._redis.delete(self._name))

    async def _put(self, name: str, value: bytes) -> None:
        await self._store.call(lambda: self._redis.hset(self._name, name, value))
        await self._store.call(lambda: self._redis.expire(self._name, KEPT_SECONDS))


def _key(plain: dict[str, dict[str, str]]) -> dict[str, Any]:
    """The key as boto3 takes it: its binary parts were kept as base64."""
    return {
        name: {kind: base64.b64decode(value) if kind == "B" else value for kind, value in typed.items()}
        for name, typed in plain.items()
    }
