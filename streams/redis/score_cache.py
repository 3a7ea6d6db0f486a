"""Keeps judges' answers in Redis (evalcore.scoring's `ScoreCache`): one key for each answer, which expires.

Redis may be emptied at any time: a judge is asked again for what is gone. An answer holds the judge's words about a
turn, which may quote it; so answers expire, and no key leads back to a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from redis.exceptions import RedisError

from agents.keys import JUDGE_SCORE
from agents.ports import Unavailable
from evalcore.scoring.cache import LARGEST

AT_ONCE = 500
GATHER_SECONDS = 0.02
CONNECTIONS = 8
"""Connections that the cache uses at once; the client's others serve the join."""


class RedisScoreCache:
    """`redis` is the client of a RedisStore. Raises Unavailable at once where Redis does not answer: the runner goes on
    without a cache, since a second try may cost as much as the call of the model that it saves."""

    def __init__(self, redis: Any, prefix: str, seconds: float) -> None:
        self._redis, self._prefix, self._ms = redis, prefix, max(1, int(seconds * 1000))
        self._room = asyncio.Semaphore(CONNECTIONS)
        self._gathered: dict[str, bytes] = {}
        self._sending: asyncio.Task[dict[str, bytes | None]] | None = None

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """The answers in order, None where there is none. Raises Unavailable."""
        out: list[bytes | None] = []
        try:
            for start in range(0, len(keys), AT_ONCE):
                names = [self._prefix + JUDGE_SCORE.key(key) for key in keys[start : start + AT_ONCE]]
                async with self._room:
                    out += await self._redis.mget(names)
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis: {error}") from error
        return out

    async def put(self, key: str, value: bytes) -> bytes | None:
        """Keep an answer unless the key has one; returns the earlier one, None where there was none.

        All answers of GATHER_SECONDS are sent at once: a message to Redis costs more than what it carries. Raises
        Unavailable.
        """
        if len(value) > LARGEST:
            return None
        self._gathered[key] = value
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())
            self._sending.add_done_callback(_seen)
        earlier = await asyncio.shield(self._sending)  # the answer is kept even if its caller is cancelled
        return earlier[key]

    async def _send(self) -> dict[str, bytes | None]:
        """Send what was gathered; returns the earlier answers by key."""
        await asyncio.sleep(GATHER_SECONDS)
        values, self._gathered, self._sending = self._gathered, {}, None
        try:
            async with self._room, self._redis.pipeline(transaction=False) as pipe:
                for key, value in values.items():
                    pipe.set(self._prefix + JUDGE_SCORE.key(key), value, px=self._ms, nx=True)
                    pipe.get(self._prefix + JUDGE_SCORE.key(key))
                found = await pipe.execute()
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis: {error}") from error
        answers = zip(values, found[::2], found[1::2], strict=True)
        return {key: None if new else kept for key, new, kept in answers}


def _seen(sending: asyncio.Task[dict[str, bytes | None]]) -> None:
    """Take notice of an error whose callers were all cancelled: asyncio logs it otherwise."""
    if not sending.cancelled():
        sending.exception()
