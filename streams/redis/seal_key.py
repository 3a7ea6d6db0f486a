"""Gives the installation's key for sealed headers: the settings', else one that is made once and kept in Redis."""

from __future__ import annotations

import asyncio
import secrets
import time

from agents.keys import FOREVER, SEAL_KEY, SEALED_BY
from agents.ports import Unavailable
from schemas.seals import Seal
from streams.redis.state import RedisStore

FRESH_SECONDS = 60.0
KEY_BYTES = 32
NAMED_MS = 300_000
"""So long after its last look a worker's key counts as one in use."""


class InstallationSeal:
    """The installation's seal. Called, it returns it; it raises Unavailable where the key is in a Redis out of reach.

    It asks Redis once a minute: an emptied Redis gets back the key that this process has, and a replaced key is taken.
    """

    def __init__(self, store: RedisStore, configured: str | None) -> None:
        self._store, self._name = store, SEAL_KEY.key()
        self._seal = Seal(configured.encode()) if configured else None
        self._until = float("inf") if configured else 0.0
        self._lock = asyncio.Lock()

    async def __call__(self) -> Seal:
        if self._seal is not None and time.monotonic() < self._until:
            return self._seal
        async with self._lock:
            ours = self._seal.secret if self._seal is not None else secrets.token_bytes(KEY_BYTES)
            try:
                held = await self._store.start_at(self._name, ours, FOREVER, b"")
            except Unavailable:
                if self._seal is None:
                    raise
                return self._seal
            if self._seal is None or held != self._seal.secret:
                self._seal = Seal(held)
            self._until = time.monotonic() + FRESH_SECONDS
            return self._seal

    async def differs(self) -> bool:
        """Whether workers seal with another key than this process. Raises Unavailable."""
        (held,) = await self._store.read([SEALED_BY.key()])
        return bool(held) and held != _name(await self())

    async def announce(self, now: int) -> bool:
        """Keep the name of our key where others compare theirs with it; return whether another key's was there. `now`
        in ms since 1970. Raises Unavailable.

        What other workers sealed counts as never having failed, and so does what we sealed for them. Each takes the
        place of the one before, so that a changed key is the one in use from its first worker on.
        """
        key, name = SEALED_BY.key(), _name(await self())
        (held,) = await self._store.read([key])
        await self._store.start_at(key, name, now + NAMED_MS, held)
        return held not in (b"", name)


def _name(seal: Seal) -> bytes:
    """Names the key without telling it: two processes with one key give one name."""
    return seal.of(b"name").encode()
