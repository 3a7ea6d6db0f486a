"""What feeds share in Redis: who reads a shard, how far it is published, and which gaps there were.

Only the feed that holds a shard's lease moves its place, and only from the place that this feed knew. Where Redis was
emptied, a feed that reads a shard puts its own place back; a shard without a reader is read again from its oldest
record, which consumers take as duplicates.
"""

from __future__ import annotations

import time
from typing import Any

import orjson

from agents.keys import FEED_GAPS, FEED_LEASE, FEED_PLACES, FEED_STREAM
from streams.dynamodb.shards import Place, decode_place, encode_place
from streams.redis.lease import TAKING
from streams.redis.state import RedisStore

KEPT_GAPS = 100

# KEYS: lease, places. ARGV: owner, lease in ms, shard, the place known ('*': any), the new place ('' leaves it).
# Takes the lease and moves the place in one step. Returns the place that holds then, or false where another feed holds
# the lease or has moved the place.
HOLD = (
    TAKING
    + """
if taken() then return false end
local place = redis.call('HGET', KEYS[2], ARGV[3]) or ''
if ARGV[4] ~= '*' and place ~= '' and place ~= ARGV[4] then return false end
take()
if ARGV[5] ~= '' then
  redis.call('HSET', KEYS[2], ARGV[3], ARGV[5])
  place = ARGV[5]
end
return place
"""
)


class LeaseLost(Exception):
    """Another feed reads the shard now."""


class ShardLease:
    """The lease of one shard. `place` is what Redis has; `valid` turns false when it was not renewed in time."""

    def __init__(self, ledger: Ledger, arn: str, shard_id: str, place: Place, raw: bytes, until: float) -> None:
        self._ledger, self.arn, self.shard_id = ledger, arn, shard_id
        self.place, self._raw, self._until = place, raw, until

    @property
    def valid(self) -> bool:
        return time.monotonic() < self._until

    async def keep(self, place: Place | None = None) -> None:
        """Renew the lease and move the place, where one is given. Raises LeaseLost or Unavailable."""
        began = time.monotonic()
        raw = encode_place(place) if place is not None else self._raw
        if await self._ledger.hold(self.arn, self.shard_id, self._raw, raw) is None:
            self._until = 0.0
            raise LeaseLost(self.shard_id)
        self._raw, self._until = raw, began + self._ledger.lease_ms / 1000
        if place is not None:
            self.place = place

    async def release(self) -> None:
        self._until = 0.0
        await self._ledger.release(self.arn, self.shard_id)


class Ledger:
    """Places, leases and gaps of one table's streams. `owner` names this feed among others. Raises Unavailable."""

    def __init__(self, store: RedisStore, table: str, owner: str, lease_ms: int = 6_000) -> None:
        self._store, self.owner, self.lease_ms = store, owner, lease_ms
        self._redis, self._prefix, self._table = store.redis, store.prefix, table
        self._gaps = store.prefix + FEED_GAPS.key(table)
        self._hold = store.redis.register_script(HOLD)

    async def stream(self) -> str | None:
        """ARN of the stream that was read last, None before the first."""
        found = await self._store.call(lambda: self._redis.get(self._prefix + FEED_STREAM.key(self._table)))
        return found.decode() if found else None

    async def set_stream(self, arn: str) -> None:
        await self._store.call(lambda: self._redis.set(self._prefix + FEED_STREAM.key(self._table), arn))

    async def places(self, arn: str) -> dict[str, Place]:
        found = await self._store.call(lambda: self._redis.hgetall(self._places(arn)))
        return {shard.decode(): decode_place(raw) for shard, raw in found.items()}

    async def claim(self, arn: str, shard_id: str) -> ShardLease | None:
        """Take a shard's lease; None while another feed holds it."""
        began = time.monotonic()
        raw = await self.hold(arn, shard_id, b"*", b"")
        if raw is None:
            return None
        place = decode_place(raw) if raw else Place()
        return ShardLease(self, arn, shard_id, place, raw, began + self.lease_ms / 1000)

    async def hold(self, arn: str, shard_id: str, known: bytes, new: bytes) -> bytes | None:
        """Run HOLD; None where another feed holds the lease or has moved the place."""
        keys = [self._prefix + self._lease(arn, shard_id), self._places(arn)]
        args = [self.owner, self.lease_ms, shard_id, known, new]
        found: bytes | None = await self._store.call(lambda: self._hold(keys=keys, args=args))
        return found

    async def release(self, arn: str, shard_id: str) -> None:
        await self._store.lease(self._lease(arn, shard_id), self.lease_ms, self.owner).release()

    async def forget(self, arn: str, shards: list[str]) -> None:
        if shards:
            await self._store.call(lambda: self._redis.hdel(self._places(arn), *shards))

    async def add_gap(self, gap: dict[str, Any]) -> None:
        """Keep a gap for people and `/readyz`; the newest hundred are kept."""

        async def put() -> None:
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.lpush(self._gaps, orjson.dumps(gap))
                pipe.ltrim(self._gaps, 0, KEPT_GAPS - 1)
                await pipe.execute()

        await self._store.call(put)

    async def gaps(self) -> list[dict[str, Any]]:
        """The gaps that are kept, newest first."""
        return [orjson.loads(raw) for raw in await self._store.call(lambda: self._redis.lrange(self._gaps, 0, -1))]

    def _places(self, arn: str) -> str:
        return self._prefix + FEED_PLACES.key(self._table, label(arn))

    def _lease(self, arn: str, shard_id: str) -> str:
        return FEED_LEASE.key(self._table, label(arn), shard_id)


def label(arn: str) -> str:
    """The part of a stream's ARN that tells it from the table's other streams."""
    return arn.rpartition("/")[2]
