"""Gives the installation's key for sealed headers: the settings', else one that is made once and kept in Redis."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Protocol

from agents.keys import FOREVER, SEAL_KEY
from agents.ports import Unavailable
from schemas.dead_letters import Seal

FRESH_SECONDS = 60.0
KEY_BYTES = 32


class KeyStore(Protocol):
    async def start_at(self, key: str, value: bytes, expires: int, instead_of: bytes) -> bytes: ...


class InstallationSeal:
    """The installation's seal. Called, it returns it; it raises Unavailable where the key is in a Redis out of reach.

    It asks Redis once a minute: an emptied Redis gets back the key that this process has, and a replaced key is taken.
    """

    def __init__(self, store: KeyStore, configured: str | None) -> None:
        self._store, self._name = store, SEAL_KEY.key()
        self._seal = Seal(configured.encode()) if configured else None
        self._until = float("inf") if configured else 0.0
        self._lock = asyncio.Lock()

    async def __call__(self) -> Seal:
        if self._seal is not None and time.monotonic() < self._until:
            return self._seal
        async with self._lock:
            ours = self._seal.key if self._seal is not None else secrets.token_bytes(KEY_BYTES)
            try:
                held = await self._store.start_at(self._name, ours, FOREVER, b"")
            except Unavailable:
                if self._seal is None:
                    raise
                return self._seal
            if self._seal is None or held != self._seal.key:
                self._seal = Seal(held)
            self._until = time.monotonic() + FRESH_SECONDS
            return self._seal
