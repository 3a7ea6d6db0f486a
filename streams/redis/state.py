"""Join state in Redis (or Valkey): plain string values, hashes of counters, one sorted set of due times.

One script call applies a whole step or nothing of it. Redis here is fast memory, not the record of truth: it may be
emptied at any time and is rebuilt from Kafka. It must not evict (`maxmemory-policy noeviction`).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any, cast

import msgspec
import redis.asyncio as aioredis
from redis.asyncio.retry import Retry as RedisRetry
from redis.asyncio.sentinel import Sentinel as RedisSentinel
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MasterDownError, NoScriptError, ReadOnlyError, RedisError, ResponseError

from agents.keys import DUE, TURN, Key
from agents.ports import Change, Seen, Unavailable
from evalcore.scoring.sampling import number_of
from schemas.settings import SentinelUrl, read_sentinel_url
from streams.redis.lease import Lease
from streams.retry import Retry

# Applies a `Change`, or nothing where a check fails; returns the numbers of the keys whose check failed.
#
# ARGV[1]: a msgpack array [keys, lengths, swaps, expires, sets, counts, due index, due, undue, pools, early, places].
#   lengths  of the values that the first keys must hold: these keys are checked
#   swaps    lengths of the new values of the first of the checked keys, which end at `expires`
#   sets     [number of the key, length of its value, expires, ...]
#   counts   [key, expires, [field, by, ...], ...]
#   due      [at, id, ...]; undue: ids that leave the index; early: as due, but none is put off
#   pools    [key, expires, keep, [number, length of member, ...], ...]
#   places   [key, edge's key, expires, keep, [number, had a place, length of member, ...], ...]; a turn that leaves has
#            its hash alone. A turn that had a place is looked for; `later` is `PooledTurn.later`.
# ARGV[2]: all values in one piece, expected ones first, from which they are cut in order: one argument packs many times
# faster than thousands do. Loops go in steps of 4,000, since Lua's `unpack` has a limit.
APPLY = """
local values, sub, call = ARGV[2], string.sub, redis.call
local keys, lengths, swaps, expires, sets, counts, index, due, undue, pools, early, places =
  unpack(cmsgpack.unpack(ARGV[1]))
local failed, at = {}, 1
for from = 1, #lengths, 4000 do
  local last = math.min(from + 3999, #lengths)
  local found = call('MGET', unpack(keys, from, last))
  for i = from, last do
    local till = at + lengths[i]
    if (found[i - from + 1] or '') ~= sub(values, at, till - 1) then failed[#failed + 1] = i end
    at = till
  end
end
if #failed > 0 then return failed end
for i = 1, #swaps do
  local till = at + swaps[i]
  call('SET', keys[i], sub(values, at, till - 1), 'PXAT', expires[i])
  at = till
end
for i = 1, #sets, 3 do
  local till = at + sets[i + 1]
  call('SET', keys[sets[i]], sub(values, at, till - 1), 'PXAT', sets[i + 2])
  at = till
end
for i = 1, #counts, 3 do
  local key, fields = counts[i], counts[i + 2]
  for f = 1, #fields, 2 do
    if call('HINCRBY', key, fields[f], fields[f + 1]) == 0 then call('HDEL', key, fields[f]) end
  end
  call('PEXPIREAT', key, counts[i + 1])
end
for i = 1, #pools, 4 do
  local key, members = pools[i], pools[i + 3]
  for m = 2, #members, 2 do
    local till = at + members[m]
    members[m], at = sub(values, at, till - 1), till
  end
  for from = 1, #members, 4000 do call('ZADD', key, unpack(members, from, math.min(from + 3999, #members))) end
  call('ZREMRANGEBYRANK', key, pools[i + 2], -1)
  call('PEXPIREAT', key, pools[i + 1])
end
local function later(a, b)
  local x, y = {struct.unpack('>I6I4I4I4I4I2I6I6', a, 9)}, {struct.unpack('>I6I4I4I4I4I2I6I6', b, 9)}
  if x[1] ~= y[1] then return x[1] > y[1] end
  if x[6] == y[6] then return x[7] > y[7] end
  if x[8] ~= y[8] then return x[8] > y[8] end
  return x[6] > y[6]
end
for i = 1, #places, 5 do
  local key, rim, keep, members = places[i], places[i + 1], places[i + 3], places[i + 4]
  local edge, beyond, fresh = tonumber(call('HGET', rim, 'edge') or math.huge), 0, {}
  for m = 1, #members, 3 do
    local number, had, length = members[m], members[m + 1], members[m + 2]
    local member = sub(values, at, at + length - 1)
    at = at + length
    if number >= edge then
      beyond = beyond + (length > 8 and 1 or 0) - had
    elseif had == 0 then
      fresh[#fresh + 1] = number
      fresh[#fresh + 1] = member
    else
      local stays = length > 8
      for _, held in ipairs(call('ZRANGEBYSCORE', key, number, number)) do
        if sub(held, 1, 8) == sub(member, 1, 8) then
          if stays and not later(member, held) then stays = false else call('ZREM', key, held) end
        end
      end
      if stays then call('ZADD', key, number, member) end
    end
  end
  for from = 1, #fresh, 4000 do call('ZADD', key, unpack(fresh, from, math.min(from + 3999, #fresh))) end
  local first = call('ZCARD', key) > keep and call('ZRANGE', key, keep, keep, 'WITHSCORES')[2]
  if first then
    beyond = beyond + call('ZREMRANGEBYSCORE', key, first, '+inf')
    call('HSET', rim, 'edge', first)
  end
  if beyond ~= 0 then call('HINCRBY', rim, 'beyond', beyond) end
  call('PEXPIREAT', key, places[i + 2])
  call('PEXPIREAT', rim, places[i + 2])
end
for from = 1, #due, 4000 do call('ZADD', index, unpack(due, from, math.min(from + 3999, #due))) end
for from = 1, #undue, 4000 do call('ZREM', index, unpack(undue, from, math.min(from + 3999, #undue))) end
for from = 1, #early, 4000 do call('ZADD', index, 'LT', unpack(early, from, math.min(from + 3999, #early))) end
return failed
"""

# Returns the values of at most READ_AT_ONCE keys; ARGV: one msgpack array of them.
READ = "return redis.call('MGET', unpack(cmsgpack.unpack(ARGV[1])))"
READ_AT_ONCE = 4_000

# Returns ids that are due, and puts off when they are due next; a worker that dies with them loses none.
CLAIM = """
local ready = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ready) do redis.call('ZADD', KEYS[1], ARGV[3], id) end
return ready
"""

# Sets a watermark where the key still holds ARGV[2]; returns what it holds then.
START = """
local held = redis.call('GET', KEYS[1]) or ''
if held ~= ARGV[2] then return held end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[3])
return ARGV[1]
"""

_pack = msgspec.msgpack.Encoder().encode
PAGE = 2_000
HEALTH_CHECK_SECONDS = 30
Sentinel: Any = RedisSentinel
"""Its constructor is published without types."""
TRIED_AGAIN = (RedisConnectionError, TimeoutError, NoScriptError, ReadOnlyError, MasterDownError)


class RedisStore:
    """The agents' `Store` over one Redis. Repeats a call after a lost connection a few times, then raises
    Unavailable."""

    def __init__(self, url: str, prefix: str, *, timeout: float = 5.0, tries: int = 5) -> None:
        self._prefix = prefix
        self._bytes = prefix.encode()
        self._retry = Retry(first=0.1, tries=tries)
        self._redis: Any = client_of(url, timeout)
        self._read = self._redis.register_script(READ)
        self._apply = self._redis.register_script(APPLY)
        self._claim = self._redis.register_script(CLAIM)
        self._start = self._redis.register_script(START)

    @property
    def redis(self) -> Any:
        """The client, for what is not the join's state: the feed's and the replay's ledgers, the score cache."""
        return self._redis

    @property
    def prefix(self) -> str:
        return self._prefix

    async def close(self) -> None:
        await close_client(self._redis)

    async def read(self, keys: Sequence[Key]) -> list[bytes]:
        if not keys:
            return []
        prefix, out = self._prefix, []
        for start in range(0, len(keys), READ_AT_ONCE):
            wanted = _pack([prefix + key for key in keys[start : start + READ_AT_ONCE]])
            out += await self.call(partial(self._read, args=[wanted]))
        return [value or b"" for value in out]

    async def apply(self, change: Change) -> list[Key]:
        prefix, checks, swaps = self._prefix, change.checks, change.swaps
        keys = [*swaps.keys, *checks]
        numbers = {key: number for number, key in enumerate(checks, len(swaps.keys) + 1)}
        values = [*swaps.before, *checks.values()]
        lengths = list(map(len, values))
        values += swaps.after
        sets: list[int] = []
        for key, (value, expires) in change.sets.items():
            number = numbers.get(key)
            if number is None:
                keys.append(key)
                number = len(keys)
            sets += (number, len(value), expires)
            values.append(value)
        counts: list[Any] = []
        for key, (expires, fields) in change.counts.items():
            counts += (prefix + key, expires, [part for name, by in fields.items() if by for part in (name, by)])
        due = [part for response_id, at in change.due.items() if at is not None for part in (at, response_id)]
        early = [part for response_id, at in change.due_by.items() for part in (at, response_id)]
        undue = [response_id for response_id, at in change.due.items() if at is None]
        pools: list[Any] = []
        for key, pool in change.pools.items():
            members = [part for member, number in pool.members.items() for part in (number, len(member))]
            pools += (prefix + key, pool.expires, pool.keep, members)
            values += pool.members
        places: list[Any] = []
        for key, place in change.places.items():
            turns = [(turn, had, member or turn) for turn, (had, member) in place.turns.items() if had or member]
            members = [part for turn, had, member in turns for part in (number_of(turn), int(had), len(member))]
            places += (prefix + key, prefix + place.edge, place.expires, place.keep, members)
            values += [member for _, _, member in turns]
        names = [prefix + key for key in keys]
        swapped = list(map(len, swaps.after))
        index = prefix + DUE.key()
        step = _pack([names, lengths, swapped, swaps.expires, sets, counts, index, due, undue, pools, early, places])
        held = b"".join(values)
        failed = await self.call(lambda: self._apply(args=[step, held]))
        return [keys[int(number) - 1] for number in failed]

    async def claim_due(self, now: int, limit: int, lease_ms: int) -> list[str]:
        names = [self._prefix + DUE.key()]
        found = await self.call(lambda: self._claim(keys=names, args=[now, limit, now + lease_ms]))
        return [response_id.decode() for response_id in found]

    async def counts(self, keys: Sequence[Key]) -> list[dict[str, int]]:
        found = await self._each(keys, 500, lambda pipe, name: pipe.hgetall(name))
        return list(map(_numbers, found))

    async def pools(self, keys: Sequence[Key]) -> list[list[bytes]]:
        return await self._each(keys, 100, lambda pipe, name: pipe.zrange(name, 0, -1))

    async def at_once(
        self, values: Sequence[Key], counts: Sequence[Key], pools: Sequence[Key], sizes: Sequence[Key] = ()
    ) -> Seen:
        async def ask() -> list[Any]:
            pipe = self._redis.pipeline(transaction=True)
            for key in values:
                pipe.get(self._prefix + key)
            for key in counts:
                pipe.hgetall(self._prefix + key)
            for key in pools:
                pipe.zrange(self._prefix + key, 0, -1)
            for key in sizes:
                pipe.zcard(self._prefix + key)
            return cast("list[Any]", await pipe.execute())

        found = iter(await self.call(ask))
        held = [value or b"" for value in islice(found, len(values))]
        return Seen(held, list(map(_numbers, islice(found, len(counts)))), list(islice(found, len(pools))), list(found))

    async def _each(self, keys: Sequence[Key], at_once: int, command: Callable[[Any, str], Any]) -> list[Any]:
        """The results of one command for each key, in order; so many are sent at once."""

        async def read() -> list[Any]:
            out: list[Any] = []
            for start in range(0, len(keys), at_once):
                pipe = self._redis.pipeline(transaction=False)
                for key in keys[start : start + at_once]:
                    command(pipe, self._prefix + key)
                out += await pipe.execute()
            return out

        return cast("list[Any]", await self.call(read))

    async def start_at(self, key: str, value: bytes, expires: int, instead_of: bytes) -> bytes:
        """Set a value if the key still holds `instead_of`; returns what it holds then. Raises Unavailable."""
        names = [self._prefix + key]
        return bytes(await self.call(lambda: self._start(keys=names, args=[value, instead_of, expires])))

    async def turns(self) -> AsyncIterator[list[tuple[str, bytes]]]:
        cursor, head = 0, self._bytes + TURN.prefix.encode()
        pattern = re.sub(rb"[][*?^\\]", rb"\\\g<0>", head) + b"*"
        while True:
            cursor, keys = await self.call(partial(self._redis.scan, cursor, match=pattern, count=PAGE))
            if keys:
                values = await self.call(partial(self._redis.mget, keys))
                yield [(k[len(head) :].decode(), v) for k, v in zip(keys, values, strict=True) if v]
            if cursor == 0:
                return

    async def now_ms(self) -> int:
        """The time of Redis's machine. Raises Unavailable."""
        seconds, microseconds = await self.call(self._redis.time)
        return int(seconds) * 1000 + int(microseconds) // 1000

    def lease(self, key: Key, milliseconds: int, owner: str = "") -> Lease:
        """The lease of this key. `owner` names the holder; where it is empty, each lease has a holder of its own."""
        name = owner or uuid.uuid4().hex
        return Lease(self._redis, self.call, key, self._prefix + key, milliseconds, name)

    async def call(self, command: Callable[[], Awaitable[Any]]) -> Any:
        """The command's result; repeats it after a lost connection, and sends a script whole that Redis does not have.

        A command that fails may have been carried out. That does no harm, since every change checks what was read.
        Raises Unavailable.
        """

        async def attempt() -> Any:
            try:
                return await command()
            except ResponseError as error:
                if not demoted(error):
                    raise
                await self._reconnect()
                raise ReadOnlyError(str(error)) from error

        try:
            return await self._retry.call(attempt, TRIED_AGAIN)
        except (RedisError, TimeoutError) as error:
            raise Unavailable(f"Redis: {error}") from error

    async def _reconnect(self) -> None:
        """Give every connection up, those in use once they are free: the address may lead to another server by now."""
        pool = self._redis.connection_pool
        await pool.update_active_connections_for_reconnect()
        await pool.disconnect(inuse_connections=False)


def _numbers(fields: dict[bytes, bytes]) -> dict[str, int]:
    return {name.decode(): int(by) for name, by in fields.items()}


def demoted(error: ResponseError) -> bool:
    """Whether this is what a server says that was the master when we connected and is a replica now. Where a script
    writes, Redis before 7 says it in the middle of a sentence."""
    return isinstance(error, ReadOnlyError | MasterDownError) or "READONLY" in str(error)


def client_of(url: str, timeout: float) -> Any:
    """A client of the server that the URL names, or of the master that its Sentinels name. It connects on first use,
    and again to wherever the master is then."""
    waits: dict[str, Any] = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    address = read_sentinel_url(url)
    if address is None:
        return aioredis.Redis.from_url(url, **waits, health_check_interval=HEALTH_CHECK_SECONDS)
    return _master(address, waits)


async def close_client(client: Any) -> None:
    """Close its connections, and those to the Sentinels where there are some."""
    sentinel = getattr(client.connection_pool, "sentinel_manager", None)
    await client.aclose()
    if sentinel is not None:
        await sentinel.aclose()


def _master(address: SentinelUrl, waits: dict[str, Any]) -> Any:
    secured: dict[str, Any] = {"ssl": True} if address.tls else {}
    login = {"username": address.user, "password": address.password}
    # A Sentinel that is away is asked once: the next one is at hand, and the store's own tries follow.
    asking: dict[str, Any] = {**waits, **secured, "retry": RedisRetry(NoBackoff(), 0)}
    if address.sentinel_auth:
        asking |= login
    sentinel = Sentinel(address.sentinels, sentinel_kwargs=asking)
    return sentinel.master_for(
        address.service, db=address.database, health_check_interval=HEALTH_CHECK_SECONDS, **waits, **secured, **login
    )
