"""Keeps a store's values in Redis: one key for each, which expires, and an index of those that last.

Redis forgets: what has expired, or was evicted, is asked again. The first value of a key stands, and one without a
valid seal gives way, in one step of Redis's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, Final, TypeVar

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from agents.keys import SUITE_INDEX, SUITE_VALUE
from agents.ports import Unavailable
from rampgate.store.reach import Reach
from rampgate.store.shelf import unusable
from streams.redis.clients import client_of, close_client

T = TypeVar("T")
KEPT_MS: Final = 30 * 86_400_000
LASTING_MS: Final = 365 * 86_400_000
TIMEOUT: Final = 10.0
AT_ONCE: Final = 8
"""Calls under way. What others use the server for, such as the join, waits for none that is longer than a page."""
PAGE: Final = 100
"""Values that are read in one call; a trace may have megabytes."""
PUT: Final = """
local held = redis.call('GET', KEYS[1])
if held and not (ARGV[4] == '1' and held == ARGV[5]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return held
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if ARGV[3] ~= '' then
  redis.call('ZADD', KEYS[2], 0, ARGV[3])
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
"""
"""Puts a value, unless another one than the wrong one is there: that one is returned, and lives on as long as ours
would. A value that lasts is named in the index."""


class RedisShelf:
    """See `Shelf`. The URL may name Sentinels. Calls go through an event loop of its own, in a thread: connections
    belong to the loop that made them, and a command opens several, one after another.

    Raises Unavailable where nobody answers."""

    def __init__(self, url: str, prefix: str, shown: str) -> None:
        self._prefix, self._reach = prefix, Reach(shown)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="store", daemon=True)
        self._thread.start()
        self._room = asyncio.Semaphore(AT_ONCE)
        self._redis: Any = client_of(url, TIMEOUT)
        try:
            asyncio.run_coroutine_threadsafe(self._called(self._redis.ping), self._loop).result()
        except Unavailable:
            self.close()
            raise

    @property
    def shown(self) -> str:
        return self._reach.shown

    async def read(self, names: Sequence[str]) -> list[bytes | None]:
        pages = [names[start : start + PAGE] for start in range(0, len(names), PAGE)]
        asked = [[self._key(name) for name in page] for page in pages]
        found = await asyncio.gather(*(self._do(partial(self._redis.mget, page)) for page in asked))
        return [value for page in found for value in page]

    async def put(self, name: str, value: bytes, wrong: bytes | None, *, lasting: bool) -> bytes | None:
        kind, _, key = name.partition(":")
        keys = [self._key(name), self._prefix + SUITE_INDEX.key(kind)]
        life, listed = (LASTING_MS, key) if lasting else (KEPT_MS, "")
        told = [value, life, listed, "0" if wrong is None else "1", wrong or b""]
        earlier: bytes | None = await self._do(partial(self._redis.eval, PUT, len(keys), *keys, *told))
        return earlier

    async def beginning(self, start: str) -> list[tuple[str, bytes]]:
        """Page by page. What has expired leaves the index."""
        kind, _, key = start.partition(":")
        index, first, last = self._prefix + SUITE_INDEX.key(kind), b"[" + key.encode(), b"(" + key.encode() + b"\xff"
        found: list[tuple[str, bytes]] = []
        while True:
            asked = partial(self._redis.zrange, index, first, last, bylex=True, offset=0, num=PAGE)
            page: list[bytes] = await self._do(asked)
            names = [f"{kind}:{member.decode(errors='replace')}" for member in page]
            values = await self.read(names)
            found += [(name, value) for name, value in zip(names, values, strict=True) if value is not None]
            gone = [member for member, value in zip(page, values, strict=True) if value is None]
            if gone:
                await self._do(partial(self._redis.zrem, index, *gone))
            if len(page) < PAGE:
                return found
            first = b"(" + page[-1]

    def close(self) -> None:
        with suppress(RedisError, OSError):
            asyncio.run_coroutine_threadsafe(close_client(self._redis), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _key(self, name: str) -> str:
        return self._prefix + SUITE_VALUE.key(*name.split(":", 1))

    async def _do(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What was sent is kept, even if its caller is cancelled."""
        sent = asyncio.run_coroutine_threadsafe(self._called(call), self._loop)
        return await asyncio.shield(asyncio.wrap_future(sent))

    async def _called(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with self._room:
            self._reach.check()
            try:
                return await call()
            except (RedisConnectionError, RedisTimeoutError, OSError) as error:
                raise self._reach.lost(error) from error
            except RedisError as error:
                raise Unavailable(unusable(self.shown, error)) from error
