"""Keeps judges' answers in Redis (evalcore.scoring's `ScoreCache`): one key for each answer, which expires.

Redis may be emptied at any time: a judge is asked again for what is gone.
"""

from __future__ import annotations

import asyncio
import hashlib
from base64 import urlsafe_b64encode
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
NAME_BYTES = 15
"""Of a hash of the call's key; in letters they take no padding."""


class RedisScoreCache:
    """`redis` is the client of a RedisStore.

    Raises Unavailable at once where Redis does not answer: the runner goes on without a cache, since a second try may
    cost as much as the call of the model that it saves.
    """

    def __init__(self, redis: Any, prefix: str, seconds: float) -> None:
        self._redis, self._prefix, self._ms = redis, prefix, max(1, int(seconds * 1000))
        self._room = asyncio.Semaphore(CONNECTIONS)
        self._gathered: dict[str, bytes] = {}
        self._sending: asyncio.Task[dict[str, bytes | None]] | None = None

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """The answers in order, None where there is none. Raises Unavailable."""
        found: list[bytes | None] = []
        try:
            for start in range(0, len(keys), AT_ONCE):
                names = [self._name(key) for key in keys[start : start + AT_ONCE]]
                async with self._room:
                    found += await self._redis.mget(names)
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis: {error}") from error
        return found

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
                    pipe.set(self._name(key), value, px=self._ms, nx=True)
                    pipe.get(self._name(key))
                found = await pipe.execute()
            return {key: None if new else kept for key, new, kept in zip(values, found[::2], found[1::2], strict=True)}
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis: {error}") from error

    def _name(self, key: str) -> str:
        short = urlsafe_b64encode(hashlib.blake2b(key.encode(), digest_size=NAME_BYTES).digest())
        return self._prefix + JUDGE_SCORE.key(short.decode())


def _seen(sending: asyncio.Task[dict[str, bytes | None]]) -> None:
    """Take notice of an error whose callers were all cancelled: asyncio logs it otherwise."""
    if not sending.cancelled():
        sending.exception()
