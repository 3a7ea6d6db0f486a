"""Remembers which dead letters were replayed: one key each in Redis, claimed before it is published, confirmed after.

A crash in between leaves a claim that expires, and the dead letter is published again, which does no harm: the agents
dedupe. Nor does a lost ledger (FLUSHALL, another Redis), for it only saves work: what was replayed before is published
once more and ends as superseded, or, where it can't be decoded, as a dead letter that is known to be a repetition.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from agents.keys import REPLAYED
from streams.redis.lease import RELEASE
from streams.redis.state import RedisStore

LEASE_MS = 60_000
"""Longer than it may take to publish a group (`streams.kafka.client.PRODUCE_SECONDS`)."""

CLAIM = """
local held = {}
for i = 1, #KEYS do
  local is = redis.call('GET', KEYS[i])
  if not is or is == ARGV[1] then
    redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2])
    is = ''
  end
  held[i] = is
end
return held
"""


class ReplayLedger:
    """Replays by the dead letter's identity. Every call raises Unavailable while Redis is out of reach.

    `keep_ms`: how long a confirmed replay is remembered; longer than the lookback window, after which a record that
    comes again is filtered anyway.
    """

    def __init__(self, store: RedisStore, keep_ms: int, lease_ms: int = LEASE_MS) -> None:
        self._store, self._redis, self._keep, self._lease = store, store.redis, keep_ms, lease_ms
        self._ours = b"claimed:" + uuid.uuid4().hex.encode()
        self._claim, self._release = store.redis.register_script(CLAIM), store.redis.register_script(RELEASE)

    async def replayed(self, identities: Sequence[str]) -> list[str]:
        """Where each was republished ("topic/partition/offset"), "" where it was not."""
        if not identities:
            return []
        held = await self._store.call(lambda: self._redis.mget(self._keys(identities)))
        return [place_in(value) for value in held]

    async def claim(self, identities: Sequence[str]) -> list[bool | None]:
        """True: ours to publish now. False: replayed already. None: another run has claimed it."""
        held = await self._store.call(lambda: self._claim(keys=self._keys(identities), args=[self._ours, self._lease]))
        return [True if not value else False if place_in(value) else None for value in held]

    async def confirm(self, places: Mapping[str, str]) -> None:
        """Remember where each identity was republished; call it once that is durable."""

        async def note() -> None:
            pipe = self._redis.pipeline(transaction=False)
            for identity, place in places.items():
                pipe.set(self._key(identity), b"done:" + place.encode(), px=self._keep)
            await pipe.execute()

        await self._store.call(note)

    async def release(self, identities: Sequence[str]) -> None:
        """Give our claims back, after publishing failed or may have failed."""
        await self._store.call(lambda: self._release(keys=self._keys(identities), args=[self._ours]))

    def _keys(self, identities: Sequence[str]) -> list[str]:
        return [self._key(identity) for identity in identities]

    def _key(self, identity: str) -> str:
        return self._store.prefix + REPLAYED.key(identity)


def place_in(value: bytes | None) -> str:
    return value.removeprefix(b"done:").decode() if value is not None and value.startswith(b"done:") else ""
