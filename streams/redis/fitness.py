"""Tells whether a Redis is fit to hold the state: it evicts no key, and it takes writes.

A store that evicted single keys can't be told from one that never had them, so a turn would be joined as a new one. A
full server and a replica answer PING like any other, and nothing that needs to write goes on.
"""

from __future__ import annotations

from typing import Any

from redis.exceptions import ResponseError

from agents.keys import PROBE
from agents.ports import Unavailable
from streams.redis.state import RedisStore

KEPT_MS = 60_000


class Evicting(Exception):
    """Redis evicts keys when it is full. Only its configuration can mend that, so a worker stops."""


async def refuse_evicting(store: RedisStore) -> None:
    """Return where the server evicts no key, or does not let us ask. Raises Evicting or Unavailable."""

    async def ask() -> dict[str, Any]:
        try:
            found: dict[str, Any] = await store.redis.info("memory")
        except ResponseError:  # an account without INFO, or a proxy that does not know it
            return {}
        return found

    memory = await store.call(ask)
    policy = str(memory.get("maxmemory_policy", "noeviction"))
    if int(memory.get("maxmemory", 0)) and policy != "noeviction":
        raise Evicting(
            f"Redis evicts keys when full (maxmemory-policy {policy}), and turns are joined wrongly without them: "
            "set its maxmemory-policy to noeviction, or its maxmemory to 0"
        )


async def probe(store: RedisStore) -> None:
    """Return once the server has taken a write. Raises Unavailable with the reason."""
    name = store.prefix + PROBE.key()
    try:
        await store.call(lambda: store.redis.set(name, b"1", px=KEPT_MS))
    except Unavailable as error:
        if not isinstance(error.__cause__, ResponseError):
            raise
        # Full, a replica, or unable to save: it answers, and refuses writes.
        raise Unavailable(f"{error} Until it takes writes again all records wait; none is lost") from error
