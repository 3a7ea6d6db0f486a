"""Judges' answers in Redis (evalcore.scoring's `ScoreCache`): plain values that expire, one key for each answer.

Redis may be emptied at any time: what is gone is asked for again. Values hold the judge's words about a turn, which may
quote it; so they expire, and no key can be led back to a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from redis.exceptions import RedisError

from agents.ports import Unavailable
from evalcore.scoring.cache import LARGEST

AT_ONCE = 500
CONNECTIONS = 8
"""Of the client's, which others need too."""


class RedisScoreCache:
    """`redis` is the client of a RedisStore. Raises Unavailable at once where Redis does not answer: the runner goes on
    without a cache, and a try more costs as much as the model's call that it might save."""

    def __init__(self, redis: Any, prefix: str, seconds: float) -> None:
        self._redis, self._prefix, self._ms = redis, f"{prefix}j:", max(1, int(seconds * 1000))
        self._room = asyncio.Semaphore(CONNECTIONS)

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        out: list[bytes | None] = []
        try:
            for start in range(0, len(keys), AT_ONCE):
                names = [self._prefix + key for key in keys[start : start + AT_ONCE]]
                async with self._room:
                    out += await self._redis.mget(names)
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis: {error}") from error
        return out

    async def put(self, key: str, value: bytes) -> None:
        if len(value) > LARGEST:
            return
        try:
            async with self._room:
                await self._redis.set(self._prefix + key, value, px=self._ms)
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis: {error}") from error
