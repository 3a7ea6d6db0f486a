"""The two stores under one suite: Redis' on a real server, and its twin in memory."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from streams.redis.state import RedisStore
from tests.memory_ports import MemoryStore

Either = RedisStore | MemoryStore
KINDS = ("redis", "memory")


class WallClock:
    """Expiry in Redis follows real time, so the twin's does here too."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


def now_ms() -> int:
    return WallClock().now_ms()


def far() -> int:
    """An expiry that no test lives to see."""
    return now_ms() + 3_600_000


def memory_store() -> MemoryStore:
    clock: Any = WallClock()
    return MemoryStore(clock)


async def all_turns(store: Either) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    async for page in pages(store):
        found.update(page)
    return found


def pages(store: Either) -> AsyncIterator[list[tuple[str, bytes]]]:
    return store.turns()
