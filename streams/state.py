"""Join state in Redis (or Valkey): plain string values, hashes of counters, one sorted set of due times.

One script call applies a whole step or nothing of it. Redis here is fast memory, not the record of truth: it may be
emptied at any time and is rebuilt from Kafka. It must not evict (`maxmemory-policy noeviction`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import redis.asyncio as aioredis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError

from agents.ports import Cell, Change, Unavailable

# ARGV: prefix; one msgpack array [checks, sets, counts, due, undue]; all values in one piece. checks [cell, length of
# the expected value, ...]; sets [cell, length of the value, expires, ...]; counts [cell, expires, [field, by, ...],
# ...]; due [at, id, ...]. The values, expected ones first, are cut from ARGV[3] in order: one argument packs many
# times faster than thousands. The index of due times is one key, so members stay small. Returns the positions of
# failed checks.
APPLY = """
local prefix, values, sub = ARGV[1], ARGV[3], string.sub
local step = cmsgpack.unpack(ARGV[2])
local checks, sets, counts, due, undue = step[1], step[2], step[3], step[4], step[5]
local failed, at = {}, 1
for from = 1, #checks, 8000 do
  local keys = {}
  for i = from, math.min(from + 7999, #checks), 2 do keys[#keys + 1] = prefix .. checks[i] end
  local found = redis.call('MGET', unpack(keys))
  for j = 1, #keys do
    local i = from + 2 * (j - 1)
    local till = at + checks[i + 1]
    if (found[j] or '') ~= sub(values, at, till - 1) then failed[#failed + 1] = (i - 1) / 2 end
    at = till
  end
end
if #failed > 0 then return failed end
for i = 1, #sets, 3 do
  local till = at + sets[i + 1]
  redis.call('SET', prefix .. sets[i], sub(values, at, till - 1), 'PXAT', sets[i + 2])
  at = till
end
for i = 1, #counts, 3 do
  local key, fields = prefix .. counts[i], counts[i + 2]
  for f = 1, #fields, 2 do
    if redis.call('HINCRBY', key, fields[f], fields[f + 1]) == 0 then redis.call('HDEL', key, fields[f]) end
  end
  redis.call('PEXPIREAT', key, counts[i + 1])
end
local index = prefix .. 'due'
for from = 1, #due, 4000 do redis.call('ZADD', index, unpack(due, from, math.min(from + 3999, #due))) end
for from = 1, #undue, 4000 do redis.call('ZREM', index, unpack(undue, from, math.min(from + 3999, #undue))) end
return failed
"""

# ARGV: prefix, and one msgpack array of cells.
READ = """
local prefix, cells, out = ARGV[1], cmsgpack.unpack(ARGV[2]), {}
for from = 1, #cells, 4000 do
  local keys = {}
  for i = from, math.min(from + 3999, #cells) do keys[#keys + 1] = prefix .. cells[i] end
  for _, value in ipairs(redis.call('MGET', unpack(keys))) do out[#out + 1] = value end
end
return out
"""

CLAIM = """
local ready = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ready) do redis.call('ZADD', KEYS[1], ARGV[3], id) end
return ready
"""

START = """
local held = redis.call('GET', KEYS[1]) or ''
if held ~= ARGV[2] then return held end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[3])
return ARGV[1]
"""

_pack = msgspec.msgpack.Encoder().encode
PAGE = 2_000


class RedisStore:
    """The agents' `Store` over one Redis. Retries a lost connection briefly, then raises Unavailable."""

    def __init__(self, url: str, prefix: str, *, timeout: float = 5.0, tries: int = 5) -> None:
        self._prefix = prefix
        self._bytes = prefix.encode()
        self._tries = tries
        self._redis: Any = aioredis.Redis.from_url(
            url, socket_timeout=timeout, socket_connect_timeout=timeout, health_check_interval=30
        )
        self._read = self._redis.register_script(READ)
        self._apply = self._redis.register_script(APPLY)
        self._claim = self._redis.register_script(CLAIM)
        self._start = self._redis.register_script(START)

    @property
    def redis(self) -> Any:
        """The client, for what is not join state: checkpoints, leases, the replay ledger."""
        return self._redis

    @property
    def prefix(self) -> str:
        return self._prefix

    async def close(self) -> None:
        await self._redis.aclose()

    async def read(self, cells: Sequence[Cell]) -> list[bytes]:
        if not cells:
            return []
        wanted = _pack(cells)
        found = await self._call(lambda: self._read(args=[self._prefix, wanted]))
        return [value or b"" for value in found]

    async def apply(self, change: Change) -> list[Cell]:
        checks: list[Any] = []
        sets: list[Any] = []
        values: list[bytes] = []
        for cell, seen in change.checks.items():
            checks += (cell, len(seen))
            values.append(seen)
        for cell, (value, expires) in change.sets.items():
            sets += (cell, len(value), expires)
            values.append(value)
        counts: list[Any] = []
        for cell, (expires, fields) in change.counts.items():
            counts += (cell, expires, [part for name, by in fields.items() if by for part in (name, by)])
        due = [part for rid, at in change.due.items() if at is not None for part in (at, rid)]
        undue = [rid for rid, at in change.due.items() if at is None]
        step = _pack([checks, sets, counts, due, undue])
        held = b"".join(values)
        failed = await self._call(lambda: self._apply(args=[self._prefix, step, held]))
        return [checks[2 * int(position)] for position in failed]

    async def claim_due(self, now: int, limit: int, lease_ms: int) -> list[str]:
        keys = [self._prefix + "due"]
        found = await self._call(lambda: self._claim(keys=keys, args=[now, limit, now + lease_ms]))
        return [rid.decode() for rid in found]

    async def counts(self, cells: Sequence[Cell]) -> list[dict[str, int]]:
        async def read() -> list[dict[bytes, bytes]]:
            out: list[dict[bytes, bytes]] = []
            for start in range(0, len(cells), 500):
                pipe = self._redis.pipeline(transaction=False)
                for cell in cells[start : start + 500]:
                    pipe.hgetall(self._prefix + cell)
                out += await pipe.execute()
            return out

        found = await self._call(read)
        return [{name.decode(): int(by) for name, by in fields.items()} for fields in found]

    async def start_at(self, cell: str, value: bytes, expires: int, instead_of: bytes) -> bytes:
        keys = [self._prefix + cell]
        return bytes(await self._call(lambda: self._start(keys=keys, args=[value, instead_of, expires])))

    async def turns(self) -> AsyncIterator[list[tuple[str, bytes]]]:
        cursor, head = 0, self._bytes + b"t:"
        while True:
            at = cursor
            cursor, keys = await self._call(lambda at=at: self._redis.scan(at, match=head + b"*", count=PAGE))
            if keys:
                values = await self._call(lambda keys=keys: self._redis.mget(keys))
                yield [(k[len(head) :].decode(), v) for k, v in zip(keys, values, strict=True) if v]
            if cursor == 0:
                return

    async def _call(self, command: Any) -> Any:
        """Run a command; a script that is not cached is sent whole by the client. What fails here has an unknown
        outcome, which is harmless: every step checks what it read."""
        for attempt in range(self._tries):
            try:
                return await command()
            except (RedisConnectionError, TimeoutError, NoScriptError) as error:
                if attempt == self._tries - 1:
                    raise Unavailable(f"Redis: {error}") from error
                await asyncio.sleep(0.1 * 2**attempt)
            except RedisError as error:
                raise Unavailable(f"Redis: {error}") from error
        raise AssertionError
